"""Messages as most are sent: what they share with the one before is encoded already."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jmsjca.destinations import Destination, DestinationKind, destination
from jmsjca.messages import BytesMessage, DeliveryMode, Message, TextMessage
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.encoding.writing import NULL, text
from jmsjca.providers.amqp.mapping.ids import ENCODED
from jmsjca.providers.amqp.mapping.outgoing import address, sections_of

__all__ = ["cast"]

_BODIES: dict[type[Message], Callable[[Any], bytes]] = {BytesMessage: bytes, TextMessage: str.encode}
_SHORT = 1 << 8
_PERSISTENT = DeliveryMode.PERSISTENT  # asking an Enum costs as much as a call
_SOME_TIME = datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)  # written as bytes that no text has
_time, _size, _short_size = (struct.Struct(layout).pack for layout in (">q", ">I", "B"))


def cast(message: Message, to: Destination, naming: Naming) -> bytes | None:
    """Encode a text or bytes message that has an id and a time, and nothing rare: at half of the usual cost.

    Args:
        message: The message, with its headers.
        to: Where to.
        naming: How the broker names destinations.

    Returns:
        What `sections_of` gives; None if the message has something else.

    Raises:
        ValueError: Something in it cannot be encoded; other errors of what Python packs, too.
    """
    kind, told, sent = message.__class__, message.message_id, message.timestamp
    if (
        kind not in _BODIES
        or told is None
        or sent is None
        or message.correlation_id is not None
        or message.reply_to is not None
        or message.type is not None
        or message.expiration is not None
        or message.delivery_time is not None
        or message.properties
        or told.startswith(ENCODED)
        or to.temporary
        or (content := message.body) is None
    ):
        return None
    number, body, time = told.encode(), _BODIES[kind](content), _time(round(sent.timestamp() * 1000))
    size, lasting = len(body), message.delivery_mode is _PERSISTENT
    short = size < _SHORT
    where, told_size = address(to, naming), _short_size(size) if short else _size(size)
    before, between, behind = _mould(
        kind is TextMessage, lasting, message.priority, to.kind, len(number), len(where), short
    )
    return b"".join((before, number, NULL, where, between, time, behind, told_size, body))


@lru_cache(256)  # most messages have one of a few
def _mould(  # noqa: PLR0917  # to name them would cost as much as to look them up
    of_text: bool,
    lasting: bool,
    priority: int,
    destination_kind: DestinationKind,
    size: int,
    address_size: int,
    short: bool,
) -> tuple[bytes, bytes, bytes]:
    """What stands before the id, between the address and the time, and between that and the size of the body.

    It is cut out of a sample with an id and an address of these sizes: programs send to any number of destinations.
    """
    content = "" if short else "x" * _SHORT
    sample = TextMessage(content) if of_text else BytesMessage(content.encode())
    sample.message_id, sample.timestamp, sample.priority = "x" * size, _SOME_TIME, priority
    sample.delivery_mode = _PERSISTENT if lasting else DeliveryMode.NON_PERSISTENT
    told = text("x" * size)
    name = "x" * (address_size - (2 if address_size < _SHORT + 2 else 5))  # without what `text` writes before it
    before, _, rest = sections_of(sample, destination(name, destination_kind), 0, "capability").partition(told)
    between, _, behind = rest[len(NULL) + address_size :].partition(_time(-1))
    sized = len(content) + len(_short_size(0) if short else _size(0))
    return before + told[: len(told) - size], between, behind[:-sized]
