"""The sections of a message that is sent: header, annotations and properties."""

from datetime import datetime
from functools import lru_cache

from jmsjca.destinations import Destination
from jmsjca.messages import Byte, DeliveryMode, Long, Message, Properties
from jmsjca.providers.amqp.addresses import Naming, address_of
from jmsjca.providers.amqp.encoding.marks import UByte, UInt
from jmsjca.providers.amqp.encoding.writing import NULL, list_of, map_of, symbol, text, timestamp, write
from jmsjca.providers.amqp.mapping.destinations import REPLY_TO, TO, kind_number
from jmsjca.providers.amqp.mapping.ids import ENCODED, as_id
from jmsjca.providers.amqp.mapping.kinds import KIND, kind_of
from jmsjca.providers.amqp.mapping.properties import application_properties, group_fields, own_time_to_live
from jmsjca.providers.amqp.mapping.sent_bodies import BODIES

__all__ = ["address", "may_be_kept", "sections_of"]

_HEADER, _ANNOTATIONS = b"\x00\x53\x70", b"\x00\x53\x72"
_PROPERTIES = b"\x00\x53\x73"

_LONGEST_TTL = 1 << 32  # milliseconds, about 50 days: what is beyond has only the time at which it expires
_NORMAL, _HIGHEST = 4, 9
_REMEMBERED = 128  # characters: strangers name queues for replies
_PERSISTENT = DeliveryMode.PERSISTENT  # asking an Enum costs as much as a call
_DUE = symbol("x-opt-delivery-time")  # a long, as Java's clients send it


def sections_of(message: Message, to: Destination, now: float, naming: Naming) -> bytes:
    """Encode a message.

    Args:
        message: The message, with its headers.
        to: Where to.
        now: Seconds since the epoch, from which the time to live is counted.
        naming: How the broker names destinations.

    Raises:
        MessageFormatError: Something in it cannot be encoded.
        ValueError: The same.
    """
    kind, properties = kind_of(message), message.properties if message.has_properties() else None
    body, content_type = BODIES[kind](message)
    lasting = properties is None and message.expiration is None  # as most are
    parts = (
        _beginning(message, kind, to, None if lasting else _time_to_live(message, properties, now)),
        _fields(message, properties, to, content_type, naming),
        application_properties(properties) if properties else b"",
        body,
    )
    return b"".join(parts)


def _time_to_live(message: Message, properties: Properties | None, now: float) -> int | None:
    own, expiration = own_time_to_live(properties) if properties else None, message.expiration
    if own is not None or expiration is None:
        return own or None
    left = max(_milliseconds(expiration) - round(now * 1000), 1)  # 0 would be for ever
    return left if left < _LONGEST_TTL else None


def _beginning(message: Message, kind: int, to: Destination, time_to_live: int | None) -> bytes:
    """The header and the annotations."""
    reply_to, due = message.reply_to, message.delivery_time
    header = message.delivery_mode is _PERSISTENT, message.priority, time_to_live
    kinds = kind, kind_number(to), None if reply_to is None else kind_number(reply_to)
    if due is None:
        return _usual_beginning(header, kinds)
    return _header_of(*header) + _ANNOTATIONS + map_of([*_kinds(*kinds), _DUE, write(Long(_milliseconds(due)))])


@lru_cache(256)  # most messages have one of a few
def _usual_beginning(header: tuple[bool, int, int | None], kinds: tuple[int, int, int | None]) -> bytes:
    return _header_of(*header) + _ANNOTATIONS + map_of(_kinds(*kinds))


def _header_of(persistent: bool, priority: int, time_to_live: int | None) -> bytes:
    fields = [write(persistent), NULL if priority == _NORMAL else write(UByte(min(max(priority, 0), _HIGHEST)))]
    return _HEADER + list_of(fields if time_to_live is None else [*fields, write(UInt(time_to_live))])


def _kinds(kind: int, to: int, reply: int | None) -> list[bytes]:
    """What kind of message goes where, and what kind of destination gets the reply."""
    parts = [symbol(KIND), write(Byte(kind)), symbol(TO), write(Byte(to))]
    return parts if reply is None else [*parts, symbol(REPLY_TO), write(Byte(reply))]


def _fields(
    message: Message, properties: Properties | None, to: Destination, content_type: bytes, naming: Naming
) -> bytes:
    """The section of properties; what is not set at its end is left out."""
    told, word, reply_to, correlation_id, expiration, sent = (
        message.message_id,
        message.type,
        message.reply_to,
        message.correlation_id,
        message.expiration,
        message.timestamp,
    )
    fields = [  # most are not set: a call for each of those would cost more than the others
        NULL if told is None else _id(told),
        NULL,  # who sent it is for the broker to say
        address(to, naming),
        NULL if word is None else text(word),
        NULL if reply_to is None else address(reply_to, naming),
        NULL if correlation_id is None else _id(correlation_id),
        content_type,
        NULL,
        NULL if expiration is None else timestamp(_milliseconds(expiration)),
        NULL if sent is None else timestamp(_milliseconds(sent)),
    ]
    if properties:
        fields += group_fields(properties)
    while fields[-1] == NULL:
        fields.pop()
    return _PROPERTIES + list_of(fields)


def address(of: Destination, naming: Naming) -> bytes:
    """Where a message goes, encoded."""
    return (_known_address if may_be_kept(of) else _encoded_address)(of, naming)


def may_be_kept(of: Destination) -> bool:
    """True if it may be remembered: it is short, and does not know its connection, as temporary ones do."""
    return len(of.name) <= _REMEMBERED and not of.temporary


def _encoded_address(of: Destination, naming: Naming) -> bytes:
    return text(address_of(of, naming).name)


_known_address = lru_cache(256)(_encoded_address)


def _id(told: str) -> bytes:
    return write(as_id(told)) if told.startswith(ENCODED) else text(told)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
