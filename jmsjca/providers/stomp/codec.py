"""Messages as SEND frames, and MESSAGE frames as messages.

Fields that STOMP has a header for travel in that header, so that other clients can read and select them. Types, absent
bodies and values that no header can hold travel as JSON in a metadata header that other
clients ignore. A long metadata header is split. Maps and streams are also JSON.
"""

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    Message,
    Properties,
    PropertyValue,
    TextMessage,
    convert,
    type_name,
)
from jmsjca.providers.common.codec import (
    METADATA_HEADER,
    NO_BODY,
    UNDECODABLE,
    decode_kind,
    destination_from_json,
    destination_to_json,
    encode_body,
    encoding_of,
    expect_text,
    metadata_in,
    property_from_text,
    to_datetime,
    to_milliseconds,
)
from jmsjca.providers.stomp.protocol.frames import Frame

__all__ = [
    "Content",
    "HeaderRules",
    "Outgoing",
    "decode",
    "encode",
    "is_encoded",
    "is_header_value",
    "is_property",
]

# The headers in which RabbitMQ and Artemis show ids of AMQP come first.
_IDS = ("amqp-message-id", "NATIVE_MESSAGE_ID", "message-id")


class Content(Enum):
    """The kind of a body without a metadata header."""

    TEXT = 1
    BYTES = 2
    GUESS = 3  #: text if it is valid UTF-8, else bytes
    NONE = 4  #: no body is expected


def decode(
    frame: Frame,
    content: Content,
    read_address: Callable[[str], Destination | None],
    more: Callable[[], Mapping[str, Any]],
) -> Message:
    """Decode a MESSAGE frame to a read-only message. Its headers are decoded on first access.

    Args:
        frame: The frame.
        content: The kind of its body if it has no metadata header.
        read_address: Parses the destination of replies.
        more: Returns the headers that the frame alone does not give: the destination and the count.

    Raises:
        MessageFormatError: The body is malformed. For malformed headers it is raised on access to a header.
    """

    def headers() -> Mapping[str, Any]:
        """Return all headers by the names of the attributes of `Message`."""
        try:
            return {**_decode_headers(frame.headers, ours, read_address), **more()}
        except UNDECODABLE as error:
            raise _undecodable(error) from error

    try:
        ours = metadata_in(frame.headers)
        kind = Content.BYTES if content is not Content.NONE and is_encoded(frame.headers) else content
        made, body = _decode_body(ours.get("k"), kind, frame.body)
        return made.received(body, headers)
    except UNDECODABLE as error:
        raise _undecodable(error) from error


def is_encoded(headers: Mapping[str, str]) -> bool:
    """Return True if a body has a content encoding, such as gzip: its content type holds after decoding."""
    return any(encoding_of(headers.get(name)) for name in ("content-encoding", "JMS_AMQP_ContentEncoding"))


def _undecodable(error: Exception) -> MessageFormatError:
    return MessageFormatError(f"The received message cannot be decoded: {error}.")


def _decode_headers(
    headers: Mapping[str, str], ours: Mapping[str, Any], read_address: Callable[[str], Destination | None]
) -> dict[str, Any]:
    persistent = headers.get("persistent") == "true"
    return {
        "properties": Properties.received(_decode_properties(headers, ours)),
        "message_id": expect_text(ours.get("i") or next((headers[name] for name in _IDS if name in headers), None)),
        "correlation_id": expect_text(ours.get("c", headers.get("correlation-id"))),
        "type": expect_text(ours.get("y", headers.get("type"))),
        "reply_to": _reply_to(ours.get("r"), headers.get("reply-to"), read_address),
        "delivery_mode": DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT,
        "priority": int(headers.get("priority", "4")),
        "timestamp": to_datetime(ours.get("s") or int(headers.get("timestamp", "0")) or None),
        "expiration": to_datetime(ours.get("x") or int(headers.get("expires", "0")) or None),
        "delivery_time": to_datetime(ours.get("d") or None),
    }


