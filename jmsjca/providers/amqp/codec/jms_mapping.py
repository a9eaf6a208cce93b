"""The JMS mapping: message ids, values, message types, content types, properties and annotations."""

import binascii
import codecs
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple, cast

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError, NotSupportedError
from jmsjca.messages import (
    GROUP_ID,
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    EntryValue,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Properties,
    PropertyValue,
    Short,
    StreamMessage,
    TextMessage,
    convert,
)
from jmsjca.providers.amqp.codec.addresses import DESTINATION_TYPE, REPLY_TO_TYPE, destination_type_of
from jmsjca.providers.brokers.profile import AddressStyle
from jmsjca.providers.common.amqp_types import (
    NULL,
    Described,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    list_of,
    map_of,
    symbol,
    text,
    write,
)
from jmsjca.providers.common.codec import CROSSING_ANNOTATION, destination_to_json, to_json

__all__ = [
    "CROSSING_STYLES",
    "ENCODED_ID_PREFIX",
    "FILTER_ANNOTATION",
    "ID_KINDS",
    "ID_PREFIX",
    "JAVA_NULL",
    "JAVA_OBJECT",
    "MESSAGE_CLASSES",
    "MESSAGE_TYPE",
    "OCTET_STREAM",
    "TYPED_ENCODING",
    "amqp_id_in_selector",
    "amqp_id_text",
    "application_properties_section",
    "charset_of",
    "crossing_annotation",
    "decode_text",
    "group_fields",
    "header_and_annotations",
    "message_type_of",
    "milliseconds",
    "received_properties",
    "stream_annotations",
    "stream_properties",
    "time_to_live",
    "to_amqp_id",
    "to_jms_correlation_id",
    "to_jms_entry",
    "to_jms_message_id",
    "to_jms_property",
    "usual_header_and_annotations",
]

_LONG_LIMIT, _ULONG_LIMIT = 1 << 63, 1 << 64

ID_PREFIX = "ID:"
"""Prefix of all message ids."""
ENCODED_ID_PREFIX = "ID:AMQP_"
"""Prefix of the strings that represent ids of other AMQP types."""

_STRING, _NO_PREFIX = "ID:AMQP_STRING:", "ID:AMQP_NO_PREFIX:"
_UUID, _ULONG, _BINARY = "ID:AMQP_UUID:", "ID:AMQP_ULONG:", "ID:AMQP_BINARY:"
ID_KINDS = ((_UUID, "0123456789abcdef-"), (_ULONG, "0123456789"), (_BINARY, "0123456789ABCDEF"))
"""The prefixes of ids that are not text, and the characters after each."""
_ENCODED_PREFIXES = (_STRING, _NO_PREFIX, _UUID, _ULONG, _BINARY)


def to_jms_message_id(value: Any) -> str | None:
    """Return a message id in its JMS form, which always begins with "ID:".

    Raises:
        MessageFormatError: As in `to_jms_correlation_id`.
    """
    text = to_jms_correlation_id(value)
    return text if text is None or text.startswith(ID_PREFIX) else _NO_PREFIX + text


