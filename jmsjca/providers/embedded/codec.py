"""Messages as rows: headers and properties as JSON, the body as bytes, and a checksum of both.

SQLite has checksums for its journal only: a bit that flips in the file itself would be delivered as part of a message.
The checksum detects that before the message reaches the application.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DUPLICATE_ID, GROUP_ID, DeliveryMode, Message, Properties, type_name, typed_property
from jmsjca.messages.message import has_properties
from jmsjca.providers.common.codec import (
    BODY_DECODERS,
    UNDECODABLE,
    BodyDecoder,
    LazyHeaders,
    destination_from_json,
    destination_to_json,
    encode_body,
    expect_text,
    from_json,
    to_datetime,
    to_json,
    to_json_with_infinities,
    to_milliseconds,
    type_tag,
)

__all__ = [
    "SELECTOR_FIELDS",
    "Outgoing",
    "decode",
    "encode",
    "encode_headers",
    "selector_values",
    "verify_checksum",
    "with_changed_headers",
]

# The beginning of nearly every text; it is matched without parsing the rest.
_OPENING = re.compile(rb'\{"kind":"([^"\\]*)","id":(?:null|"([^"\\]*)"),')
_NO_PROPERTIES = Properties.received({})  # immutable, so all messages share one
_MODES = {int(mode): mode for mode in DeliveryMode}  # a dictionary is faster than a call of the enumeration


def _decoding_error(error: Exception) -> MessageFormatError:
    """Return the error of a message that cannot be decoded."""
    return MessageFormatError(f"The stored message cannot be decoded: {error}.")


def _message_id(headers: "_StoredHeaders") -> str | None:
    opening = headers.opening
    if opening is None:
        return expect_text(headers.fields.get("id"))
    message_id: bytes | None = opening[2]
    return None if message_id is None else message_id.decode()


def _properties(headers: "_StoredHeaders") -> Properties:
    fields = headers.fields
    if "p" not in fields and "t" not in fields:
        return _NO_PROPERTIES
    types = fields.get("t", {})
    values = {name: typed_property(value, types.get(name)) for name, value in fields["p"].items()}
    if types:
        values.update({name: typed_property(math.nan, mark) for name, mark in types.items() if values[name] is None})
    return Properties.received(values)


def _delivery_mode(headers: "_StoredHeaders") -> DeliveryMode:
    mode = headers.fields["mode"]
    return _MODES.get(mode) or DeliveryMode(mode)


def _reply_to(headers: "_StoredHeaders") -> Destination | None:
    address = headers.fields.get("reply")
    return destination_from_json(address) if address else None


_DECODERS: dict[str, Callable[["_StoredHeaders"], Any]] = {
    "properties": _properties,
    "message_id": _message_id,
    "destination": lambda headers: destination_from_json(headers.fields["to"]),
    "correlation_id": lambda headers: expect_text(headers.fields.get("correlation")),
    "reply_to": _reply_to,
    "type": lambda headers: expect_text(headers.fields.get("type")),
    "delivery_mode": _delivery_mode,
    "priority": lambda headers: headers.fields["priority"],
    "timestamp": lambda headers: to_datetime(headers.fields.get("time")),
    "expiration": lambda headers: to_datetime(headers.expires),
    "delivery_time": lambda headers: to_datetime(headers.fields.get("due")),
    "delivery_count": lambda headers: headers.deliveries,
    "redelivered": lambda headers: headers.deliveries > 1,
}


class _StoredHeaders(LazyHeaders):
    """The headers of a stored message.

    Args:
        text: The stored headers.
        deliveries: Number of deliveries, this one included.
        expires: The expiration in milliseconds since the epoch; None for never.

    Attributes:
        fields: The stored headers as the JSON object has them, parsed at the first access.
        opening: Match of the kind and the id at the beginning of the text; None if the text has another form.
    """

    __slots__ = ("_text", "deliveries", "expires", "fields", "opening")

    decoders = _DECODERS

    fields: dict[str, Any]
    deliveries: int
    expires: int | None

    def __init__(self, text: bytes, deliveries: int, expires: int | None) -> None:
        self._text = text
        self.opening = _OPENING.match(text)
        self.deliveries = deliveries
        self.expires = expires

    def __getattr__(self, name: str) -> Any:
        """Parse the fields at the first access: after it, there is no call of a property for each."""
        if name != "fields":
            raise AttributeError(name)
        self.fields = from_json(self._text.decode())
        return self.fields

    def decoding_error(self, error: Exception) -> MessageFormatError:
        """Return the error for a header that cannot be decoded."""
        return _decoding_error(error)

    def mentions(self, name: str) -> bool:
        """Return False if no property has this name (ASCII); found without decoding."""
        return name.encode() in self._text


_BUCKETS = 1024

# The headers that a selector may name, and the fields that hold them.
SELECTOR_FIELDS = {
    "JMSMessageID": "id",
    "JMSCorrelationID": "correlation",
    "JMSType": "type",
    "JMSTimestamp": "time",
    "JMSPriority": "priority",
}


class Outgoing(NamedTuple):
    """An encoded message before it is stored. The unit encodes at send, so that the caller can reuse the message."""

    to: Destination
    urgency: int
    expires: int | None
    due: int | None
    headers: str | bytes  # bytes: a moved message, if its headers are not valid text
    body: bytes | None
    duplicate_id: str | None
    bucket: int | None
    checksum: int | None


def encode(message: Message, to: Destination, *, with_checksum: bool = False) -> Outgoing:
    """Encode a message after the producer has set its headers.

    Args:
        message: The message.
        to: The destination.
        with_checksum: True to store a checksum, by which damage of the file is detected.

    Raises:
        MessageFormatError: Text in the message is not Unicode: it holds half of a surrogate pair. Or a property holds
            bytes, which only messages received over AMQP have.
    """
    try:
        kind, body = encode_body(message)
        fields = _fields(message, kind, to)
        headers = encode_headers(fields)
        written = headers.encode()  # refuse invalid text here, not at the commit
    except (TypeError, UnicodeEncodeError) as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error
    has_p = has_properties(message)
    duplicate_id, bucket = _duplicate_id_and_bucket(message.properties) if has_p else (None, None)
    expires = None if message.expiration is None else to_milliseconds(message.expiration)
    checksum = crc32(written) ^ crc32(body or b"") if with_checksum else None
    return Outgoing(to, 9 - message.priority, expires, fields.get("due"), headers, body, duplicate_id, bucket, checksum)


def _fields(message: Message, kind: str, to: Destination) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": kind,  # kind and id come first: see _StoredHeaders.opening
        "id": message.message_id,
        "to": [to.kind, to.name, True] if to.temporary else [to.kind, to.name],
        "mode": int(message.delivery_mode),
        "priority": message.priority,
        "time": to_milliseconds(message.timestamp),
    }
    if message.correlation_id is not None:
        fields["correlation"] = message.correlation_id
    if message.reply_to is not None:
        fields["reply"] = destination_to_json(message.reply_to)
    if message.type is not None:
        fields["type"] = message.type
    if message.delivery_time is not None:
        fields["due"] = to_milliseconds(message.delivery_time)
    if has_properties(message):
        values = fields["p"] = dict(message.properties)
        fields["t"] = {name: special for name, value in values.items() if (special := type_tag(value))}
    return fields


def encode_headers(fields: dict[str, Any]) -> str:
    """Return the headers of a message with its properties as the JSON text that SQLite and `decode` read."""
    try:
        return to_json(fields)
    except ValueError:  # a property is infinite or not a number, which JSON cannot express
        return _with_infinities(fields)


def _duplicate_id_and_bucket(properties: Properties) -> tuple[str | None, int | None]:
    """Return the duplicate id of a message and the bucket of its group, or None for each."""
    duplicate, group = properties.get(DUPLICATE_ID), properties.get(GROUP_ID)
    bucket = None if group is None else crc32(str(group).encode()) % _BUCKETS
    return None if duplicate is None else str(duplicate), bucket


def _with_infinities(fields: dict[str, Any]) -> str:
    values = fields.pop("p")
    unknown = {name: type_name(value) for name, value in values.items() if _is_nan(value)}
    fields["t"] = {**fields.get("t", {}), **unknown}
    return f'{to_json(fields)[:-1]},"p":{to_json_with_infinities(values)}}}'


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def decode(headers: bytes, body: bytes | None, deliveries: int, expires: int | None) -> Message:
    """Return the message of a row, read-only. Its headers are decoded at the first access.

    Raises:
        MessageFormatError: The row does not hold a message. Damaged headers raise it at their first access.
    """
    fields = _StoredHeaders(headers, deliveries, expires)
    try:
        message_type, decoder = _body_decoder(fields)
        return message_type.received(decoder(body), fields)
    except UNDECODABLE as error:
        raise _decoding_error(error) from error


def _body_decoder(fields: _StoredHeaders) -> BodyDecoder:
    """Return the decoder of the body. Headers of the first release, and damaged ones, are decoded here at once."""
    if fields.opening is not None:
        return BODY_DECODERS[fields.opening[1].decode()]
    kind = BODY_DECODERS[fields.fields["kind"]]
    dict(fields)
    return kind


def selector_values(headers: str | bytes) -> dict[str, Any]:
    """Return the identifiers that a selector can use, with their values; none if the headers cannot be decoded."""
    try:
        fields: dict[str, Any] = from_json(headers if isinstance(headers, str) else headers.decode())
        mode = "NON_PERSISTENT" if fields.get("mode") == DeliveryMode.NON_PERSISTENT else "PERSISTENT"
        selected = {name: fields.get(field) for name, field in SELECTOR_FIELDS.items()}
        return {**fields.get("p", {}), **selected, "JMSDeliveryMode": mode, "JMSXDeliveryCount": 1}
    except UNDECODABLE:
        return {}


def with_changed_headers(checksum: int | None, before: bytes, after: bytes) -> int | None:
    """Return the checksum after a change of the headers; a wrong checksum stays wrong, so that no damage is hidden."""
    return None if checksum is None else checksum ^ crc32(before) ^ crc32(after)


def verify_checksum(checksum: int | None, headers: bytes, body: bytes | None) -> None:
    """Compare a message with its checksum, which memory brokers and messages of the first release do not have (None).

    Raises:
        MessageFormatError: The checksum does not match.
    """
    if checksum is not None and checksum != crc32(headers) ^ crc32(body or b""):
        raise MessageFormatError("The stored message is damaged: its bytes are not those that were sent.")
