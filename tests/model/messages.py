"""Messages of a real broker in the terms of the model, and back."""

from datetime import UTC, datetime

from jmsjca.destinations import Destination
from jmsjca.messages import TextMessage
from jmsjca.spi import Connection, Delivery
from tests.model.operations import Letter, Receipt

__all__ = ["browsed", "receipt", "written"]


def written(letter: Letter, now: int) -> TextMessage:
    """The message as a producer prepares it."""
    given = {"colour": letter.colour, "JMSXGroupID": letter.group, "_AMQ_DUPL_ID": letter.duplicate}
    message = TextMessage(letter.body, properties={name: value for name, value in given.items() if value})
    message.priority = letter.priority
    message.delivery_time = _moment(now + letter.delay) if letter.delay else None
    message.expiration = _moment(now + letter.time_to_live) if letter.time_to_live else None
    return message


def receipt(number: int, delivery: Delivery) -> Receipt:
    assert delivery.count is not None
    assert delivery.redelivered == (delivery.count > 1)
    return Receipt(number, delivery.message.body, delivery.count)


def browsed(connection: Connection, queue: Destination) -> list[tuple[str, int]]:
    """What waits in a queue, in order, with its counts."""
    return [(m.message.body, m.count or 0) for chunk in connection.browse(queue) for m in chunk]


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
