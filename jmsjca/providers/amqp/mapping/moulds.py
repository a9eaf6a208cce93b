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
from jmsjca.providers.amqp.mapping.outgoing import address, may_be_kept, sections_of

__all__ = ["Cast", "caster"]

Cast = Callable[[Message], bytes | None]  #: gives what `sections_of` does, if the message has nothing rare

_SHORT = 1 << 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # to ask a time for its time stamp takes twice as long
_PERSISTENT = DeliveryMode.PERSISTENT  # asking an Enum costs as much as a call
_SOME_TIME = datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)  # written as bytes that no text has
_time, _size, _short_size = (struct.Struct(layout).pack for layout in (">q", ">I", "B"))


def caster(to: Destination, naming: Naming) -> Cast:
    """What encodes text and bytes messages that have an id and a time, and nothing rare, at half of the usual cost.

    Args:
        to: Where they go.
        naming: How the broker names destinations.
    """
    if to.temporary:  # it knows its connection, and may be gone
        return _leave
    try:
        return (_known if may_be_kept(to) else _Moulds)(to, naming).cast
    except UnicodeEncodeError:  # the encoder tells where
        return _leave


def _leave(message: Message) -> None:
    """Leave it to the encoder."""


class _Moulds:
    """What messages to a destination share; for any number of threads."""

    def __init__(self, to: Destination, naming: Naming) -> None:
        self._kind = to.kind
        self._where = address(to, naming)
        self._latest: tuple[object, bytes, bytes, bytes] = (None, b"", b"", b"")  # one value, for another thread's sake

    def cast(self, message: Message) -> bytes | None:
        """Encode a message; None if it has something rare, or that cannot be encoded."""
        inside: Any = message
        told, sent = message.message_id, message.timestamp
        try:
            if (
                told is None
                or sent is None
                or message.correlation_id is not None
                or message.reply_to is not None
                or message.type is not None
                or message.expiration is not None
                or message.delivery_time is not None
                or inside._properties  # noqa: SLF001  # a call would cost as much as four of these
                or ENCODED in told  # it begins with that, or is rare: looking for a beginning takes thrice as long
            ):
                return None
            kind, number = message.__class__, told.encode()
            content = inside._body  # noqa: SLF001
            if kind is TextMessage:
                content = content.encode()
            elif kind is not BytesMessage:
                return None
            size = len(content)
            short = size < _SHORT
            shape = kind, message.delivery_mode is _PERSISTENT, message.priority, len(number), short
            known, before, between, behind = self._latest
            if shape != known:
                before, between, behind = self._turn_to(*shape)
            time = _time(round((sent - _EPOCH).total_seconds() * 1000))
            told_size = _short_size(size) if short else _size(size)
            return b"".join((before, number, between, time, behind, told_size, content))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error):
            return None  # the encoder takes it, or tells what is wrong

    def _turn_to(
        self, kind: type[Message], lasting: bool, priority: int, size: int, short: bool
    ) -> tuple[bytes, bytes, bytes]:
        """The parts for messages of a shape, which the next one probably has, too."""
        of_text, where = kind is TextMessage, self._where
        before, between, behind = _mould(of_text, lasting, priority, self._kind, size, len(where), short)
        parts = before, NULL + where + between, behind
        self._latest = (kind, lasting, priority, size, short), *parts
        return parts


_known = lru_cache(256)(_Moulds)


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
