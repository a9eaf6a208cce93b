"""Messages as AMQP, mapped as Java's JMS clients map them, so that they see the right types."""

from datetime import UTC, datetime
from typing import Any

from proton import Message as WireMessage
from proton import byte, symbol

from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import MessageFormatError, NotSupportedError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    Properties,
    PropertyValue,
    StreamMessage,
    TextMessage,
)
from jmsjca.providers.amqp.header import Header
from jmsjca.providers.amqp.sections import UNDECODABLE, check_sections
from jmsjca.providers.amqp.values import from_wire, owned, text_of_id, to_wire

__all__ = ["decode", "encode"]

_TYPE = symbol("x-opt-jms-msg-type")
_TO = symbol("x-opt-jms-dest")
_REPLY_TO = symbol("x-opt-jms-reply-to")
_DUE = symbol("x-opt-delivery-time")

_LONGEST_TTL = 4_294_967  # seconds, about 50 days: what is beyond has only the time at which it expires

_PLAIN, _BYTES, _TEXT = byte(0), byte(3), byte(5)
_EMPTY: dict[int | None, type[Message]] = {_PLAIN: Message, _BYTES: BytesMessage, _TEXT: TextMessage}
_KINDS: dict[str, int] = {"queue": 0, "topic": 1}
_BINARY = "application/octet-stream"


def encode(message: Message, to: Destination, now: float) -> bytes:
    """Encode a message whose headers the producer has set.

    Args:
        message: What to send.
        to: Where to.
        now: Seconds since the epoch, from which the time to live is counted.

    Raises:
        MessageFormatError: Something in it cannot be encoded.
        NotSupportedError: It is a map, stream or object message.
    """
    try:
        return bytes(_wire_message(message, to, now).encode())
    except UNDECODABLE as error:
        raise MessageFormatError(f"The message to {to} cannot be encoded: {error}") from error


def decode(raw: bytes, source: Destination) -> tuple[Message, Header]:
    """Decode a message, read-only, and its header.

    Args:
        raw: Its bytes.
        source: Where it was received, should it not say where it was sent to.

    Raises:
        MessageFormatError: The bytes are no message, or one of a type that this release does not know.
    """
    wire = WireMessage()
    try:
        check_sections(raw)
        wire.decode(raw)
        return _decoded(wire, source), Header(wire.delivery_count, wire.first_acquirer)
    except MessageFormatError:
        raise
    except UNDECODABLE as error:
        raise MessageFormatError(f"A message from {source} cannot be decoded: {error}") from error


def _wire_message(message: Message, to: Destination, now: float) -> Any:
    wire: Any = WireMessage()
    wire.durable = message.delivery_mode is DeliveryMode.PERSISTENT
    wire.priority = message.priority
    wire.address = to.name
    wire.id = message.message_id
    wire.subject = message.type
    wire.correlation_id = message.correlation_id
    annotations: dict[symbol, Any] = {_TO: byte(_KINDS[to.kind])}
    if message.reply_to is not None:
        wire.reply_to = message.reply_to.name
        annotations[_REPLY_TO] = byte(_KINDS[message.reply_to.kind])
    _set_times(wire, message, annotations, now)
    if message.properties:
        wire.properties = {name: to_wire(value) for name, value in message.properties.items()}
    annotations[_TYPE] = _set_body(wire, message)
    wire.annotations = annotations
    return wire


def _set_times(wire: Any, message: Message, annotations: dict[symbol, Any], now: float) -> None:
    if message.timestamp is not None:
        wire.creation_time = message.timestamp.timestamp()
    if message.expiration is not None:
        wire.expiry_time = message.expiration.timestamp()
        left = max(message.expiration.timestamp() - now, 0.001)  # 0 would be for ever
        if left < _LONGEST_TTL:
            wire.ttl = left
    if message.delivery_time is not None:
        annotations[_DUE] = round(message.delivery_time.timestamp() * 1000)  # a long, as Java's clients send it


def _set_body(wire: Any, message: Message) -> byte:
    if isinstance(message, TextMessage):
        wire.body = message.body
        return _TEXT
    if isinstance(message, BytesMessage):
        wire.inferred = message.body is not None
        wire.body = message.body
        wire.content_type = symbol(_BINARY) if wire.inferred else None
        return _BYTES
    if isinstance(message, MapMessage | StreamMessage | ObjectMessage):
        raise NotSupportedError(f"A {type(message).__name__} cannot be sent over AMQP yet; send text or bytes.")
    return _PLAIN


def _decoded(wire: Any, source: Destination) -> Message:
    annotations: dict[Any, Any] = wire.annotations or {}
    message = _decoded_body(wire, annotations.get(_TYPE))
    message.message_id = text_of_id(wire.id)
    message.correlation_id = text_of_id(wire.correlation_id)
    message.type = wire.subject
    message.destination = _destination(wire.address, annotations.get(_TO), source)
    message.reply_to = _destination(wire.reply_to, annotations.get(_REPLY_TO), None)
    message.delivery_mode = DeliveryMode.PERSISTENT if wire.durable else DeliveryMode.NON_PERSISTENT
    message.priority = min(wire.priority, 9)
    message.timestamp = _moment(wire.creation_time)
    message.expiration = _moment(wire.expiry_time)
    due = annotations.get(_DUE)
    message.delivery_time = _moment(due / 1000) if due else None
    message.properties = Properties.received(_properties(wire.properties or {}))
    message.freeze()
    return message


def _decoded_body(wire: Any, kind: int | None) -> Message:
    body: Any = owned(wire.body)
    if isinstance(body, str):
        return TextMessage(str(body))
    if not body and kind in _EMPTY:  # some brokers make an empty section of none
        return BytesMessage(b"") if kind == _BYTES and _content_type(wire) else _EMPTY[kind]()
    if body is None:
        return Message()
    if not isinstance(body, bytes):
        raise MessageFormatError(f"This release reads text and bytes; the body is {type(body).__name__}.")
    if kind is None and _content_type(wire).startswith("text/"):
        return TextMessage(body.decode())
    return BytesMessage(body)


def _content_type(wire: Any) -> str:
    """Proton gives the text "None" for none."""
    kind = str(wire.content_type or "")
    return "" if kind == "None" else kind


def _properties(values: dict[Any, Any]) -> dict[str, PropertyValue]:
    return {str(name): from_wire(value) for name, value in values.items()}


def _destination(address: str | None, kind: int | None, otherwise: Destination | None) -> Destination | None:
    if not address:
        return otherwise
    if kind is None and otherwise is not None:
        return otherwise
    name = str(address)
    return Topic(name) if kind == _KINDS["topic"] else Queue(name)


def _moment(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
