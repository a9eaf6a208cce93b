"""Messages as rows: headers and properties as JSON, the body as bytes, and a checksum of both.

SQLite has checksums for its journal only: a bit that flips in the file itself would be delivered as part of a message.
The checksum detects that before the message reaches the application.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import UNSET, UnsetType

from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.messages import (
    DUPLICATE_ID,
    GROUP_ID,
    DeliveryMode,
    Int,
    Message,
    Properties,
    PropertyValue,
    type_name,
    typed_property,
)
from jmsjca.messages.message import has_properties
from jmsjca.providers.common.codec import (
    BODY_DECODERS,
    UNDECODABLE,
    BodyDecoder,
    LazyHeaders,
    ReadingHabit,
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
_KIND_AT = len(b'{"kind":"')
_KINDS = {f'{{"kind":"{kind}","id":'.encode(): decoder for kind, decoder in BODY_DECODERS.items()}
_ID_LENGTH = len(b'","id":')
_NO_PROPERTIES = Properties.received({})  # immutable, so all messages share one
_MODES = {int(mode): mode for mode in DeliveryMode}  # a dictionary is faster than a call of the enumeration


class _Fields(msgspec.Struct, omit_defaults=True, gc=False):
    """The fields of the JSON object, in their order. `p` has the properties, and `t` the types that JSON lacks."""

    kind: str  # kind and id come first: see _OPENING
    id: str | None
    to: list[str | bool]
    mode: int
    priority: int
    time: int | None
    correlation: str | None = None
    reply: list[str | bool] | None = None
    type: str | None = None
    due: int | None = None
    p: dict[str, Any] | UnsetType = UNSET
    t: dict[str, str] | UnsetType = UNSET


_encode_fields = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(_Fields).decode


def _decoding_error(error: Exception) -> MessageFormatError:
    """Return the error of a message that cannot be decoded."""
    return MessageFormatError(f"The stored message cannot be decoded: {error}.")


def _message_id(headers: "_StoredHeaders") -> str | None:
    opening = _OPENING.match(headers.text)
    if opening is None:
        return expect_text(headers.fields.get("id"))
    message_id: bytes | None = opening[2]
    return None if message_id is None else message_id.decode()


def _properties(headers: "_StoredHeaders") -> Properties:
    fields = headers.fields
    return _properties_of(fields["p"], fields.get("t", {})) if "p" in fields or "t" in fields else _NO_PROPERTIES


def _properties_of(written: dict[str, Any], types: Mapping[str, str]) -> Properties:
    if not types:
        for name, value in written.items():
            if value.__class__ is not str:  # a text has its type already
                written[name] = typed_property(value)
        return Properties.received(written)
    values = {name: typed_property(value, types.get(name)) for name, value in written.items()}
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

    All headers are decoded at the first access to one that needs the text; see `whole`. A text that is not as `encode`
    writes it is decoded header by header, so that a damaged header does not hide the others.

    Args:
        text: The stored headers.
        deliveries: Number of deliveries, this one included.
        expires: The expiration in milliseconds since the epoch; None for never.
        habit: How the application reads the consumer's messages; None if that is not noted.

    Attributes:
        fields: The stored headers as the JSON object has them, parsed at the first access.
        decoded: All headers; None if the text is not as `encode` writes it.
    """

    __slots__ = ("decoded", "deliveries", "expires", "fields", "habit", "text")

    decoders = _DECODERS

    fields: dict[str, Any]
    decoded: Mapping[str, Any] | None
    deliveries: int
    expires: int | None

    def __init__(self, text: bytes, deliveries: int, expires: int | None, habit: ReadingHabit | None = None) -> None:
        self.text = text
        self.habit = habit
        self.deliveries = deliveries
        self.expires = expires

    def __getattr__(self, name: str) -> Any:
        """Parse the fields at the first access: after it, there is no call of a property for each."""
        if name == "decoded":
            self.decoded = self._decode_whole()
            return self.decoded
        if name != "fields":
            raise AttributeError(name)
        self.fields = from_json(self.text.decode())
        return self.fields

    def __getitem__(self, name: str) -> Any:
        whole = self.whole(name)
        return super().__getitem__(name) if whole is None else whole[name]

    def select(self, names: Iterable[str]) -> list[Any]:
        """Return some headers, in the order of their names."""
        whole = self.decoded
        return super().select(names) if whole is None else [whole[name] for name in names]

    def whole(  # pyright: ignore[reportIncompatibleVariableOverride]  # a method fits
        self, name: str
    ) -> Mapping[str, Any] | None:
        """Return all headers; None if that one is had without the text, or the text is not as `encode` writes it."""
        if name in _WITHOUT_TEXT:
            return None
        if self.habit is not None:
            self.habit.note()
        return self.decoded

    def _decode_whole(self) -> Mapping[str, Any] | None:
        try:
            fields = _decode_fields(self.text)
            if fields.p is not UNSET:
                properties = _properties_of(fields.p, {} if fields.t is UNSET else fields.t)
            elif fields.t is UNSET:
                properties = _NO_PROPERTIES
            else:
                return None
            return {
                "properties": properties,
                "message_id": fields.id,
                "destination": destination_from_json(fields.to),
                "correlation_id": fields.correlation,
                "reply_to": destination_from_json(fields.reply) if fields.reply else None,
                "type": fields.type,
                "delivery_mode": _MODES[fields.mode],
                "priority": fields.priority,
                "timestamp": to_datetime(fields.time),
                "expiration": to_datetime(self.expires),
                "delivery_time": to_datetime(fields.due),
                "delivery_count": self.deliveries,
                "redelivered": self.deliveries > 1,
            }
        except (msgspec.MsgspecError, JMSError, *UNDECODABLE):
            return None

    def decoding_error(self, error: Exception) -> MessageFormatError:
        """Return the error for a header that cannot be decoded."""
        return _decoding_error(error)

    def mentions(self, name: str) -> bool:
        """Return False if no property has this name (ASCII); found without decoding."""
        return name.encode() in self.text


