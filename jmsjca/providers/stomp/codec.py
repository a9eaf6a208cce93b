"""Messages as SEND and MESSAGE frames.

What STOMP has a header for stands there, so that others can read and select it. Types, absent bodies and what no header
can hold stand in one header of our own, JSON in pieces, which others ignore.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

from jmsjca.destinations import Destination, destination
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
    convert,
    type_name,
    typed,
)
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.reserved import OURS, is_property

__all__ = ["Content", "Outgoing", "decode", "encode"]

_PIECE = 4000  # characters; escaped twice as many, which all brokers take as one header
_LONGEST = 2000  # characters of a property that travels as a header
_MOST = 200  # properties that do
_HARD_TO_CARRY = re.compile(r"[\0\r]|\A\s|\s\Z|\A\Z")
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_IDS = ("amqp-message-id", "NATIVE_MESSAGE_ID", "message-id")  # as RabbitMQ and Artemis show what came over AMQP
_UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


class Content(Enum):
    """What the body of a message is that does not say so itself."""

    TEXT = 1
    BYTES = 2
    GUESS = 3  #: text if it is UTF-8
    NONE = 4  #: there should be none


class Outgoing(NamedTuple):
    """A message on its way out, encoded when the unit noted it."""

    headers: dict[str, str]
    body: bytes
    sized: bool  #: False for a text, which brokers recognise by its missing content-length


def encode(message: Message, address: Mapping[str, str], reply_to: str | None) -> Outgoing:
    """Encode a message whose headers the producer has set.

    Args:
        message: The message.
        address: The headers that only this broker has.
        reply_to: Where a reply should go, as this broker writes it.

    Raises:
        MessageFormatError: Some text in it is not Unicode.
        NotSupportedError: It is a map, stream or object message.
    """
    try:
        return _encode(message, address, reply_to)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def decode(frame: Frame, content: Content, read_address: Callable[[str], Destination | None]) -> Message:
    """Make the message of a MESSAGE frame, but for its destination and its count.

    Raises:
        MessageFormatError: The frame does not hold what it says.
    """
    try:
        return _decode(frame, content, read_address)
    except _UNDECODABLE as error:
        raise MessageFormatError(f"The received message cannot be decoded: {error}.") from error


def _encode(message: Message, address: Mapping[str, str], reply_to: str | None) -> Outgoing:
    kind, body = _encode_body(message)
    ours: dict[str, Any] = {"k": kind, "i": message.message_id}
    headers = {
        "persistent": "true" if message.delivery_mode is DeliveryMode.PERSISTENT else "false",
        "priority": str(message.priority),
    }
    _encode_headers(message, reply_to, headers, ours)
    _encode_properties(message.properties, headers, ours)
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
        ours["r"] = [message.reply_to.kind, message.reply_to.name]
    ours["s"], ours["x"], ours["d"] = (
        _milliseconds(moment) for moment in (message.timestamp, message.expiration, message.delivery_time)
    )
    if message.timestamp is not None:
        headers["timestamp"] = str(ours["s"])


def _put(name: str, text: str, headers: dict[str, str], ours: dict[str, Any], short: str) -> None:
    if len(text) > _LONGEST or _HARD_TO_CARRY.search(text):
        text.encode()
        ours[short] = text
    else:
        headers[name] = text


def _encode_properties(properties: Properties, headers: dict[str, str], ours: dict[str, Any]) -> None:
    types: dict[str, str] = {}
    hidden: dict[str, str | None] = {}
    for name, value in properties.items():
        text = None if value is None else str(convert(value, "string"))
        if value is not None and type_name(value) != "string":
            types[name] = type_name(value)
        if text is None or len(headers) > _MOST or not is_property(name):
            hidden[name] = text
        else:
            _put(name, text, headers, hidden, name)
        if text is not None and name.startswith("JMS"):  # brokers take some of them for themselves
            hidden[name] = text
    ours["t"], ours["p"] = types, hidden


def _pieces(text: str) -> dict[str, str]:
    return {f"{OURS}{n or ''}": text[n * _PIECE : (n + 1) * _PIECE] for n in range(len(text) // _PIECE + 1)}


def _decode(frame: Frame, content: Content, read_address: Callable[[str], Destination | None]) -> Message:
    headers = frame.headers
    ours = _ours(headers)
    message = _decode_body(ours.get("k"), content, frame.body)
    message.properties = Properties.received(_decode_properties(headers, ours))
    message.message_id = ours.get("i") or next(headers[name] for name in _IDS if name in headers)
    message.correlation_id = ours.get("c", headers.get("correlation-id"))
    message.type = ours.get("y", headers.get("type"))
    message.reply_to = _reply_to(ours.get("r"), headers.get("reply-to"), read_address)
    persistent = headers.get("persistent") == "true"
    message.delivery_mode = DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT
    message.priority = int(headers.get("priority", "4"))
    message.timestamp = _moment(ours.get("s") or int(headers.get("timestamp", "0")))
    message.expiration = _moment(ours.get("x") or int(headers.get("expires", "0")))
    message.delivery_time = _moment(ours.get("d"))
    return message


def _ours(headers: Mapping[str, str]) -> dict[str, Any]:
    pieces: list[str] = []
    while (piece := headers.get(f"{OURS}{len(pieces) or ''}")) is not None:
        pieces.append(piece)
    ours: dict[str, Any] = dict(json.loads("".join(pieces))) if pieces else {}
    return ours


def _decode_properties(headers: Mapping[str, str], ours: dict[str, Any]) -> dict[str, PropertyValue]:
    values: dict[str, str | None] = {name: value for name, value in headers.items() if is_property(name)}
    values.update(ours.get("p", {}))
    types = ours.get("t", {})
    return {name: _value(text, types.get(name)) for name, text in values.items()}


def _value(text: str | None, kind: str | None) -> PropertyValue:
    if text is None or kind is None:
        return text
    return text == "true" if kind == "boolean" else typed(text, kind)


def _reply_to(
    ours: list[str] | None, theirs: str | None, read_address: Callable[[str], Destination | None]
) -> Destination | None:
    if ours:
        return destination(ours[1], ours[0])
    return read_address(theirs) if theirs else None


def _encode_body(message: Message) -> tuple[str, bytes | None]:
    if isinstance(message, MapMessage | StreamMessage | ObjectMessage):
        raise NotSupportedError(f"A {type(message).__name__} cannot be sent over STOMP yet; send text or bytes.")
    body = message.body
    if isinstance(message, TextMessage):
        return ("text", body.encode()) if body is not None else ("no text", None)
    if isinstance(message, BytesMessage):
        return ("bytes", body) if body is not None else ("no bytes", None)
    return "plain", None


def _decode_body(kind: str | None, content: Content, body: bytes) -> Message:
    if kind in _BODILESS:
        return _BODILESS[kind]()
    if kind == "bytes" or (kind is None and content is Content.BYTES):
        return BytesMessage(body)
    if kind is None and content is Content.NONE and not body:
        return Message()
    if kind is None and content in {Content.GUESS, Content.NONE}:
        return _guess(body)
    return TextMessage(body.decode())


_BODILESS: dict[str | None, type[Message]] = {"plain": Message, "no text": TextMessage, "no bytes": BytesMessage}


def _guess(body: bytes) -> Message:
    try:
        return TextMessage(body.decode())
    except UnicodeDecodeError:
        return BytesMessage(body)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