def _decode_properties(headers: Mapping[str, str], ours: Mapping[str, Any]) -> dict[str, PropertyValue]:
    values: dict[str, Any] = {name: value for name, value in headers.items() if is_property(name)}
    values.update(ours.get("p", {}))
    types = ours.get("t", {})
    return {name: property_from_text(expect_text(value), types.get(name)) for name, value in values.items()}


def _reply_to(
    ours: list[Any] | None, theirs: str | None, read_address: Callable[[str], Destination | None]
) -> Destination | None:
    if ours:
        return destination_from_json(ours)
    return read_address(theirs) if theirs else None


def _decode_body(kind: str | None, content: Content, body: bytes) -> tuple[type[Message], Any]:
    if kind is not None:
        return decode_kind(kind, body)
    if content is Content.BYTES:
        return BytesMessage, body
    if content is Content.NONE and not body:
        return Message, None
    return _guess(body) if content in {Content.GUESS, Content.NONE} else (TextMessage, body.decode())


def _guess(body: bytes) -> tuple[type[Message], str | bytes]:
    try:
        return TextMessage, body.decode()
    except UnicodeDecodeError:
        return BytesMessage, body


_TEXTS = {"text", f"{NO_BODY}text"}

_MAX_HEADER_NAME = 2000
_RESERVED = frozenset(
    (
        *("ack", "browser", "ciphertext", "client-id", "content-encoding", "content-length", "content-type"),
        *("correlation-id", "destination", "destination-type", "durable", "auto-delete", "exclusive", "expiration"),
        *("expires", "heart-beat", "host", "id", "ingress-timestamp", "login", "message", "message-id"),
        *("no-local", "original-destination", "originalDestination", "passcode", "persistent", "prefetch-count"),
        *("priority", "receipt", "receipt-id", "redelivered", "reply-to", "requeue", "selector", "server", "session"),
        *("subscription", "subscription-type", "timestamp", "transaction", "transformation", "transformation-error"),
        *("type", "user-id", "app-id", "version", "JMSXUserID", "JMSXDeliveryCount", "AMQ_SCHEDULED_TIME"),
        *("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT"),
    )
)
_RESERVED_BEGINNINGS = (
    METADATA_HEADER,
    "_AMQ_",
    "__AMQ",
    "_HQ_",
    "JMS_AMQP_",
    "NATIVE_MESSAGE_ID",
    "x-",
    "amq-",
    "amqp-",
    "activemq.",
)
_EXCEPTIONS = {"_AMQ_DUPL_ID"}


def is_property(name: str) -> bool:
    """Return True if a header of this name is a property, and a property of this name may become a header."""
    if name in _RESERVED or len(name) > _MAX_HEADER_NAME:
        return False
    return name in _EXCEPTIONS or not name.startswith(_RESERVED_BEGINNINGS)


_MAX_METADATA_PIECE = 4000  # characters; twice as many when escaped, which all brokers accept as one header
_MAX_HEADER_VALUE = 2000  # characters
_MAX_HEADER_PROPERTIES = 200  # properties that travel as headers
_UNSAFE_IN_HEADER = re.compile(
    r"[\0\r]|\A[\s\x01-\x1f]|[\s\x01-\x1f]\Z|\A\Z"
)  # brokers strip blanks and control characters
_pure_to_json = json.JSONEncoder(separators=(",", ":")).encode
_fast_to_json = msgspec.json.Encoder().encode


def _to_json(fields: dict[str, Any]) -> str:
    """Return JSON in ASCII. msgspec writes no escapes, and refuses subclasses of `str` and half surrogate pairs."""
    try:
        text = _fast_to_json(fields)
    except (TypeError, ValueError):
        return _pure_to_json(fields)
    return text.decode() if text.isascii() else _pure_to_json(fields)


def is_header_value(text: str) -> bool:
    """Return True if every broker hands a header with this value over as it is."""
    return len(text) <= _MAX_HEADER_VALUE and not _UNSAFE_IN_HEADER.search(text)


