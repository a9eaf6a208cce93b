"""Encoding of messages to send: sections, bodies, and templates for the usual messages."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    Properties,
    StreamMessage,
    TextMessage,
)
from jmsjca.messages.message import has_properties
from jmsjca.messages.object_message import plain_data_of
from jmsjca.providers.amqp.codec.addresses import address_of, destination_type_of
from jmsjca.providers.amqp.codec.jms_mapping import (
    CROSSING_STYLES,
    ENCODED_ID_PREFIX,
    JAVA_NULL,
    JAVA_OBJECT,
    OCTET_STREAM,
    TYPED_ENCODING,
    application_properties_section,
    crossing_annotation,
    group_fields,
    header_and_annotations,
    message_type_of,
    milliseconds,
    stream_annotations,
    time_to_live,
    to_amqp_id,
    usual_header_and_annotations,
)
from jmsjca.providers.brokers.profile import AddressStyle
from jmsjca.providers.common.amqp_types import (
    NULL,
    amqp_value_string_section,
    data_section,
    list_of,
    map_of,
    symbol,
    text,
    timestamp,
    write,
)

__all__ = [
    "BODY_ENCODERS",
    "EncodeUsual",
    "encode",
    "encode_message",
    "encoded_address",
    "is_cacheable",
    "template_for",
]

_PROPERTIES_DESCRIPTOR = b"\x00\x53\x73"

_MAX_CACHED_CHARACTERS = 128  # other clients choose the names of reply queues
_PERSISTENT = DeliveryMode.PERSISTENT  # an attribute of an Enum costs as much as a call


def encode_message(message: Message, to: Destination, now: float, naming: AddressStyle) -> bytes:
    """Encode a message.

    Args:
        message: The message, with its headers.
        to: The destination.
        now: The current time in seconds since the epoch, from which the time to live is computed.
        naming: The broker's address style.

    Raises:
        MessageFormatError: The message contains a value that cannot be encoded.
        ValueError: The same.
    """
    kind, properties = message_type_of(message), message.properties if has_properties(message) else None
    body, content_type = BODY_ENCODERS[kind](message)
    if not body and naming == "encoded":
        body = _VALUE_DESCRIPTOR + NULL  # RabbitMQ 4 ends the session over a message without a body
    never_expires = properties is None and message.expiration is None  # the usual case
    more = crossing_annotation(message, properties, naming) if naming in CROSSING_STYLES else ()
    if properties and naming == "encoded" and (filtered := stream_annotations(properties)):
        more = [*more, *filtered]
    ttl = None if never_expires else time_to_live(message, properties, now)
    parts = (
        header_and_annotations(message, kind, to, ttl, more),
        _properties_section(message, properties, to, content_type, naming),
        application_properties_section(properties) if properties else b"",
        body,
    )
    return b"".join(parts)


def _properties_section(
    message: Message, properties: Properties | None, to: Destination, content_type: bytes, naming: AddressStyle
) -> bytes:
    """Encode the properties section without trailing null fields."""
    told, word, reply_to, correlation_id, expiration, sent = (
        message.message_id,
        message.type,
        message.reply_to,
        message.correlation_id,
        message.expiration,
        message.timestamp,
    )
    fields = [  # most are not set: a call for each would cost more than the set ones
        NULL if told is None else _encode_id(told),
        NULL,  # user-id: set by the broker
        encoded_address(to, naming),
        NULL if word is None else text(word),
        NULL if reply_to is None else encoded_address(reply_to, naming),
        NULL if correlation_id is None else _encode_id(correlation_id),
        content_type,
        NULL,
        NULL if expiration is None else timestamp(milliseconds(expiration)),
        NULL if sent is None else timestamp(milliseconds(sent)),
    ]
    if properties:
        fields += group_fields(properties)
    while fields[-1] == NULL:
        fields.pop()
    return _PROPERTIES_DESCRIPTOR + list_of(fields)


def encoded_address(of: Destination, naming: AddressStyle) -> bytes:
    """Return the encoded address of a destination."""
    return (_cached_address if is_cacheable(of) else _encode_address)(of, naming)


def is_cacheable(of: Destination) -> bool:
    """Return True if a cache may hold a destination: it is short, and not temporary (those reference a connection)."""
    return len(of.name) <= _MAX_CACHED_CHARACTERS and not of.temporary


def _encode_address(of: Destination, naming: AddressStyle) -> bytes:
    return text(address_of(of, naming).name)


_cached_address = lru_cache(256)(_encode_address)


def _encode_id(told: str) -> bytes:
    return write(to_amqp_id(told)) if told.startswith(ENCODED_ID_PREFIX) else text(told)


_DATA_DESCRIPTOR, _SEQUENCE_DESCRIPTOR, _VALUE_DESCRIPTOR = b"\x00\x53\x75", b"\x00\x53\x76", b"\x00\x53\x77"
_OCTET_STREAM, _JAVA_OBJECT = symbol(OCTET_STREAM), symbol(JAVA_OBJECT)


def _no_body(_message: Any) -> tuple[bytes, bytes]:
    return b"", NULL


def _text_body(message: TextMessage) -> tuple[bytes, bytes]:
    text = message.body
    # It may be None, although its type does not mention that.
    return _VALUE_DESCRIPTOR + NULL if text is None else amqp_value_string_section(text), NULL  # type: ignore[redundant-expr]


def _bytes_body(message: BytesMessage) -> tuple[bytes, bytes]:
    return data_section(message.body or b""), _OCTET_STREAM


def _map_body(message: MapMessage) -> tuple[bytes, bytes]:
    parts: list[bytes] = []
    for name, value in message.body.items():
        parts += (text(name), write(value))
    return _VALUE_DESCRIPTOR + map_of(parts), NULL


def _stream_body(message: StreamMessage) -> tuple[bytes, bytes]:
    return _SEQUENCE_DESCRIPTOR + list_of([write(value) for value in message.body]), NULL


def _object_body(message: ObjectMessage) -> tuple[bytes, bytes]:
    """Encode a serialized object as data, and plain data as an AMQP value (also none, if typed encoding is set)."""
    plain, typed = plain_data_of(message), message.properties.get(TYPED_ENCODING) is True
    if plain is not None:
        return _VALUE_DESCRIPTOR + write(plain.value), NULL
    if not typed:
        return data_section(JAVA_NULL if message.pickled is None else message.pickled), _JAVA_OBJECT
    if message.pickled is not None:
        raise MessageFormatError(
            f"{TYPED_ENCODING} is set, but a pickle is not AMQP data: use ObjectMessage.from_data(…)"
        )
    return _VALUE_DESCRIPTOR + NULL, NULL


BODY_ENCODERS: dict[int, Callable[[Any], tuple[bytes, bytes]]] = {
    0: _no_body,
    1: _object_body,
    2: _map_body,
    3: _bytes_body,
    4: _stream_body,
    5: _text_body,
}
"""By message type: encodes the body section and the content type, or raises `MessageFormatError`."""

EncodeUsual = Callable[[Message], bytes | None]
"""Returns the bytes of `encode_message` for a usual message, None for any other."""

_VAR8_LIMIT = 1 << 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the difference to it takes half the time of `datetime.timestamp`
_TIMESTAMP = b"\x83"
_PROPERTIES_FIELDS = 10  # up to creation-time
_pack_long, _pack_uint, _pack_ubyte = (struct.Struct(layout).pack for layout in (">q", ">I", "B"))


def template_for(to: Destination, naming: AddressStyle) -> EncodeUsual:
    """Return an encoder for usual messages to a destination, at half the cost of `encode_message`.

    A usual message is a text or bytes message with an id, a timestamp, a delivery mode and a priority, and no other
    header or property.

    Args:
        to: The destination.
        naming: The broker's address style.
    """
    if to.temporary:  # it references its connection, and may be deleted
        return _not_usual
    try:
        return (_cached_template if is_cacheable(to) else MessageTemplate)(to, naming).encode
    except UnicodeEncodeError:  # the encoder reports the destination
        return _not_usual


def _not_usual(message: Message) -> None:
    """Return None: the encoder encodes the message."""


class MessageTemplate:
    """Encodes usual messages to a destination, with the constant parts of the message before. Thread-safe."""

    def __init__(self, to: Destination, naming: AddressStyle) -> None:
        self._destination_type = destination_type_of(to)
        self._address = encoded_address(to, naming)
        self._last_parts: tuple[object, bytes, bytes, bytes] = (None, b"", b"", b"")  # one value, replaced as a whole

    def encode(self, message: Message) -> bytes | None:
        """Encode a message; None if it is not usual, or cannot be encoded."""
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
                or ENCODED_ID_PREFIX in told  # usual ids do not contain it, and `startswith` takes three times as long
            ):
                return None
            kind, number = message.__class__, told.encode()
            content = inside._body  # noqa: SLF001
            if kind is TextMessage:
                content = content.encode()
            elif kind is not BytesMessage:
                return None
            size = len(content)
            short = size < _VAR8_LIMIT
            shape = kind, message.delivery_mode is _PERSISTENT, message.priority, len(number), short
            last, before, between, body_head = self._last_parts
            if shape != last:
                before, between, body_head = self._parts_for(*shape)
            time = _pack_long(round((sent - _EPOCH).total_seconds() * 1000))
            encoded_size = _pack_ubyte(size) if short else _pack_uint(size)
            return b"".join((before, number, between, time, body_head, encoded_size, content))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error):
            return None  # the encoder encodes the message, or reports the error

    def _parts_for(
        self, kind: type[Message], persistent: bool, priority: int, id_size: int, short: bool
    ) -> tuple[bytes, bytes, bytes]:
        """Return the parts before the id, between id and timestamp, and between timestamp and size of the body."""
        message_type, after_address, short_head, long_head = _USUAL_BODIES[kind]
        between = NULL + self._address + after_address
        before = _prefix(persistent, priority, message_type, self._destination_type, id_size, len(between))
        parts = before, between, short_head if short else long_head
        self._last_parts = (kind, persistent, priority, id_size, short), *parts
        return parts


_USUAL_BODIES: dict[type[Message], tuple[int, bytes, bytes, bytes]] = {
    TextMessage: (5, 6 * NULL + _TIMESTAMP, _VALUE_DESCRIPTOR + b"\xa1", _VALUE_DESCRIPTOR + b"\xb1"),
    BytesMessage: (
        3,
        3 * NULL + _OCTET_STREAM + 2 * NULL + _TIMESTAMP,
        _DATA_DESCRIPTOR + b"\xa0",
        _DATA_DESCRIPTOR + b"\xb0",
    ),
}
"""By class: the message type, the part from address to timestamp, and the head of a short and of a long body."""

_cached_template = lru_cache(256)(MessageTemplate)


@lru_cache(256)  # most messages have one of a few
def _prefix(  # keyword arguments cost as much as the lookup
    persistent: bool, priority: int, message_type: int, destination_type: int, id_size: int, between_size: int
) -> bytes:
    """Encode everything before the content of the id, for a properties section that ends with the timestamp."""
    id_head = b"\xa1" + _pack_ubyte(id_size) if id_size < _VAR8_LIMIT else b"\xb1" + _pack_uint(id_size)
    size = len(id_head) + id_size + between_size + 8
    if size < _VAR8_LIMIT - 1:
        list_head = bytes((0xC0, size + 1, _PROPERTIES_FIELDS))
    else:
        list_head = b"\xd0" + _pack_uint(size + 4) + _pack_uint(_PROPERTIES_FIELDS)
    head = usual_header_and_annotations((persistent, priority, None), (message_type, destination_type, None))
    return head + _PROPERTIES_DESCRIPTOR + list_head + id_head


_UNENCODABLE = (ArithmeticError, TypeError, ValueError, struct.error)


def encode(message: Message, to: Destination, now: float, naming: AddressStyle = "capability") -> bytes:
    """Encode a message after the producer has set its headers.

    Args:
        message: The message.
        to: The destination.
        now: The current time in seconds since the epoch, from which the time to live is computed.
        naming: The broker's address style, also for addresses in the message.

    Raises:
        MessageFormatError: The message contains a value that cannot be encoded.
    """
    try:
        return encode_message(message, to, now, naming)
    except _UNENCODABLE as error:
        raise MessageFormatError(f"The message to {to} cannot be encoded: {error}.") from error
