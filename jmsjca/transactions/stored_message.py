"""Messages as text and bytes for database tables: readable by every later release. Never pickles a message itself."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, cast

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DUPLICATE_ID, DeliveryMode, EntryValue, Message, ObjectMessage, Properties, typed_entry
from jmsjca.messages.object_message import plain_data_of
from jmsjca.providers.common.codec import (
    BODY_DECODERS,
    destination_from_json,
    destination_to_json,
    encode_body,
    to_datetime,
    to_milliseconds,
    type_tag,
)

__all__ = ["StoredSend", "decode_message", "decode_sends", "encode_message", "encode_sends"]


def encode_message(message: Message) -> tuple[str, bytes | None]:
    """Return the headers and properties of a message as JSON text, and its body as bytes.

    Args:
        message: A message before its send. The headers that the application sets are kept: correlation id, reply-to
            and type.

    Raises:
        MessageFormatError: Text in the message is not Unicode.
    """
    try:
        kind, body = encode_body(message)
        fields: dict[str, Any] = {"kind": kind}
        if message.correlation_id is not None:
            fields["correlation"] = message.correlation_id
        if message.reply_to is not None:
            fields["reply"] = destination_to_json(message.reply_to)
        if message.type is not None:
            fields["type"] = message.type
        fields["properties"] = {name: _to_json(value) for name, value in message.properties.items()}
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be stored: {error}.") from error
    return text, body


def decode_message(headers: str, body: bytes | None) -> Message:
    """Return the message that `encode_message` stored, ready to be sent.

    Args:
        headers: The stored text.
        body: The stored body.

    Raises:
        MessageFormatError: The row does not hold a message.
    """
    message = _decode_content(headers, body)
    message.properties = Properties(message.properties)  # writeable, without properties that the provider sets
    return message


def _decode_content(headers: str, body: bytes | None) -> Message:
    """Return a message with read-only properties. They may have any name that a received message may have."""
    try:
        fields = json.loads(headers)
        message_type, decoder = BODY_DECODERS[fields["kind"]]
        pickled = issubclass(message_type, ObjectMessage)
        message = ObjectMessage.from_pickled(body or b"") if pickled else message_type(decoder(body))
        message.correlation_id = fields.get("correlation")
        if "reply" in fields:
            message.reply_to = destination_from_json(fields["reply"])
        message.type = fields.get("type")
        values = {name: _from_json(value) for name, value in fields["properties"].items()}
        message.properties = Properties.received(cast("dict[str, Any]", values))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MessageFormatError(f"The row holds no message: {error!r}.") from error
    return message


class StoredSend(NamedTuple):
    """A message that a handler has sent, with its id and times, so that it can be sent again as the same message."""

    headers: str
    body: bytes | None
    to: Destination

    @classmethod
    def of(cls, message: Message, to: Destination, duplicate_id: str) -> Self:
        """Store a message after the producer has set its headers.

        Args:
            message: The message.
            to: The destination.
            duplicate_id: The duplicate id to use if the message has none.

        Raises:
            MessageFormatError: The message cannot be stored.
        """
        if isinstance(message, ObjectMessage) and plain_data_of(message) is not None:
            raise MessageFormatError("An object message with plain data cannot be stored. Send it as text, as JSON.")
        headers, body = encode_message(message)
        fields = json.loads(headers)
        fields["properties"].setdefault(DUPLICATE_ID, duplicate_id)
        fields["sent"] = {
            "id": message.message_id,
            "mode": int(message.delivery_mode),
            "priority": message.priority,
            "time": to_milliseconds(message.timestamp),
            "expires": to_milliseconds(message.expiration),
            "due": to_milliseconds(message.delivery_time),
        }
        return cls(json.dumps(fields, ensure_ascii=False, separators=(",", ":")), body, to)

    @property
    def message(self) -> Message:
        """The message, ready to be sent."""
        message, sent = _decode_content(self.headers, self.body), json.loads(self.headers)["sent"]
        message.message_id, message.destination = sent["id"], self.to
        message.delivery_mode, message.priority = DeliveryMode(sent["mode"]), sent["priority"]
        message.timestamp, message.expiration = to_datetime(sent["time"]), to_datetime(sent["expires"])
        message.delivery_time = to_datetime(sent["due"])
        return message


def encode_sends(sends: Sequence[StoredSend]) -> str:
    """Return messages that a handler has sent as JSON text."""
    rows = [
        [destination_to_json(to), headers, None if body is None else b64encode(body).decode()]
        for headers, body, to in sends
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def decode_sends(text: str) -> list[StoredSend]:
    """Return the messages that `encode_sends` stored.

    Raises:
        MessageFormatError: The text does not hold messages.
    """
    try:
        return [
            StoredSend(headers, None if body is None else b64decode(body, validate=True), destination_from_json(to))
            for to, headers, body in json.loads(text)
        ]
    except (ValueError, TypeError) as error:
        raise MessageFormatError(f"The row of the inbox holds no messages: {error!r}.") from error


def _to_json(value: EntryValue) -> Any:
    """Return a value, or a pair of type and value if JSON does not imply the type."""
    name = type_tag(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _from_json(value: Any) -> Any:
    if not isinstance(value, list):
        return typed_entry(value)
    name, plain = cast("tuple[str, Any]", value)
    return typed_entry(b64decode(plain, validate=True) if name == "bytes" else plain, name)
