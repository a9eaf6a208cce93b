"""The operator's view of Artemis: its management messages."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, JMSSecurityError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.answers import Fields, list_of, number_of, strange
from jmsjca.providers.amqp.requests import Requests
from jmsjca.spi import Depth

__all__ = ["ADDRESS", "ArtemisAdmin"]

ADDRESS = "activemq.management"

_ROWS = 500
_MOST_PAGES = 2000
_MOST_DELIVERIES = 10  # by the broker's default
_PLACES = ("deadLetterAddress", "expiryAddress")
_ALL = {"field": "", "operation": "", "value": ""}


class ArtemisAdmin:
    """Needs the permission ``manage`` on the management address.

    Args:
        requests: Where to ask.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def destinations(self) -> Sequence[Destination]:
        """All queues, and the topics that have subscriptions; not what has no name, which nobody can ask for."""
        addresses = self._rows("listAddresses", _ALL)
        temporary = {row.text("name") for row in addresses if row.get("temporary") == "true"}
        rows = (row for row in self._rows("listQueues", _ALL) if row.text("name") and row.text("address"))
        found = {_destination(row, temporary) for row in rows}
        return sorted(found, key=str)

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a named subscription."""
        row = self._row(source)
        if row is None:
            return Depth(0, 0, 0)
        total, held, scheduled = (row.number(name) for name in ("messageCount", "deliveringCount", "scheduledCount"))
        return Depth(total - held - scheduled, held, scheduled)

    def purge(self, source: Destination | Subscription) -> int:
        """Remove what waits there; what somebody holds stays."""
        if self._row(source) is None:
            return 0
        return number_of("of messages", self._ask(f"queue.{_queue(source)}", "removeAllMessages"))

    def remove(self, queue: Destination) -> None:
        """Remove a queue with its messages.

        Raises:
            InvalidDestinationError: There is none.
            IllegalStateError: It has consumers.
        """
        row = self._row(queue) if isinstance(queue, Queue) else None
        if row is None or row.text("temporary") == "true":
            raise InvalidDestinationError(f"There is no {queue} to remove, or it is another connection's.")
        if row.number("consumerCount"):
            raise IllegalStateError(f"{queue} still has consumers; close them first.")
        self._ask("broker", "destroyQueue", queue.name)

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Refused: whoever runs the broker sets what destinations do."""
        del settings
        raise NotSupportedError(f"Settings of {address} are made in the broker's own configuration.")

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Tell what the broker's configuration says of an address, or of those that it says nothing of (None)."""
        name = "#" if address is None else address.name
        return _settings(Fields(_read(self._ask("broker", "getAddressSettingsAsJSON", name))))

    def _row(self, source: Destination | Subscription) -> Fields | None:
        if isinstance(source, Destination) and not isinstance(source, Queue):
            raise InvalidDestinationError(f"{source} holds nothing itself; ask for one of its subscriptions.")
        name = _queue(source)
        wanted = {"field": "name", "operation": "EQUALS", "value": name}
        return next((row for row in self._rows("listQueues", wanted) if row.text("name") == name), None)

    def _rows(self, operation: str, options: dict[str, str]) -> Iterator[Fields]:
        for page in range(1, _MOST_PAGES + 1):
            answer = Fields(_read(self._ask("broker", operation, json.dumps(options), page, _ROWS)))
            rows = answer.list("data")
            yield from map(Fields, rows)
            if not rows or answer.number("count") <= page * _ROWS:
                return
        raise JMSError(f"The broker's management tells more than {_MOST_PAGES * _ROWS} rows of {operation}.")

    def _ask(self, resource: str, operation: str, *arguments: Any) -> Any:
        properties = {"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}
        answer = self._requests.ask(TextMessage(json.dumps(arguments), properties=properties))
        result = next(iter(list_of("of results", _read(answer.body or "[]"))), None)
        if answer.properties.get("_AMQ_OperationSucceeded") is True:
            return result
        refused = "AMQ229032" in str(result) or "AMQ229213" in str(result)  # no permission
        raise (JMSSecurityError if refused else JMSError)(f"The broker refuses {operation}: {str(result)[:500]}")


def _read(text: Any) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise strange("JSON", text) from error


def _settings(found: Fields) -> DestinationSettings:
    most = found.get("maxDeliveryAttempts")  # newer releases leave out what nobody configured
    most = _MOST_DELIVERIES if most is None else None if most == -1 else number_of("of attempts", most) or None
    dead, expired = (Queue(found.text(name)) if found.get(name) else None for name in _PLACES)
    exclusive = found.get("defaultExclusiveQueue") is True
    return DestinationSettings(most, dead if most else None, expired, exclusive)


def _queue(source: Destination | Subscription) -> str:
    """The queue that holds the messages, as `AmqpSupport.createQueueName` names it for a subscription."""
    if isinstance(source, Destination):
        return source.name
    kind = ":shared-volatile" if source.volatile else ""
    if source.client_id is None:
        return f"{source.name}{kind}:global"
    return f"{source.client_id}.{source.name}{kind}"


def _destination(row: Fields, temporary: set[str]) -> Destination:
    kind = "queue" if row.text("routingType") == "ANYCAST" else "topic"
    name = row.text("name" if kind == "queue" else "address")
    return destination(name, kind, temporary=row.text("address") in temporary)
