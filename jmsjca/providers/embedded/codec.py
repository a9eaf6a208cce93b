"""Messages as rows: headers and properties as JSON, the body as bytes."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jmsjca.destinations import Destination, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    DUPLICATE_ID,
    BytesMessage,
    DeliveryMode,
    Message,
    Properties,
    PropertyValue,
    TextMessage,
    type_name,
    typed,
)

__all__ = ["Outgoing", "decode", "encode"]

# The type of a property is written down only where JSON does not tell it.
_PLAIN = {"boolean", "int", "long", "double", "string"}


# Made once: json.dumps() and json.loads() look at their options at every call.
_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_from_json = json.JSONDecoder().decode


# What the stored text of a message may provoke: it may be anything, and as deep or as large as it likes.
_UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way into the store: encoded when the unit noted it, so that it can be reused at once."""

    to: Destination
    urgency: int
    expires: int | None
    due: int | None
    headers: str
    body: bytes | None
    duplicate_id: str | None


def encode(message: Message, to: Destination) -> Outgoing:
    """Encode a message whose headers the producer has set.

    Raises:
        MessageFormatError: Some text in it is not Unicode: it holds half of a surrogate pair.
    """
    try:
        return _encode(message, to)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def _encode(message: Message, to: Destination) -> Outgoing:
    kind, body = _encode_body(message)
    values: dict[str, PropertyValue] = dict(message.properties)
    headers = {
        "id": message.message_id,
        "to": [to.kind, to.name],
        "kind": kind,
        "correlation": message.correlation_id,
        "reply": [message.reply_to.kind, message.reply_to.name] if message.reply_to else None,
        "type": message.type,
        "mode": int(message.delivery_mode),
        "priority": message.priority,
        "time": _milliseconds(message.timestamp),
        "due": _milliseconds(message.delivery_time),
        "p": values,
        "t": {name: special for name, value in values.items() if (special := _special_type(value))},
    }
    text = _to_json({name: value for name, value in headers.items() if value is not None and value != {}})
    text.encode()  # refused here, not when the unit commits
    duplicate = message.properties.get(DUPLICATE_ID)
    return Outgoing(
        to,
        9 - message.priority,
        _milliseconds(message.expiration),
        _milliseconds(message.delivery_time),
        text,
        body,
        None if duplicate is None else str(duplicate),
    )


def decode(headers: bytes, body: bytes | None, deliveries: int, expires: int | None) -> Message:
    """Make the message of a row, read-only.

    Raises:
        MessageFormatError: The row does not hold a message.
    """
    try:
        return _decode(_from_json(headers.decode()), body, deliveries, expires)
    except _UNDECODABLE as error:
        raise MessageFormatError(f"The stored message cannot be decoded: {error}.") from error


def _decode(fields: dict[str, Any], body: bytes | None, deliveries: int, expires: int | None) -> Message:
    message = _decode_body(fields["kind"], body)
    types = fields.get("t", {})
    message.properties = Properties.received(
        {name: typed(value, types.get(name)) for name, value in fields.get("p", {}).items()}
    )
    message.message_id = fields.get("id")
    message.destination = destination(fields["to"][1], fields["to"][0])
    message.correlation_id = fields.get("correlation")
    reply = fields.get("reply")
    message.reply_to = destination(reply[1], reply[0]) if reply else None
    message.type = fields.get("type")
    message.delivery_mode = DeliveryMode(fields["mode"])
    message.priority = fields["priority"]
    message.timestamp = _moment(fields.get("time"))
    message.expiration = _moment(expires)
    message.delivery_time = _moment(fields.get("due"))
    message.delivery_count = deliveries
    message.redelivered = deliveries > 1
    message.freeze()
    return message


def _encode_body(message: Message) -> tuple[str, bytes | None]:
    body = message.body
    if isinstance(message, TextMessage):
        return "text", None if body is None else body.encode()
    if isinstance(message, BytesMessage):
        return "bytes", body
    return "plain", None


def _decode_body(kind: str, body: bytes | None) -> Message:
    if kind == "text":
        return TextMessage(None if body is None else body.decode())
    return BytesMessage(body) if kind == "bytes" else Message()


def _special_type(value: PropertyValue) -> str | None:
    if value is None:
        return None
    name = type_name(value)
    plain = name in _PLAIN and (name != "long" or not -(1 << 31) <= int(value) < 1 << 31)
    return None if plain else name


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
