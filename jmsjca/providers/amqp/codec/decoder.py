"""Decoding of received messages: the body immediately, headers on demand."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, cast

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PlainData,
    StreamMessage,
    TextMessage,
)
from jmsjca.providers.amqp.codec.addresses import DESTINATION_TYPE, REPLY_TO_TYPE, ReceiveContext, received_destination
from jmsjca.providers.amqp.codec.jms_mapping import (
    JAVA_NULL,
    JAVA_OBJECT,
    MESSAGE_CLASSES,
    MESSAGE_TYPE,
    OCTET_STREAM,
    charset_of,
    decode_text,
    received_properties,
    stream_properties,
    to_jms_correlation_id,
    to_jms_entry,
    to_jms_message_id,
)
from jmsjca.providers.amqp.codec.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    MAX_CACHED_BYTES,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Beginning,
    EncodedMessage,
    Sections,
    end_of_value,
    expect_type,
    read_header,
    values_of,
)
from jmsjca.providers.common.amqp_types import MALFORMED, read, read_uint32
from jmsjca.providers.common.codec import (
    METADATA_HEADER,
    LazyHeaders,
    decode_kind,
    decode_string,
    destination_from_json,
    encoding_of,
    expect_text,
    property_from_text,
    to_datetime,
)

__all__ = ["UNDECODABLE", "ReceivedHeaders", "decode", "decode_body", "decode_usual_body", "undecodable_error"]

UNDECODABLE = (*MALFORMED, OSError)
"""The errors of decoding arbitrary bytes, including timestamps out of range."""

logger = get_logger("jmsjca.amqp")

_DELIVERY_TIME = "x-opt-delivery-time"
_MAX_PRIORITY, _DEFAULT_PRIORITY = 9, 4
_STRING_CODES = {0xA1, 0xB1}  # symbols and characters are not strings


def undecodable_error(source: Destination | None, error: Exception) -> MessageFormatError:
    """Return the error for a message that cannot be decoded."""
    return MessageFormatError(f"A message from {source} cannot be decoded: {error}.")


def _destination(encoded: EncodedMessage) -> Destination | None:
    to = received_destination(encoded.fields[2], encoded.annotations, DESTINATION_TYPE, encoded.context)
    return to or encoded.context.source


def _reply_to(encoded: EncodedMessage) -> Destination | None:
    return received_destination(encoded.fields[4], encoded.annotations, REPLY_TO_TYPE, encoded.context)


def _delivery_mode(beginning: Beginning) -> DeliveryMode:
    return DeliveryMode.PERSISTENT if beginning.header.durable else DeliveryMode.NON_PERSISTENT


def _priority(beginning: Beginning) -> int:
    priority = beginning.header.priority
    return _DEFAULT_PRIORITY if priority is None else min(int(priority), _MAX_PRIORITY)


def _delivery_time(beginning: Beginning) -> datetime | None:
    return to_datetime(beginning.annotations.get(_DELIVERY_TIME) or None)


@lru_cache(256)  # as many as beginnings are kept
def _shared_headers(beginning: Beginning, failures: int, counts: bool) -> Mapping[str, Any]:
    """Return the headers of all messages with the same beginning, and as many failures."""
    return {
        "delivery_mode": _delivery_mode(beginning),
        "priority": _priority(beginning),
        "delivery_time": _delivery_time(beginning),
        "delivery_count": beginning.header.jms_delivery_count(failures, counts=counts) or 0,
        "redelivered": beginning.header.redelivered(failures, counts=counts),
    }


def _expiration(encoded: EncodedMessage) -> datetime | None:
    """Return the absolute expiry time; without one the time to live counts from the arrival."""
    told, time_to_live = encoded.fields[8], encoded.beginning.header.ttl
    if told or not time_to_live:
        return to_datetime(told or None)
    return to_datetime(round(encoded.arrival_time * 1000) + time_to_live)


def _properties(encoded: EncodedMessage) -> Any:
    values = encoded.map_of_section(APPLICATION_PROPERTIES)
    annotations = encoded.beginning.annotations
    if _ORIGIN_ADDRESS in annotations:
        values = {**values, **_broker_origin(annotations)}
    annotated = stream_properties(annotations) if encoded.context.naming == "encoded" else {}
    return received_properties(values, encoded.fields, annotated, typed=encoded.is_typed)


def _broker_origin(annotations: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the origin that Artemis records for a dead-lettered message, under the names that its own clients use."""
    found = {name: annotations.get(key) for key, name in _ORIGIN_PROPERTIES.items()}
    return {name: value for name, value in found.items() if isinstance(value, str | int)}