def to_jms_correlation_id(value: Any) -> str | None:
    """Return a correlation id in its JMS form; applications may set any string.

    AMQP knows strings, UUIDs, ulongs and bytes. Other numbers, which some senders use, become a ulong if they can be
    one, else their text.

    Raises:
        MessageFormatError: The value has another type.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _STRING + value if value.startswith(_ENCODED_PREFIXES) else value
    if isinstance(value, uuid.UUID):
        return f"{_UUID}{value}"
    if isinstance(value, ULong):
        return f"{_ULONG}{int(value)}"
    if isinstance(value, bytes):
        return _BINARY + value.hex().upper()
    if isinstance(value, int | float):  # AMQP has no such ids, but some senders have
        return f"{_ULONG}{int(value)}" if isinstance(value, int) and 0 <= value < _ULONG_LIMIT else str(value)
    raise MessageFormatError(f"an id is a string, a UUID, a ulong or bytes, not {type(value).__name__}")


def to_amqp_id(text: str) -> Any:
    """Return the AMQP value of a JMS id, of the type that its prefix names.

    Raises:
        MessageFormatError: The text after the prefix is not a value of that type.
    """
    if not text.startswith(ENCODED_ID_PREFIX):
        return text
    prefix = next((prefix for prefix in _ENCODED_PREFIXES if text.startswith(prefix)), None)
    try:
        return text if prefix is None else _ID_DECODERS[prefix](text.removeprefix(prefix))
    except ValueError as error:
        raise MessageFormatError(f"the id {text!r:.100} does not match its prefix") from error


_NOT_ESCAPED = range(0x20, 0x7F)


def amqp_id_text(value: Any) -> str:
    """Return an AMQP id as the text that brokers of Java show: bytes as ``Binary.toString`` of proton-j writes them."""
    if not isinstance(value, bytes):
        return str(value)
    return "".join(chr(byte) if byte in _NOT_ESCAPED and byte != ord("\\") else f"\\x{byte:02x}" for byte in value)


def amqp_id_in_selector(text: str, to_jms: Callable[[Any], str | None] = to_jms_correlation_id) -> Any:
    """Return the AMQP value of a JMS id in a selector.

    Args:
        text: The id.
        to_jms: Returns the JMS id of a value.

    Raises:
        NotSupportedError: No message has such an id.
    """
    with suppress(MessageFormatError):
        value = to_amqp_id(text)
        if to_jms(value) == text or not text.startswith(ENCODED_ID_PREFIX):
            return value
    raise NotSupportedError(f"No message over AMQP has the id {text!r:.100}: take it as the message shows it.")


def _parse_ulong(digits: str) -> ULong:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_ULONG_DIGITS and int(digits) < _ULONG_LIMIT):
        raise ValueError(digits)
    return ULong(digits)


_MAX_ULONG_DIGITS = 20
_ID_DECODERS: dict[str, Callable[[str], Any]] = {
    _STRING: str,
    _NO_PREFIX: str,
    _UUID: uuid.UUID,
    _ULONG: _parse_ulong,
    _BINARY: binascii.unhexlify,
}


def _ulong_to_jms(value: int) -> PropertyValue:
    return Long(value) if value < _LONG_LIMIT else str(int(value))


# Unsigned integers become the next wider signed type, which can represent all of them.
_CONVERTERS: dict[type, Callable[[Any], PropertyValue]] = {
    UByte: Short,
    UShort: Int,
    UInt: Long,
    ULong: _ulong_to_jms,
    Timestamp: Long,
    Symbol: str,
    uuid.UUID: str,
    Described: lambda value: to_jms_property(value.value),
}
_PROPERTY_TYPES = frozenset({type(None), bool, Byte, Short, Int, Long, Float, Double, str, bytes})
_ENTRY_TYPES = _PROPERTY_TYPES | {Char}


def to_jms_property(value: Any) -> PropertyValue:
    """Convert a value to a JMS property. Bytes stay bytes, although JMS has none there; others become strings."""
    kind: type = value.__class__
    return cast("PropertyValue", value) if kind in _PROPERTY_TYPES else _CONVERTERS.get(kind, str)(value)


def to_jms_entry(value: Any) -> EntryValue:
    """Convert a value to an entry of a map or stream message.

    Raises:
        MessageFormatError: The value has no JMS type.
    """
    kind: type = value.__class__
    if kind in _ENTRY_TYPES:
        return cast("EntryValue", value)
    if kind not in _CONVERTERS or kind is Described:
        raise MessageFormatError(f"a map or stream message cannot contain {kind.__name__}")
    return _CONVERTERS[kind](value)


MESSAGE_TYPE = "x-opt-jms-msg-type"
MESSAGE_CLASSES: dict[int, type[Message]] = {
    0: Message,
    1: ObjectMessage,
    2: MapMessage,
    3: BytesMessage,
    4: StreamMessage,
    5: TextMessage,
}
JAVA_NULL = b"\xac\xed\x00\x05p"
"""The serialized Java null, the body of an object message without an object."""

_MESSAGE_TYPES = {kind: number for number, kind in MESSAGE_CLASSES.items()}


def message_type_of(message: Message) -> int:
    """Return the number of a message's type in annotations."""
    number = _MESSAGE_TYPES.get(type(message))
    return _message_type_of_base(message) if number is None else number


