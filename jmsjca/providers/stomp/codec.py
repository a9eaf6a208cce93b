"""Messages as SEND frames, and MESSAGE frames as messages.

What STOMP has a header for stands in that header, so that others can read and select it. Types, absent bodies and what
no header can hold stand in one header of our own, JSON in pieces, which others ignore. Maps and streams are JSON, too.
"""

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

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
    typed_property,
)
from jmsjca.providers.common.json_codec import (
    BODY_DECODERS,
    destination_from_json,
    destination_to_json,
    encode_body,
    expect_text,
)
from jmsjca.providers.common.lazy_headers import UNDECODABLE, to_datetime, to_milliseconds
from jmsjca.providers.stomp.protocol.frames import Frame

__all__ = ["METADATA_HEADER", "NO_BODY", "Content", "Outgoing", "decode", "encode", "is_property"]

_IDS = ("amqp-message-id", "NATIVE_MESSAGE_ID", "message-id")  # as RabbitMQ and Artemis show what came over AMQP


class Content(Enum):
    """What the body of a message is that does not say so itself."""

    TEXT = 1
    BYTES = 2
    GUESS = 3  #: text if it is UTF-8
    NONE = 4  #: there should be none


def decode(
    frame: Frame,
    content: Content,
    read_address: Callable[[str], Destination | None],
    more: Callable[[], Mapping[str, Any]],
) -> Message:
    """Make the message of a MESSAGE frame, read-only. Its headers are decoded when the first of them is asked for.

    Args:
        frame: The frame.
        content: What its body is if it does not say so itself.
        read_address: Reads the destination of replies.
        more: The headers that stand not in the frame alone: the destination and the count.

    Raises:
        MessageFormatError: The frame does not hold what it says; of its headers it is raised where they are asked for.
    """

    def headers() -> Mapping[str, Any]:
        """All of them by the names of the attributes of `Message`."""
        try:
            return {**_decode_headers(frame.headers, ours, read_address), **more()}
        except UNDECODABLE as error:
            raise _undecodable(error) from error

    try:
        ours = _metadata(frame.headers)
        made, body = _decode_body(ours.get("k"), content, frame.body)
        return made.received(body, headers)
    except UNDECODABLE as error:
        raise _undecodable(error) from error


def _undecodable(error: Exception) -> MessageFormatError:
    return MessageFormatError(f"The received message cannot be decoded: {error}.")


def _metadata(headers: Mapping[str, str]) -> dict[str, Any]:
    pieces: list[str] = []
    while (piece := headers.get(f"{METADATA_HEADER}{len(pieces) or ''}")) is not None:
        pieces.append(piece)
    ours: dict[str, Any] = dict(json.loads("".join(pieces))) if pieces else {}
    return ours