def _delivery_count(encoded: EncodedMessage) -> int:
    return read_header(encoded.raw).jms_delivery_count(encoded.failures, counts=encoded.context.counts_deliveries) or 0


def _redelivered(encoded: EncodedMessage) -> bool:
    return read_header(encoded.raw).redelivered(encoded.failures, counts=encoded.context.counts_deliveries)


_ORIGIN_ADDRESS = "x-opt-ORIG-ADDRESS"
_ORIGIN_PROPERTIES = {
    _ORIGIN_ADDRESS: "_AMQ_ORIG_ADDRESS",
    "x-opt-ORIG-QUEUE": "_AMQ_ORIG_QUEUE",
    "x-opt-ORIG-ROUTING-TYPE": "_AMQ_ORIG_ROUTING_TYPE",
}

_DECODERS: dict[str, Callable[[EncodedMessage], Any]] = {
    "message_id": lambda encoded: to_jms_message_id(encoded.fields[0]),
    "correlation_id": lambda encoded: to_jms_correlation_id(encoded.fields[5]),
    "destination": _destination,
    "reply_to": _reply_to,
    "type": lambda encoded: _text(encoded.fields[3]),
    "delivery_mode": lambda encoded: _delivery_mode(encoded.beginning),
    "priority": lambda encoded: _priority(encoded.beginning),
    "timestamp": lambda encoded: to_datetime(encoded.fields[9] or None),
    "expiration": _expiration,
    "delivery_time": lambda encoded: _delivery_time(encoded.beginning),
    "properties": _properties,
    "delivery_count": _delivery_count,
    "redelivered": _redelivered,
}
_SHARED = {"delivery_mode", "priority", "delivery_time", "delivery_count", "redelivered"}
_OWN_DECODERS = [(name, decoder) for name, decoder in _DECODERS.items() if name not in _SHARED]
_ALONE = {"message_id", "properties", "delivery_count", "redelivered"}  # what listeners need, often without the others
_FEW = 2  # other headers, of which each costs less than all together


class ReceivedHeaders(EncodedMessage, LazyHeaders):
    """The headers of a received message.

    The mapping is the encoded message itself, which saves one object for each message.
    """

    __slots__ = ()

    decoders = _DECODERS
    undecodable = UNDECODABLE

    def whole(  # pyright: ignore[reportIncompatibleVariableOverride]  # a method fits
        self, name: str
    ) -> Mapping[str, Any] | None:
        """Return all headers if many are read; None if few are, or if one is damaged."""
        if name not in _ALONE:
            self.reads += 1
        if self.reads <= _FEW or self.is_damaged:
            return None
        self.context.habit.note()
        return self.decode_all()

    def decode_all(self) -> Mapping[str, Any] | None:
        """Return all headers; None if one is damaged."""
        try:
            shared = _shared_headers(self.beginning, self.failures, self.context.counts_deliveries)
            return {**shared, **{name: decoder(self) for name, decoder in _OWN_DECODERS}}
        except UNDECODABLE:
            self.is_damaged = True
            return None

    def decoding_error(self, error: Exception) -> MessageFormatError:
        """Return the error for a header that cannot be decoded."""
        return undecodable_error(self.context.source, error)


