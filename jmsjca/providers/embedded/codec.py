"""Messages as rows: headers and properties as JSON, the body as bytes."""

from datetime import datetime
from typing import Any, NamedTuple
from zlib import crc32

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    DUPLICATE_ID,
    GROUP_ID,
    DeliveryMode,
    Message,
    Properties,
    type_name,
)
from jmsjca.providers.bodies import DECODERS, Kind, encode_body
from jmsjca.providers.embedded.digests import digest_of
from jmsjca.providers.embedded.stored_headers import UNDECODABLE, StoredHeaders, undecodable
from jmsjca.providers.values import from_json, special_type, to_json, with_infinities

__all__ = ["SELECTABLE", "Outgoing", "decode", "encode", "header_text", "selectable"]

_BUCKETS = 1024

# The headers that a selector may name, and the fields that hold them.
SELECTABLE = {
    "JMSMessageID": "id",
    "JMSCorrelationID": "correlation",
    "JMSType": "type",
    "JMSTimestamp": "time",
    "JMSPriority": "priority",
}


class Outgoing(NamedTuple):
    """A message on its way into the store: encoded when the unit noted it, so that it can be reused at once."""

    to: Destination
    urgency: int
    expires: int | None
    due: int | None
    headers: str | bytes  # bytes: moved as they are, since they are no text
    body: bytes | None
    duplicate_id: str | None
    bucket: int | None
    digest: int | None


def encode(message: Message, to: Destination, *, with_digest: bool = False) -> Outgoing:
    """Encode a message whose headers the producer has set.

    Args:
        message: The message.
        to: Where it goes.
        with_digest: True to notice later whether what is stored was changed.

    Raises:
        MessageFormatError: Some text in it is not Unicode: it holds half of a surrogate pair.
    """
    try:
        kind, body = encode_body(message)
        headers = header_text(_fields(message, kind, to))
        written = headers.encode()  # what cannot be is refused here, not when the unit commits
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error
    duplicate_id, bucket = _keys(message.properties) if message.has_properties() else (None, None)
    expires, due = _milliseconds(message.expiration), _milliseconds(message.delivery_time)
    digest = digest_of(written, body) if with_digest else None
    return Outgoing(to, 9 - message.priority, expires, due, headers, body, duplicate_id, bucket, digest)


def _fields(message: Message, kind: str, to: Destination) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": kind,  # these two first: see StoredHeaders.opening
        "id": message.message_id,
        "to": _address(to),
        "mode": int(message.delivery_mode),
        "priority": message.priority,
        "time": _milliseconds(message.timestamp),
    }
    if message.correlation_id is not None:
        fields["correlation"] = message.correlation_id
    if message.reply_to is not None:
        fields["reply"] = _address(message.reply_to)
    if message.type is not None:
        fields["type"] = message.type
    if message.delivery_time is not None:
        fields["due"] = _milliseconds(message.delivery_time)
    if message.has_properties():
        values = fields["p"] = dict(message.properties)
        fields["t"] = {name: special for name, value in values.items() if (special := special_type(value))}
    return fields


def header_text(fields: dict[str, Any]) -> str:
    """Write the headers of a message, with its properties among them, as SQLite and `decode` read them."""
    try:
        return to_json(fields)
    except ValueError:  # a property is infinite or not a number, which JSON has no word for
        return _with_infinities(fields)


def _keys(properties: Properties) -> tuple[str | None, int | None]:
    """The duplicate id of a message and the bucket of its group; None where there is none."""
    duplicate, group = properties.get(DUPLICATE_ID), properties.get(GROUP_ID)
    bucket = None if group is None else crc32(str(group).encode()) % _BUCKETS
    return None if duplicate is None else str(duplicate), bucket


def _with_infinities(fields: dict[str, Any]) -> str:
    values = fields.pop("p")
    unknown = {name: type_name(value) for name, value in values.items() if value != value}  # noqa: PLR0124
    fields["t"] = {**fields.get("t", {}), **unknown}
    return f'{to_json(fields)[:-1]},"p":{with_infinities(values)}}}'


def decode(headers: bytes, body: bytes | None, deliveries: int, expires: int | None) -> Message:
    """Make the message of a row, read-only. Its headers are decoded when the first of them is asked for.

    Raises:
        MessageFormatError: The row does not hold a message; of damaged headers it is raised where they are asked for.
    """
    fields = StoredHeaders(headers, deliveries, expires)
    try:
        message_type, decoder = _kind(fields)
        return message_type.received(decoder(body), fields)
    except UNDECODABLE as error:
        raise undecodable(error) from error


def _kind(fields: StoredHeaders) -> Kind:
    """The kind of the message: found without decoding the rest. Of the first release, or damaged: decoded at once."""
    if fields.opening is not None:
        return DECODERS[fields.opening[1].decode()]
    kind = DECODERS[fields.fields["kind"]]
    dict(fields)
    return kind


def selectable(headers: str | bytes) -> dict[str, Any]:
    """What a selector sees of stored headers, by name; nothing of what is not headers."""
    try:
        fields: dict[str, Any] = from_json(headers if isinstance(headers, str) else headers.decode())
        mode = "NON_PERSISTENT" if fields.get("mode") == DeliveryMode.NON_PERSISTENT else "PERSISTENT"
        selected = {name: fields.get(field) for name, field in SELECTABLE.items()}
        return {**fields.get("p", {}), **selected, "JMSDeliveryMode": mode, "JMSXDeliveryCount": 1}
    except UNDECODABLE:
        return {}


def _address(of: Destination) -> list[str | bool]:
    return [of.kind, of.name, True] if of.temporary else [of.kind, of.name]


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