def _message_type_of_base(message: Message) -> int:
    """Return the number of the nearest base class: applications may define subclasses."""
    return next(_MESSAGE_TYPES[base] for base in type(message).__mro__ if base in _MESSAGE_TYPES)


OCTET_STREAM = "application/octet-stream"
JAVA_OBJECT = "application/x-java-serialized-object"

_CONTENT_TYPE = re.compile(r"\s*([^\s/;]+)/([^\s/;]+)\s*(?:;(.*))?", re.DOTALL)
_CHARSET = re.compile(r"\s*charset\s*=\s*(?:\"([^\"]+)\"|([^\s\";]+))\s*\Z", re.IGNORECASE)
_TEXT_SUBTYPES = {"json", "xml", "javascript", "ecmascript", "xml-dtd", "xml-external-parsed-entity"}
_TEXT_SUFFIXES = ("+json", "+xml")
# Text encodings that other clients use. Python has more codecs; some of them are slow, or do not encode text.
_SUPPORTED_CODECS = re.compile(
    r"(utf|iso8859|ascii|latin|cp\d|windows|koi8|mac|gb|big5|hz|shift_jis|euc|iso2022|johab|tis|ptcp)[\w-]*\Z"
)


def charset_of(content_type: str) -> str | None:
    """Return the text encoding of a content type; None if the content is not text.

    Raises:
        MessageFormatError: The value is not a content type, or its charset is unknown.
    """
    parts = _CONTENT_TYPE.fullmatch(content_type)
    if parts is None:
        raise MessageFormatError(f"{content_type!r:.100} is not a content type")
    if not _is_text(parts[1].lower(), parts[2].lower()):
        return None
    named = [parameter for parameter in (parts[3] or "").split(";") if "charset" in parameter.lower()]
    return _codec_of(named[0]) if named else "utf-8"


def decode_text(encoded: bytes, charset: str) -> str:
    """Decode text. Without a byte order mark the byte order is big-endian.

    Raises:
        ValueError: The bytes are not valid in that charset.
    """
    marks = _BYTE_ORDER_MARKS.get(charset)
    return encoded.decode(charset if marks is None or encoded.startswith(marks) else f"{charset}-be")