# The headers of STOMP frames that Artemis and RabbitMQ 4 turn into properties.
_FRAME_HEADERS = frozenset(
    (
        *("JMSXDeliveryCount", "content-encoding", "content-length", "content-type", "destination"),
        *("destination-type", "receipt", "transaction", "_AMQ_CONTENT_TYPE"),
    )
)
_BASIC_TYPE = "x-basic-type"  # the annotation in which RabbitMQ 4 has the type of a message over STOMP and AMQP 0-9-1


_METADATA_MARK, _COUNT_MARK = METADATA_HEADER.encode(), b"JMSXDeliveryCount"
_LENGTH_MARK = b"content-length"  # of other clients, whose messages have no type number either


def _holds_mark(raw: bytes, begin: int, end: int) -> bool:
    """Return True if encoded properties may be the headers of a STOMP frame."""
    return raw.find(_METADATA_MARK, begin, end) >= 0 or raw.find(_COUNT_MARK, begin, end) >= 0


def _is_marked(encoded: EncodedMessage, *, has_number: bool = True) -> bool:
    begin = encoded.sections.get(APPLICATION_PROPERTIES)
    if begin is None:
        return False
    raw, end = encoded.raw, end_of_value(encoded.raw, begin)
    return _holds_mark(raw, begin, end) or (not has_number and raw.find(_LENGTH_MARK, begin, end) >= 0)


def _came_over_stomp(values: Mapping[Any, Any]) -> bool:
    """Return True for the properties that Artemis and RabbitMQ 4 make of a STOMP frame."""
    if METADATA_HEADER in values or "content-length" in values:
        return True
    return values.get("JMSXDeliveryCount", 0) is None


def _decode_crossed_body(
    encoded: EncodedMessage, section: int | None, content: Any
) -> tuple[type[Message], Any] | None:
    """Return the class and the body of a message that was sent over STOMP; None for others, and for an unknown kind."""
    values = encoded.map_of_section(APPLICATION_PROPERTIES)
    if _came_over_stomp(values) and isinstance(encoded, ReceivedHeaders):
        encoded.__class__ = CrossedHeaders
        body = content if section == DATA else content.encode() if isinstance(content, str) else b""
        if kind := encoded.metadata.get("k"):
            return decode_kind(kind, body)
        told = values.get("_AMQ_CONTENT_TYPE")
        charset = _charset_or_none(told) if isinstance(told, str) else None
        if charset and isinstance(content, bytes) and encoding_of(values.get("content-encoding")) is None:
            return TextMessage, decode_text(content, charset)
    return None


class CrossedHeaders(ReceivedHeaders):
    """The headers of a message that was sent over STOMP: brokers show them as properties, ours with metadata."""

    __slots__ = ()

    def whole(self, name: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]  # a method fits
        """Return None: each header is decoded alone."""

    def decode_all(self) -> Mapping[str, Any]:
        """Return all headers."""
        return {name: self[name] for name in self}


