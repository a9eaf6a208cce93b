"""Messages as text and bytes, for tables of databases: readable by every later release, and never a pickle of ours."""

import json
from base64 import b64decode, b64encode
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages import EntryValue, Message, ObjectMessage, typed_entry
from jmsjca.providers.common.json_codec import (
    BODY_DECODERS,
    destination_from_json,
    destination_to_json,
    encode_body,
    type_tag,
)

__all__ = ["decode_message", "encode_message"]


def encode_message(message: Message) -> tuple[str, bytes | None]:
    """Return the headers and properties of a message as JSON text, and its body as bytes.

    Args:
        message: A message before its send. Of the headers, those that the application sets are kept: correlation id,
            reply-to and type.

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
    """Return the message that `encode_message` has stored, ready to be sent.

    Args:
        headers: The stored text.
        body: The stored body.

    Raises:
        MessageFormatError: The row does not hold a message.
    """
    try:
        fields = json.loads(headers)
        message_type, decoder = BODY_DECODERS[fields["kind"]]
        pickled = issubclass(message_type, ObjectMessage)
        message = ObjectMessage.from_pickled(body or b"") if pickled else message_type(decoder(body))
        message.correlation_id = fields.get("correlation")
        if "reply" in fields:
            message.reply_to = destination_from_json(fields["reply"])
        message.type = fields.get("type")
        for name, value in fields["properties"].items():
            message.set_object_property(name, _from_json(value))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MessageFormatError(f"The row of the outbox holds no message: {error!r}.") from error
    return message


def _to_json(value: EntryValue) -> Any:
    """Return a value, or a pair of its type and the value where JSON does not imply the type."""
    name = type_tag(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _from_json(value: Any) -> Any:
    if not isinstance(value, list):
        return typed_entry(value)
    name, plain = cast("tuple[str, Any]", value)
    return typed_entry(b64decode(plain, validate=True) if name == "bytes" else plain, name)