_BYTE_ORDER_MARKS = {
    "utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}


def _is_text(kind: str, subtype: str) -> bool:
    return kind == "text" or (kind == "application" and (subtype in _TEXT_SUBTYPES or subtype.endswith(_TEXT_SUFFIXES)))


def _codec_of(parameter: str) -> str:
    found = _CHARSET.match(parameter)
    if found is None:
        raise MessageFormatError(f"{parameter!r:.100} does not name a charset")
    name = found[1] or found[2]
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""
    if not _SUPPORTED_CODECS.match(codec):
        raise MessageFormatError(f"the charset {name!r:.100} is unknown")
    return codec


GROUP_SEQUENCE = "JMSXGroupSeq"
REPLY_GROUP = "JMS_AMQP_REPLY_TO_GROUP_ID"
USER = "JMSXUserID"
TIME_TO_LIVE = "JMS_AMQP_TTL"
TYPED_ENCODING = "JMS_AMQP_TYPED_ENCODING"

_IN_OTHER_SECTIONS = frozenset(
    {GROUP_ID, GROUP_SEQUENCE, REPLY_GROUP, TIME_TO_LIVE, TYPED_ENCODING, USER, "JMSXDeliveryCount"}
)
_APPLICATION_PROPERTIES_DESCRIPTOR = b"\x00\x53\x74"
_UINT_LIMIT, _INT_LIMIT = 1 << 32, 1 << 31
_MAX_CACHED_CHARACTERS = 128  # other clients choose the names in messages that are forwarded


def application_properties_section(properties: Properties) -> bytes:
    """Encode the application properties section; empty without such properties."""
    parts: list[bytes] = []
    for name, value in properties.items():
        if name not in _IN_OTHER_SECTIONS:
            parts += (_cached_name(name) if len(name) <= _MAX_CACHED_CHARACTERS else text(name), write(value))
    return _APPLICATION_PROPERTIES_DESCRIPTOR + map_of(parts) if parts else b""


_cached_name = lru_cache(1024)(text)  # applications use few names


def group_fields(properties: Properties) -> list[bytes]:
    """Encode the fields group-id, group-sequence and reply-to-group-id; empty if none is set."""
    if _IN_OTHER_SECTIONS.isdisjoint(properties):
        return []
    sequence = properties.get(GROUP_SEQUENCE)
    number = NULL if sequence is None else write(UInt(_expect_integer(GROUP_SEQUENCE, sequence) % _UINT_LIMIT))
    return [_text_or_null(properties.get(GROUP_ID)), number, _text_or_null(properties.get(REPLY_GROUP))]


def _time_to_live_property(properties: Properties) -> int | None:
    """Return the time to live in milliseconds that a property sets instead of the producer; None without one.

    Raises:
        MessageFormatError: The value is not an unsigned 32-bit integer.
    """
    if TIME_TO_LIVE not in properties or properties[TIME_TO_LIVE] is None:
        return None
    milliseconds = _expect_integer(TIME_TO_LIVE, properties[TIME_TO_LIVE])
    if not 0 <= milliseconds < _UINT_LIMIT:
        raise MessageFormatError(f"{TIME_TO_LIVE} is {milliseconds}, not between 0 and 2 to the power of 32")
    return milliseconds


def received_properties(
    values: Mapping[Any, Any], fields: list[Any], annotated: Mapping[str, PropertyValue], *, typed: bool
) -> Properties:
    """Return the JMS properties of a received message.

    Args:
        values: The application properties.
        fields: The fields of the properties section.
        annotated: Properties that arrived as annotations.
        typed: True if the body is an object of AMQP types.
    """
    found: dict[str, Any] = {
        str(name): value if value.__class__ in _PROPERTY_TYPES else to_jms_property(value)
        for name, value in values.items()
    }
    found |= annotated
    user, (group, sequence, reply_group) = fields[1], fields[10:13]
    if user is not None:
        found[USER] = user.decode(errors="replace") if isinstance(user, bytes) else str(user)
    if group is not None:
        found[GROUP_ID] = str(group)
    if sequence is not None:
        found[GROUP_SEQUENCE] = Int((sequence + _INT_LIMIT) % _UINT_LIMIT - _INT_LIMIT)
    if reply_group is not None:
        found[REPLY_GROUP] = str(reply_group)
    if typed:
        found[TYPED_ENCODING] = True
    return Properties.received(found)


def _expect_integer(name: str, value: PropertyValue) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise MessageFormatError(f"{name} is an integer, not {type(value).__name__}")


def _text_or_null(value: PropertyValue) -> bytes:
    return NULL if value is None else text(str(value))


_HEADER_DESCRIPTOR, _ANNOTATIONS_DESCRIPTOR = b"\x00\x53\x70", b"\x00\x53\x72"
_TTL_LIMIT = 1 << 32  # milliseconds, about 50 days: beyond it a message has only its absolute expiry time
_MAX_PRIORITY = 9
_PERSISTENT = DeliveryMode.PERSISTENT  # an attribute of an Enum costs as much as a call
_DELIVERY_TIME = symbol("x-opt-delivery-time")  # a long, as in Java clients


def time_to_live(message: Message, properties: Properties | None, now: float) -> int | None:
    """Return the time to live of the header in milliseconds; None without one.

    Raises:
        MessageFormatError: A property sets a time to live that is not an unsigned 32-bit integer.
    """
    own, expiration = _time_to_live_property(properties) if properties else None, message.expiration
    if own is not None or expiration is None:
        return own or None
    left = max(milliseconds(expiration) - round(now * 1000), 1)  # 0 would mean that the message never expires
    return left if left < _TTL_LIMIT else None


def header_and_annotations(
    message: Message, kind: int, to: Destination, ttl: int | None, more: tuple[bytes, ...] | list[bytes] = ()
) -> bytes:
    """Encode the header and message annotations sections.

    Args:
        message: The message.
        kind: The number of its type.
        to: The destination.
        ttl: The time to live in milliseconds; None without one.
        more: Further annotations, encoded: names and values. A tuple if other messages have the same ones.
    """
    reply_to, due = message.reply_to, message.delivery_time
    header = message.delivery_mode is _PERSISTENT, message.priority, ttl
    kinds = kind, destination_type_of(to), None if reply_to is None else destination_type_of(reply_to)
    if due is None and isinstance(more, tuple):
        return usual_header_and_annotations(header, kinds, more)
    annotations = [*_type_annotations(*kinds), *more]
    if due is not None:
        annotations += [_DELIVERY_TIME, write(Long(milliseconds(due)))]
    return _header_section(*header) + _ANNOTATIONS_DESCRIPTOR + map_of(annotations)


@lru_cache(256)  # most messages have one of a few
def usual_header_and_annotations(
    header: tuple[bool, int, int | None], kinds: tuple[int, int, int | None], more: tuple[bytes, ...] = ()
) -> bytes:
    """Encode both sections without a delivery time.

    Args:
        header: Whether the message is persistent, its priority and its time to live in milliseconds.
        kinds: The numbers of the types of the message, its destination and its reply destination.
        more: Further annotations, encoded.
    """
    return _header_section(*header) + _ANNOTATIONS_DESCRIPTOR + map_of([*_type_annotations(*kinds), *more])


@lru_cache(256)
def _header_section(persistent: bool, priority: int, ttl: int | None) -> bytes:
    # Also the default priority is written: RabbitMQ gives a message without a priority one of the lowest.
    fields = [write(persistent), write(UByte(min(max(priority, 0), _MAX_PRIORITY)))]
    return _HEADER_DESCRIPTOR + list_of(fields if ttl is None else [*fields, write(UInt(ttl))])


@lru_cache(64)
def _type_annotations(kind: int, to: int, reply: int | None) -> list[bytes]:
    """Encode the annotations with the types of the message, its destination and its reply destination."""
    parts = [symbol(MESSAGE_TYPE), write(Byte(kind)), symbol(DESTINATION_TYPE), write(Byte(to))]
    return parts if reply is None else [*parts, symbol(REPLY_TO_TYPE), write(Byte(reply))]


def milliseconds(moment: datetime) -> int:
    """Return a time as milliseconds since the epoch."""
    return round(moment.timestamp() * 1000)


CROSSING_STYLES: set[AddressStyle] = {"capability", "encoded"}
"""The address styles of brokers that drop a part of a message which they deliver over STOMP: Artemis and RabbitMQ 4."""

_CROSSING_ANNOTATION = symbol(CROSSING_ANNOTATION)
_KIND_NAMES: dict[type[Message], str] = {MapMessage: "map", StreamMessage: "stream"}


def crossing_annotation(
    message: Message, properties: Properties | None, naming: AddressStyle
) -> tuple[bytes, ...] | list[bytes]:
    """Return the encoded annotation, name and value, with the metadata for a receiver over STOMP; else empty.

    It is a tuple if it has no values of properties: other messages have the same one.

    Artemis delivers all properties as text. RabbitMQ 4 drops other values than text and integers of 32 and 64 bits, the
    type, the group, and the form of a reply destination.
    """
    types = tuple([(name, value.__class__) for name, value in properties.items()]) if properties else ()
    characters, headers = sum(map(len, properties.keys())) if properties else 0, None
    if naming == "encoded":
        word, reply_to = message.type, message.reply_to
        headers = message.__class__, word, reply_to
        characters += len(word or "")
        if reply_to is not None:  # a temporary destination references a connection
            characters += _MAX_CACHED_SHAPE + 1 if reply_to.temporary else len(reply_to.name)
    if characters > _MAX_CACHED_SHAPE:
        annotation, begin, dropped = _crossing_shape(types, headers)
        annotation = [*annotation]
    else:
        annotation, begin, dropped = _cached_crossing_shape(types, headers)
    if not dropped or not properties:
        return annotation
    values = [f"{label}{to_json(convert(properties[name], 'string'))}" for name, label in dropped]
    return [_CROSSING_ANNOTATION, text(f"{begin}{','.join(values)}}}}}")]


class _CrossingShape(NamedTuple):
    """The metadata of messages whose properties have the same names and types.

    Attributes:
        annotation: The encoded annotation, if it has no values; else empty.
        begin: The metadata before the values, as JSON.
        dropped: The properties whose values RabbitMQ 4 drops: the name, and the name as JSON with a colon.
    """

    annotation: tuple[bytes, ...] | list[bytes]
    begin: str
    dropped: Sequence[tuple[str, str]]


def _crossing_shape(
    types: tuple[tuple[str, type], ...], headers: tuple[type[Message], str | None, Destination | None] | None
) -> _CrossingShape:
    """Return the part of the metadata that has no values of properties.

    Args:
        types: The names and classes of the properties.
        headers: The class, the JMS type and the reply destination of the message; None for Artemis.
    """
    own = {name: told for name, told in types if name not in _IN_OTHER_SECTIONS}
    ours: dict[str, Any] = {"t": {name: _TYPE_NAMES[told] for name, told in own.items() if told in _TYPE_NAMES}}
    if headers is None:
        ours["p"] = {name: None for name, told in own.items() if told is NoneType}
        dropped: list[str] = []
    else:
        kind, ours["y"], reply_to = headers
        ours |= {"k": _KIND_NAMES.get(kind), "r": reply_to and destination_to_json(reply_to)}
        dropped = [name for name, told in own.items() if told is NoneType or told in _DROPPED_BY_RABBITMQ]
        dropped += [name for name, _ in types if name == GROUP_ID]
    told = {name: value for name, value in ours.items() if value not in (None, {})}
    begin = to_json(told)
    return _CrossingShape(
        (_CROSSING_ANNOTATION, text(begin)) if told and not dropped else (),
        f'{begin[:-1]}{"," if told else ""}"p":{{',
        [(name, f"{to_json(name)}:") for name in dropped],
    )


_cached_crossing_shape = lru_cache(64)(_crossing_shape)
_MAX_CACHED_SHAPE = 512  # characters of names: other clients choose them in messages that are forwarded
_DROPPED_BY_RABBITMQ: dict[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Float: "float",
    Double: "double",
    float: "double",
}
_TYPE_NAMES: dict[type, str] = {**_DROPPED_BY_RABBITMQ, Int: "int", Long: "long", int: "long"}

FILTER_ANNOTATION = "x-stream-filter-value"

_FILTER = "JMS_AMQP_STREAM_FILTER"
_ANNOTATIONS_BY_PROPERTY = {_FILTER: FILTER_ANNOTATION, "JMS_AMQP_STREAM_OFFSET": "x-stream-offset"}
_ENCODED_FILTER_ANNOTATION = symbol(FILTER_ANNOTATION)


def stream_annotations(properties: Properties) -> list[bytes]:
    """Return the encoded annotation, name and value, of the filter value among properties; empty without one.

    Raises:
        MessageFormatError: The filter value is not text.
    """
    value = properties.get(_FILTER)
    if value is None:
        return []
    if not isinstance(value, str):
        raise MessageFormatError(f"{_FILTER} is text, not {type(value).__name__}")
    return [_ENCODED_FILTER_ANNOTATION, text(value)]


def stream_properties(annotations: Mapping[Any, Any]) -> dict[str, PropertyValue]:
    """Return the offset and the filter value of a received message as properties, if it has them."""
    told = _ANNOTATIONS_BY_PROPERTY.items()
    return {name: to_jms_property(annotations[key]) for name, key in told if key in annotations}