def _decode_headers(
    headers: Mapping[str, str], ours: Mapping[str, Any], read_address: Callable[[str], Destination | None]
) -> dict[str, Any]:
    persistent = headers.get("persistent") == "true"
    return {
        "properties": Properties.received(_decode_properties(headers, ours)),
        "message_id": expect_text(ours.get("i") or next(headers[name] for name in _IDS if name in headers)),
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
    return {name: _value(expect_text(value), types.get(name)) for name, value in values.items()}


def _value(text: str | None, kind: str | None) -> PropertyValue:
    if text is None or kind is None:
        return text
    return text == "true" if kind == "boolean" else typed_property(text, kind)


def _reply_to(
    ours: list[Any] | None, theirs: str | None, read_address: Callable[[str], Destination | None]
) -> Destination | None:
    if ours:
        return destination_from_json(ours)
    return read_address(theirs) if theirs else None


def _decode_body(kind: str | None, content: Content, body: bytes) -> tuple[type[Message], Any]:
    if kind is not None:
        made, decoder = BODY_DECODERS[kind.removeprefix(NO_BODY)]
        return made, decoder(None if kind.startswith(NO_BODY) else body)
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


METADATA_HEADER = "_jmsjca"
"""The header that holds what no other can; numbered if there are several."""

NO_BODY = "no "
"""What stands there before the kind of a message that has no body, which an empty one does not tell."""

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
    """True if a header of this name is a property, and a property of this name may become a header."""
    if name in _RESERVED or len(name) > _MAX_HEADER_NAME:
        return False
    return name in _EXCEPTIONS or not name.startswith(_RESERVED_BEGINNINGS)


_MAX_METADATA_PIECE = 4000  # characters; escaped twice as many, which all brokers take as one header
_MAX_HEADER_VALUE = 2000  # characters of a property that travels as a header
_MAX_HEADER_PROPERTIES = 200  # properties that do
_UNSAFE_IN_HEADER = re.compile(r"[\0\r]|\A[\s\x01-\x1f]|[\s\x01-\x1f]\Z|\A\Z")  # brokers strip blanks, and controls
_to_json = json.JSONEncoder(separators=(",", ":")).encode


class Outgoing(NamedTuple):
    """A message on its way out, encoded when the unit noted it."""

    headers: dict[str, str]
    body: bytes
    sized: bool  #: False for a text, which brokers recognise by its missing content-length


def encode(
    message: Message,
    address: Mapping[str, str],
    reply_to: str | None,
    is_header_property: Callable[[str], bool] = is_property,
) -> Outgoing:
    """Encode a message whose headers the producer has set.

    Args:
        message: The message.
        address: The headers that only this broker has.
        reply_to: Where a reply should go, as this broker writes it.
        is_header_property: Returns True for the name of a property that may be a header.

    Raises:
        MessageFormatError: Some text in it is not Unicode.
    """
    try:
        return _encode(message, address, reply_to, is_header_property)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def _encode(
    message: Message, address: Mapping[str, str], reply_to: str | None, is_header_property: Callable[[str], bool]
) -> Outgoing:
    kind, body = _body_of(message)
    ours: dict[str, Any] = {"k": kind, "i": message.message_id}
    headers = {
        "persistent": "true" if message.delivery_mode is DeliveryMode.PERSISTENT else "false",
        "priority": str(message.priority),
    }
    _encode_headers(message, reply_to, headers, ours)
    _encode_properties(message.properties, headers, ours, is_header_property)
    headers.update(address)
    headers.update(_pieces(_to_json({name: value for name, value in ours.items() if value not in (None, {})})))
    return Outgoing(headers, body or b"", kind != "text" or body is None or b"\0" in body)


def _encode_headers(message: Message, reply_to: str | None, headers: dict[str, str], ours: dict[str, Any]) -> None:
    for name, short, text in (
        ("correlation-id", "c", message.correlation_id),
        ("type", "y", message.type),
        ("reply-to", "r", reply_to),
    ):
        if text is not None:
            _put(name, text, headers, ours, short)
    if message.reply_to:
        ours["r"] = destination_to_json(message.reply_to)
    ours["s"], ours["x"], ours["d"] = (
        to_milliseconds(moment) for moment in (message.timestamp, message.expiration, message.delivery_time)
    )
    if message.timestamp is not None:
        headers["timestamp"] = str(ours["s"])


def _put(name: str, text: str, headers: dict[str, str], ours: dict[str, Any], short: str) -> None:
    if len(text) > _MAX_HEADER_VALUE or _UNSAFE_IN_HEADER.search(text):
        text.encode()
        ours[short] = text
    else:
        headers[name] = text


def _encode_properties(
    properties: Properties, headers: dict[str, str], ours: dict[str, Any], is_header_property: Callable[[str], bool]
) -> None:
    types: dict[str, str] = {}
    hidden: dict[str, str | None] = {}
    for name, value in properties.items():
        text = None if value is None else str(convert(value, "string"))
        if value is not None and type_name(value) != "string":
            types[name] = type_name(value)
        if text is None or len(headers) > _MAX_HEADER_PROPERTIES or not is_header_property(name):
            hidden[name] = text
        else:
            _put(name, text, headers, hidden, name)
        if text is not None and name.startswith("JMS"):  # brokers take some of them for themselves
            hidden[name] = text
    ours["t"], ours["p"] = types, hidden


def _pieces(text: str) -> dict[str, str]:
    return {
        f"{METADATA_HEADER}{n or ''}": text[n * _MAX_METADATA_PIECE : (n + 1) * _MAX_METADATA_PIECE]
        for n in range(len(text) // _MAX_METADATA_PIECE + 1)
    }


def _body_of(message: Message) -> tuple[str, bytes | None]:
    """Name the kind of a message and encode its body; what has none says so, as an empty frame does not."""
    kind, body = encode_body(message)
    return (f"{NO_BODY}{kind}" if body is None and kind != "plain" else kind), body