class HeaderRules(NamedTuple):
    """The headers that a broker takes; all else travels in the metadata."""

    is_property: Callable[[str], bool] = is_property  #: True for the name of a property that may be a header
    is_value: Callable[[str], bool] = is_header_value  #: True for a text that the broker hands over as it is


_USUAL_RULES = HeaderRules()


class Outgoing(NamedTuple):
    """An encoded message that is to be sent."""

    headers: dict[str, str]
    body: bytes
    sized: bool  #: False for text, which brokers recognise by the missing content-length


def encode(
    message: Message,
    address: Mapping[str, str],
    reply_to: str | None,
    rules: HeaderRules = _USUAL_RULES,
) -> Outgoing:
    """Encode a message after the producer has set its JMS headers.

    Args:
        message: The message.
        address: The headers of this broker.
        reply_to: The destination of replies in the form of this broker; None for none.
        rules: The headers that this broker takes.

    Raises:
        MessageFormatError: A text in it holds half of a surrogate pair.
    """
    try:
        return _encode(message, address, reply_to, rules)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def _encode(message: Message, address: Mapping[str, str], reply_to: str | None, rules: HeaderRules) -> Outgoing:
    kind, body = _body_of(message)
    ours: dict[str, Any] = {"k": kind, "i": message.message_id}
    headers = {
        "persistent": "true" if message.delivery_mode is DeliveryMode.PERSISTENT else "false",
        "priority": str(message.priority),
    }
    _encode_headers(message, reply_to, headers, ours, rules)
    _encode_properties(message.properties, headers, ours, rules)
    headers.update(address)
    headers.update(_pieces(_to_json({name: value for name, value in ours.items() if value not in (None, {})})))
    content = body or b""
    return Outgoing(headers, content, kind not in _TEXTS or b"\0" in content)


def _encode_headers(
    message: Message, reply_to: str | None, headers: dict[str, str], ours: dict[str, Any], rules: HeaderRules
) -> None:
    for name, short, text in (
        ("correlation-id", "c", message.correlation_id),
        ("type", "y", message.type),
        ("reply-to", "r", reply_to),
    ):
        if text is None:
            continue
        if rules.is_value(text):
            headers[name] = text
        else:
            text.encode()  # the escapes of JSON could hold half of a surrogate pair
            ours[short] = text
    if message.reply_to:
        ours["r"] = destination_to_json(message.reply_to)
    ours["s"], ours["x"], ours["d"] = (
        to_milliseconds(moment) for moment in (message.timestamp, message.expiration, message.delivery_time)
    )
    if message.timestamp is not None:
        headers["timestamp"] = str(ours["s"])


def _encode_properties(
    properties: Properties, headers: dict[str, str], ours: dict[str, Any], rules: HeaderRules
) -> None:
    types: dict[str, str] = {}
    hidden: dict[str, str | None] = {}
    for name, value in properties.items():
        text = None if value is None else str(convert(value, "string"))
        if value is not None and type_name(value) != "string":
            types[name] = type_name(value)
        if text is None or len(headers) > _MAX_HEADER_PROPERTIES or not rules.is_property(name):
            hidden[name] = text
        elif rules.is_value(text):
            headers[name] = text
        else:
            text.encode()  # as above
            hidden[name] = text
        if text is not None and name.startswith("JMS"):  # brokers interpret some of them
            hidden[name] = text
    ours["t"], ours["p"] = types, hidden


def _pieces(text: str) -> dict[str, str]:
    if len(text) < _MAX_METADATA_PIECE:
        return {METADATA_HEADER: text}
    return {
        f"{METADATA_HEADER}{n or ''}": text[n * _MAX_METADATA_PIECE : (n + 1) * _MAX_METADATA_PIECE]
        for n in range(len(text) // _MAX_METADATA_PIECE + 1)
    }


def _body_of(message: Message) -> tuple[str, bytes | None]:
    """Return the kind of a message and its encoded body; the kind marks a missing body, which a frame cannot."""
    kind, body = encode_body(message)
    return (f"{NO_BODY}{kind}" if body is None and kind != "plain" else kind), body