_WITHOUT_TEXT = {"message_id", "expiration", "delivery_count", "redelivered"}
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
        written = _encoded(fields, message)  # refuses invalid text here, not at the commit
    except (TypeError, UnicodeEncodeError) as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error
    duplicate_id, bucket = (None, None) if fields.p is UNSET else _duplicate_id_and_bucket(message.properties)
    expires = None if message.expiration is None else to_milliseconds(message.expiration)
    checksum = crc32(written) ^ crc32(body or b"") if with_checksum else None
    urgency = 9 - message.priority
    return Outgoing(to, urgency, expires, fields.due, written.decode(), body, duplicate_id, bucket, checksum)


def _fields(message: Message, kind: str, to: Destination) -> _Fields:
    """Return the fields of a message; the properties are as `_encoded` finds them."""
    reply_to, due = message.reply_to, message.delivery_time
    return _Fields(
        kind,
        message.message_id,
        destination_to_json(to),
        int(message.delivery_mode),
        message.priority,
        to_milliseconds(message.timestamp),
        message.correlation_id,
        None if reply_to is None else destination_to_json(reply_to),
        message.type,
        None if due is None else to_milliseconds(due),
        dict(message.properties) if has_properties(message) else UNSET,
    )


def _encoded(fields: _Fields, message: Message) -> bytes:
    """Return the JSON text of the fields. msgspec knows no subclasses of `str` and `int`, and no infinite numbers."""
    if fields.p is UNSET or _set_plain(fields, fields.p):
        with suppress(TypeError):
            return _encode_fields(fields)
    present = {
        name: value
        for name, value in msgspec.structs.asdict(fields).items()
        if value is not UNSET and (value is not None or name in {"id", "time"})
    }
    if fields.p is not UNSET:
        values = present["p"] = dict(message.properties)
        present["t"] = {name: tag for name, value in values.items() if (tag := type_tag(value))}
    return encode_headers(present).encode()


def _set_plain(fields: _Fields, values: dict[str, PropertyValue]) -> bool:
    """Make the properties values that msgspec encodes as `json` does; return False if one is not such a value."""
    types: dict[str, str] = {}
    for name, value in values.items():
        kind = value.__class__
        if kind is str:
            continue
        if kind is Int:
            values[name] = int(value)  # type: ignore[arg-type]
        elif value is not None and kind is not bool:
            if tag := type_tag(value):
                types[name] = tag
            if isinstance(value, int):
                values[name] = int(value)
            elif isinstance(value, float) and math.isfinite(value):
                values[name] = float(value)
            else:
                return False
    if types:
        fields.t = types
    return True


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


def decode(
    headers: bytes, body: bytes | None, deliveries: int, expires: int | None, habit: ReadingHabit | None = None
) -> Message:
    """Return the message of a row, read-only. Its headers are decoded at the first access, or by habit at once.

    Raises:
        MessageFormatError: The row does not hold a message. Damaged headers raise it at their first access.
    """
    fields = _StoredHeaders(headers, deliveries, expires, habit)
    try:
        kind = _KINDS.get(headers[: headers.find(b'"', _KIND_AT) + _ID_LENGTH])
        message_type, decoder = kind or _body_decoder(fields)
        if habit is None or habit.ahead <= 0:
            return message_type.received(decoder(body), fields)
        habit.ahead -= 1
        return message_type.received(decoder(body), fields, fields.decoded)
    except UNDECODABLE as error:
        raise _decoding_error(error) from error


def _body_decoder(fields: _StoredHeaders) -> BodyDecoder:
    """Return the decoder of the body, for headers of the first release and damaged ones: they are decoded at once."""
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