def _crossed(name: str, key: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the decoder of a header that prefers the metadata."""

    def decoder(encoded: ReceivedHeaders) -> Any:
        """Decode the header."""
        told = encoded.metadata.get(key)
        return read(told) if told is not None else _DECODERS[name](encoded)

    return decoder


def _crossed_type(encoded: EncodedMessage) -> str | None:
    ours = encoded.metadata
    return expect_text(ours.get("y")) or _text(encoded.fields[3]) or _text(encoded.annotations.get(_BASIC_TYPE))


def _crossed_id(encoded: EncodedMessage) -> Any:
    shown = _DECODERS["message_id"](encoded)  # by which the broker's management finds the message
    told = encoded.metadata.get("i")
    return expect_text(told) if shown is None else shown


def _crossed_expiration(encoded: EncodedMessage) -> Any:
    told = encoded.metadata.get("x")
    # In the past it is no longer so: the broker has removed it, as from a message that it dead-letters.
    is_over = told is None or told <= encoded.arrival_time * 1000
    return _DECODERS["expiration"](encoded) if is_over else to_datetime(told)


def _crossed_properties(encoded: EncodedMessage) -> Any:
    values = encoded.map_of_section(APPLICATION_PROPERTIES)
    ours = encoded.metadata
    hidden = {*_FRAME_HEADERS, *(("timestamp",) if ours else ())}
    shown = {
        name: value
        for name, value in values.items()
        if name not in hidden and not str(name).startswith(METADATA_HEADER)
    }
    shown |= ours.get("p", {})
    types = ours.get("t", {})
    typed = {
        name: property_from_text(value, types.get(name)) if isinstance(value, str) else value
        for name, value in shown.items()
    }
    return received_properties(typed, encoded.fields, {}, typed=encoded.is_typed)


CrossedHeaders.decoders = {
    **_DECODERS,
    "message_id": _crossed_id,
    "correlation_id": _crossed("correlation_id", "c", expect_text),
    "type": _crossed_type,
    "reply_to": _crossed("reply_to", "r", destination_from_json),
    "timestamp": _crossed("timestamp", "s", to_datetime),
    "expiration": _crossed_expiration,
    "delivery_time": _crossed("delivery_time", "d", to_datetime),
    "properties": _crossed_properties,
}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


class _ConvertedHeaders(CrossedHeaders):
    """The headers of a message that RabbitMQ 3 converted to AMQP 1.0: its subject is the routing key, and no type."""

    __slots__ = ()


_ConvertedHeaders.decoders = {**_DECODERS, "type": lambda _: None}


def _was_converted(encoded: EncodedMessage) -> bool:
    """Return True for a message that RabbitMQ 3 received over STOMP or AMQP 0-9-1."""
    source = encoded.context.source
    return encoded.context.naming == "path" and source is not None and _text(encoded.fields[3]) == source.name


@lru_cache(maxsize=1000)  # once for each queue
def _warn_of_conversion(source: Destination | None) -> None:
    logger.warning(
        "%s holds messages that were sent over STOMP or AMQP 0-9-1: RabbitMQ 3 delivers them over AMQP 1.0 without"
        " their properties, type and group, and a map as bytes. Receive them over the protocol by which they are sent,"
        " or use RabbitMQ 4.",
        source,
    )


def decode_body(encoded: EncodedMessage) -> tuple[type[Message], Any]:
    """Return the class of a message and its body, for `Message.received`.

    Raises:
        MessageFormatError: The message type is unknown, or the body does not match it.
        MALFORMED: The bytes are not a body.
    """
    return decode_usual_body(encoded) or _decode_any_body(encoded)


def _decode_any_body(encoded: EncodedMessage) -> tuple[type[Message], Any]:
    section = _body_section(encoded.sections)
    content = None if section is None else _read_content(encoded, section)
    number = encoded.annotations.get(MESSAGE_TYPE)
    is_marked = _is_marked(encoded, has_number=number is not None)
    if is_marked and (crossed := _decode_crossed_body(encoded, section, content)):
        return crossed
    if number is None and isinstance(encoded, ReceivedHeaders) and _was_converted(encoded):
        encoded.__class__ = _ConvertedHeaders
        _warn_of_conversion(encoded.context.source)
    told = None if number is None else MESSAGE_CLASSES.get(number)
    if section == DATA and told is not BytesMessage and encoded.content_encoding is not None:
        return BytesMessage, content  # the content type holds after decoding (AMQP 1.0, section 3.2.4)
    kind = _inferred_type(encoded, section, content) if number is None else told
    if kind is None:
        raise MessageFormatError(f"its annotation {MESSAGE_TYPE} is {number!r:.100}, which is no message type")
    return kind, _BODY_DECODERS[kind](encoded, section, content)


def _body_section(sections: Sections) -> int | None:
    """Return the code of the body section; None without a body."""
    data, sequence, value = DATA in sections, SEQUENCE in sections, VALUE in sections
    if data + sequence + value > 1:
        raise MessageFormatError("it has bodies of several kinds")
    if data:
        return DATA
    return SEQUENCE if sequence else VALUE if value else None


def _read_content(encoded: EncodedMessage, section: int) -> Any:
    begin = encoded.sections[section]
    if section == DATA:
        return encoded.data_from(begin)
    if section == VALUE:
        return read(encoded.raw, begin)[0]
    return [item for value in values_of(encoded.raw, SEQUENCE, begin) for item in _expect_or_none(value, list) or ()]


def _inferred_type(encoded: EncodedMessage, section: int | None, content: Any) -> type[Message]:
    """Infer the class of a message without a type annotation from its body and content type."""
    if section == VALUE:
        if content is None or encoded.raw[encoded.sections[VALUE]] in _STRING_CODES:
            return TextMessage
        return BytesMessage if isinstance(content, bytes) else ObjectMessage
    if section == SEQUENCE:
        return ObjectMessage
    told = encoded.content_type
    if told == JAVA_OBJECT:
        return ObjectMessage
    if told is not None and _charset_or_none(told):
        return TextMessage
    return BytesMessage if section == DATA or told in {None, OCTET_STREAM} else Message


def _charset_or_none(content_type: str) -> str | None:
    """Return the text encoding of a content type; None if it is not text, invalid or unknown."""
    with suppress(MessageFormatError):
        return charset_of(content_type)
    return None


def _text_body(encoded: EncodedMessage, section: int | None, content: Any) -> str | None:
    if section == DATA:
        return decode_text(content, _charset_or_none(encoded.content_type or "") or "utf-8")
    return cast("str | None", _expect_or_none(content, str))


def _bytes_body(_encoded: EncodedMessage, _section: int | None, content: Any) -> bytes | None:
    return content if content is None or isinstance(content, bytes) else expect_type(content, bytes)


def _map_body(_encoded: EncodedMessage, _section: int | None, content: Any) -> dict[str, EntryValue]:
    entries: dict[str, Any] = _expect_or_none(content, dict) or {}
    return {name: to_jms_entry(value) for name, value in entries.items()}


def _stream_body(_encoded: EncodedMessage, _section: int | None, content: Any) -> list[EntryValue]:
    return [to_jms_entry(value) for value in _expect_or_none(content, list) or ()]


def _object_body(encoded: EncodedMessage, section: int | None, content: Any) -> bytes | PlainData | None:
    if section == DATA:
        return None if content in {b"", JAVA_NULL} else content
    if encoded.content_type == JAVA_OBJECT:
        _expect_or_none(content, bytes)
    encoded.is_typed = encoded.content_type != JAVA_OBJECT
    return PlainData(content) if encoded.is_typed and section is not None else content


def _no_body(encoded: EncodedMessage, section: int | None, content: Any) -> None:
    """Return None: a body section of a message without a body is ignored."""


_BODY_DECODERS: dict[type[Message], Callable[[EncodedMessage, int | None, Any], Any]] = {
    TextMessage: _text_body,
    BytesMessage: _bytes_body,
    MapMessage: _map_body,
    StreamMessage: _stream_body,
    ObjectMessage: _object_body,
    Message: _no_body,
}


def _expect_or_none(content: Any, kind: type) -> Any:
    return None if content is None else expect_type(content, kind)


_DecodedBody = tuple[type[Message], Any]

_DESCRIPTOR_BYTES = 3  # before the value of a section, in the encoding that all clients use
_VAR8_HEAD, _VAR32_HEAD = 2, 5  # bytes of constructor and size before the content
_APPLICATION_PROPERTIES_DESCRIPTOR = bytes((0, 0x53, APPLICATION_PROPERTIES))


class _BodyLayout(NamedTuple):
    """The encoding of a body that is one section at the end."""

    kind: type[Message]
    section: int
    mark: bytes  #: the bytes before its value
    heads: Mapping[int, int]  #: by constructor: the number of bytes of constructor and size


_BYTES_LAYOUT = _BodyLayout(BytesMessage, DATA, bytes((0, 0x53, DATA)), {0xA0: _VAR8_HEAD, 0xB0: _VAR32_HEAD})
_TEXT_LAYOUT = _BodyLayout(TextMessage, VALUE, bytes((0, 0x53, VALUE)), {0xA1: _VAR8_HEAD, 0xB1: _VAR32_HEAD})
_NO_PREFIX = (b"", _BYTES_LAYOUT, Beginning(b"", None, None))
# Of the previous message, up to its properties section.
_last_prefix: list[tuple[bytes, _BodyLayout, Beginning]] = [_NO_PREFIX]


def decode_usual_body(encoded: EncodedMessage) -> _DecodedBody | None:
    """Return the class and body of a usual message at a part of the usual cost.

    A usual message is a bytes or text message with a type annotation and a body in one section at the end. If it begins
    like the previous one, it shares the decoded header and annotations of that message.

    Returns:
        The class and the body; None for any other message.

    Raises:
        MALFORMED: The bytes are not a message.
    """
    return _decode_like_last(encoded) or _decode_layout(encoded)


def _decode_like_last(encoded: EncodedMessage) -> _DecodedBody | None:
    raw = encoded.raw
    prefix, form, beginning = _last_prefix[0]
    if not prefix or not raw.startswith(prefix):
        return None
    begin = len(prefix)
    sections = {PROPERTIES: begin}
    at = end_of_value(raw, begin)
    if raw.startswith(_APPLICATION_PROPERTIES_DESCRIPTOR, at):
        sections[APPLICATION_PROPERTIES] = begin = at + _DESCRIPTOR_BYTES
        at = end_of_value(raw, begin)
        if _holds_mark(raw, begin, at):
            return None
    body = _fast_content(raw, at + _DESCRIPTOR_BYTES, form) if raw.startswith(form.mark, at) else None
    if body is not None:
        encoded.sections, encoded.beginning = sections, beginning
    return body


def _decode_layout(encoded: EncodedMessage) -> _DecodedBody | None:
    raw, sections = encoded.raw, encoded.sections
    form = _BYTES_LAYOUT if DATA in sections else _TEXT_LAYOUT
    number: Any = encoded.annotations.get(MESSAGE_TYPE)
    begin = sections.get(form.section)
    if begin is None or SEQUENCE in sections or MESSAGE_CLASSES.get(number) is not form.kind or _is_marked(encoded):
        return None
    if PROPERTIES in sections and sections[PROPERTIES] <= MAX_CACHED_BYTES:
        _last_prefix[0] = encoded.beginning.raw, form, encoded.beginning
    return _fast_content(raw, begin, form)


def _fast_content(raw: bytes, begin: int, form: _BodyLayout) -> _DecodedBody | None:
    head = form.heads.get(raw[begin])
    if head is None:
        return None
    content = raw[begin + head :]
    if len(content) != (raw[begin + 1] if head == _VAR8_HEAD else read_uint32(raw, begin + 1)[0]):
        return None  # another section follows, or the body is truncated
    return form.kind, decode_string(content) if form is _TEXT_LAYOUT else content


def decode(raw: bytes, context: ReceiveContext, arrival_time: float = 0.0, failures: int = 0) -> Message:
    """Decode a message, read-only. Each header is decoded on access.

    Args:
        raw: The encoded message.
        context: How the message was received.
        arrival_time: Seconds since the epoch; a time to live without an absolute expiry time counts from then.
        failures: The number of failures that this client counts because the broker does not.

    Raises:
        MessageFormatError: The bytes are not a message. Damaged headers raise it on access.
    """
    try:
        headers = ReceivedHeaders(raw, context, arrival_time, failures)
        kind, body = decode_body(headers)
        habit = context.habit
        if habit.ahead <= 0:
            return kind.received(body, headers)
        habit.ahead -= 1
        return kind.received(body, headers, headers.decode_all())
    except UNDECODABLE as error:
        raise undecodable_error(context.source, error) from error
