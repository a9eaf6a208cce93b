"""Messages and values in frames: written for Java, and read on first access.

What no JMS client takes from a producer, such as the message id, or cannot hold, such as a property named like a
keyword, travels as JSON in the property ``_jmsjca``.
"""

import json
import re
import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from jmsjca.destinations import Destination, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    Properties,
    StreamMessage,
    TextMessage,
    convert,
    type_name,
    typed_entry,
    typed_property,
)
from jmsjca.messages.message import has_properties
from jmsjca.messages.properties import Byte, Char, Double, EntryValue, Float, Int, Long, Short, is_identifier
from jmsjca.providers.common.codec import UNDECODABLE, to_datetime, to_milliseconds
from jmsjca.providers.java.bridge import FrameReader, pack_bytes, pack_text

__all__ = [
    "MESSAGE_ID",
    "METADATA",
    "body_of",
    "decode",
    "encode",
    "pack_destination",
]

METADATA = "_jmsjca"
MESSAGE_ID = "_jmsjca_id"
"""The property with the message id: each client assigns ids of its own."""

_PLAIN, _TEXT, _BYTES, _MAP, _STREAM, _UNREADABLE = range(6)
_PERSISTENT = 1
_TEMPORARY = 3
_U32, _I16, _I32, _I64 = struct.Struct(">I"), struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_F32, _F64, _CHAR = struct.Struct(">f"), struct.Struct(">d"), struct.Struct(">H")
_HEAD, _SENT = struct.Struct(">BBBiqqq"), struct.Struct(">BBBqq")
_UNDECODABLE = (*UNDECODABLE, struct.error, IndexError)
_MODES = {False: DeliveryMode.NON_PERSISTENT, True: DeliveryMode.PERSISTENT}
_SEQUENCE = "JMSXGroupSeq"
_JMSX = {"JMSXGroupID", _SEQUENCE}
_FRAGILE = re.compile(r"[\0\U00010000-\U0010ffff]")
"""Characters that ActiveMQ's client damages in properties and in map messages."""
_NO_IBM_ID = re.compile(r"ID:(?!(?:[0-9a-fA-F]{2}){1,24}\Z)")
"""Correlation ids that IBM MQ's client refuses: behind ID: it takes up to 24 bytes in hexadecimal digits only."""


def read_destination(frame: FrameReader) -> Destination | None:
    """Read a destination: 1 is a queue, 2 a topic, 3 and 4 are temporary ones; 0 is none."""
    kind = frame.u8()
    if not kind:
        return None
    return destination(frame.text() or "", "queue" if kind % 2 else "topic", temporary=kind >= _TEMPORARY)


def read_value(frame: FrameReader) -> EntryValue:
    """Read a value with its type."""
    tag = frame.u8()
    if tag >= len(_READERS):
        raise ValueError("a frame has a value of an unknown type")
    return _READERS[tag](frame)


_READERS: list[Callable[[FrameReader], EntryValue]] = [
    lambda _: None,
    lambda frame: frame.u8() != 0,
    lambda frame: Byte((frame.u8() ^ 0x80) - 0x80),
    lambda frame: Short(frame.number(_I16)),
    lambda frame: Int(frame.number(_I32)),
    lambda frame: Long(frame.number(_I64)),
    lambda frame: Float(frame.number(_F32)),
    lambda frame: Double(frame.number(_F64)),
    FrameReader.text,
    lambda frame: Char(frame.number(_CHAR).to_bytes(2, "big").decode("utf-16-be")),
    FrameReader.bytes,
]


def pack_destination(of: Destination | None) -> bytes:
    """Return a destination."""
    if of is None:
        return b"\0"
    return bytes([(1 if of.kind == "queue" else 2) + 2 * of.temporary]) + pack_text(of.name)


_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "boolean": lambda value: b"\1\1" if value else b"\1\0",
    "byte": lambda value: b"\2" + (value & 0xFF).to_bytes(1, "big"),
    "short": lambda value: b"\3" + _I16.pack(value),
    "int": lambda value: b"\4" + _I32.pack(value),
    "long": lambda value: b"\5" + _I64.pack(value),
    "float": lambda value: b"\6" + _F32.pack(value),
    "double": lambda value: b"\7" + _F64.pack(value),
    "string": lambda value: b"\x08" + pack_text(value),
    "char": lambda value: b"\x09" + value.encode("utf-16-be"),
    "bytes": lambda value: b"\x0a" + pack_bytes(value),
}


def _pack_value(value: EntryValue) -> bytes:
    return b"\0" if value is None else _WRITERS[type_name(value)](value)


def encode(message: Message, to: Destination, vendor: str | None = None) -> bytes:
    """Encode a message after the producer has set its JMS headers.

    Args:
        message: The message.
        to: Its destination.
        vendor: The beginning of the names of IBM MQ's own properties, for its client; None for other clients.

    Raises:
        MessageFormatError: A text in it holds half of a surrogate pair, or a property holds bytes, which only messages
            received over AMQP have.
    """
    try:
        return _encode(message, to, vendor)
    except (TypeError, UnicodeEncodeError) as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def _encode(message: Message, to: Destination, vendor: str | None) -> bytes:
    kind, body, ours = _body(message)
    expires, due, sent = (to_milliseconds(m) for m in (message.expiration, message.delivery_time, message.timestamp))
    ours |= {"s": sent or 0, "x": expires, "d": due}
    if message.reply_to is not None and message.reply_to.temporary:
        ours["r"] = True
    properties = _properties(message.properties, ours, vendor) if has_properties(message) else []
    correlation_id = message.correlation_id
    if vendor is not None and correlation_id is not None and _NO_IBM_ID.match(correlation_id):
        ours["c"], correlation_id = correlation_id, correlation_id.removeprefix("ID:")
    ours = {name: value for name, value in ours.items() if value is not None}
    if message.message_id is not None:
        properties.append(pack_text(MESSAGE_ID) + _pack_value(message.message_id))
    properties.append(pack_text(METADATA) + _pack_value(json.dumps(ours, separators=(",", ":"))))
    return b"".join(
        (
            pack_destination(to),
            _SENT.pack(
                kind,
                message.delivery_mode is DeliveryMode.PERSISTENT,
                message.priority,
                expires or 0,
                due or 0,
            ),
            pack_text(correlation_id),
            pack_text(message.type),
            pack_destination(message.reply_to),
            _U32.pack(len(properties)),
            *properties,
            body,
        )
    )


def _body(message: Message) -> tuple[int, bytes, dict[str, Any]]:
    """Return the kind of a message, its body, and the metadata of what JMS has no word for."""
    if isinstance(message, TextMessage):
        return _TEXT, pack_text(message.body), {}
    if isinstance(message, BytesMessage):
        return _BYTES, pack_bytes(message.body), {"k": "no bytes"} if _is_missing(message.body) else {}
    if isinstance(message, MapMessage):
        fragile = _fragile_entries(message.body)
        shown = {name: name for name in message.body} | {name: sent for sent, (name, _) in fragile.items()}
        entries = [pack_text(shown[name]) + _pack_value(value) for name, value in message.body.items()]
        return _MAP, _U32.pack(len(entries)) + b"".join(entries), {"m": list(message.body), "f": fragile or None}
    if isinstance(message, StreamMessage):
        values = [_pack_value(value) for value in message.body]
        return _STREAM, _U32.pack(len(values)) + b"".join(values), {}
    if isinstance(message, ObjectMessage):
        return _BYTES, pack_bytes(message.pickled), {"k": "object" if message.pickled is not None else "no object"}
    return _PLAIN, b"", {}


def _fragile_entries(body: Mapping[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Return, by the names that are sent, the names and texts of map entries that ActiveMQ's client damages."""
    found: dict[str, tuple[str, str | None]] = {}
    for number, (name, value) in enumerate(body.items()):
        is_fragile = isinstance(value, str) and type_name(value) == "string" and _FRAGILE.search(value)
        text = value if is_fragile else None
        if text is not None or _FRAGILE.search(name):
            found[f"{_FRAGILE.sub('?', name)} {number}" if _FRAGILE.search(name) else name] = name, text
    return found


def _is_missing(body: bytes | None) -> bool:
    """Return True for the body that a message may lack, although its type does not mention it."""
    return body is None


def _properties(properties: Properties, ours: dict[str, Any], vendor: str | None) -> list[bytes]:
    """Return the properties that Java's clients see; the others go into the metadata."""
    shown: list[bytes] = []
    hidden: dict[str, Any] = {}
    for name, value in dict[str, Any](properties).items():  # of a received message it may also be bytes
        is_vendors = vendor is not None and name.startswith(vendor)
        if not is_vendors and isinstance(value, bytes):
            raise TypeError(f"the property {name!r:.100} holds bytes")
        before = len(shown)
        if value is not None and is_identifier(name) and (is_vendors or name in _JMSX or not name.startswith("JMS")):
            shown.append(pack_text(name) + _pack_value(value))
        if len(shown) == before or (isinstance(value, str) and _FRAGILE.search(value)):
            _ = name.encode()  # JSON would hide half of a surrogate pair
            hidden[name] = None if value is None else [type_name(value), _hidden_text(value)]
    if hidden:
        ours["p"] = hidden
    return shown


def _hidden_text(value: Any) -> str:
    text = str(convert(value, "string"))
    _ = text.encode()
    return text


def decode(data: bytes, source: Destination | None, *, count: int, redelivered: bool) -> Message:
    """Decode a received message. Its headers are decoded on first access.

    Args:
        data: The message in the form of the frames.
        source: The destination that it comes from, which knows whether it is temporary; None for a browsed one.
        count: The delivery count.
        redelivered: True if it was delivered before.

    Raises:
        MessageFormatError: The body cannot be decoded. For the headers it is raised on their access.
    """
    try:
        told = {"delivery_count": count, "redelivered": redelivered}
        start = _headers_end(data)
        kind = data[0]
        ours = _metadata(data, start)
        made, body = _decode_body(kind, FrameReader(data, start + 4 + _U32.unpack_from(data, start)[0]), ours)
        return made.received(body, lambda: {**_headers(data, start, ours, source), **told})
    except _UNDECODABLE as error:
        raise _undecodable(error) from error


def body_of(data: bytes) -> bytes:
    """Return the body of a received message as bytes."""
    start = _headers_end(data)
    frame = FrameReader(data, start + 4 + _U32.unpack_from(data, start)[0])
    return frame.bytes() or b""


def _undecodable(error: Exception) -> MessageFormatError:
    return MessageFormatError(f"The received message cannot be decoded: {error}.")


def _headers_end(data: bytes) -> int:
    """Return the position of the properties."""
    position = _HEAD.size
    for _ in range(3):  # texts
        (size,) = _I32.unpack_from(data, position)
        position += 4 + max(size, 0)
    for _ in range(2):  # destinations
        position += 5 + _I32.unpack_from(data, position + 1)[0] if data[position] else 1
    return position


def _metadata(data: bytes, start: int) -> dict[str, Any]:
    mark = pack_text(METADATA) + b"\x08"
    at = data.find(mark, start)
    if at < 0:
        return {}
    ours = json.loads(FrameReader(data, at + len(mark)).text() or "")
    if not isinstance(ours, dict):
        raise TypeError(f"{METADATA} is no object")
    return cast("dict[str, Any]", ours)


def _headers(data: bytes, start: int, ours: Mapping[str, Any], source: Destination | None) -> dict[str, Any]:
    try:
        headers = _decode_headers(data, start, ours)
    except _UNDECODABLE as error:
        raise _undecodable(error) from error
    to = headers["destination"]
    if source is not None and source.temporary and to is not None and to.name == source.name:
        headers["destination"] = destination(source.name, source.kind, temporary=True)
    return headers


def _decode_headers(data: bytes, start: int, ours: Mapping[str, Any]) -> dict[str, Any]:
    _, flags, priority, _, sent, expires, due = _HEAD.unpack_from(data)
    frame = FrameReader(data, _HEAD.size)
    message_id, correlation_id, kind = frame.text(), frame.text(), frame.text()
    to, reply_to = read_destination(frame), read_destination(frame)
    if reply_to is not None and ours.get("r"):
        reply_to = destination(reply_to.name, reply_to.kind, temporary=True)
    properties = _decode_properties(FrameReader(data, start + 4), ours)
    return {
        "message_id": properties.pop(MESSAGE_ID, message_id),
        "properties": Properties.received(properties),
        "correlation_id": ours.get("c", correlation_id),
        "type": kind,
        "destination": to,
        "reply_to": reply_to,
        "delivery_mode": _MODES[bool(flags & _PERSISTENT)],
        "priority": priority,
        "timestamp": _moment(ours.get("s", sent)),
        "expiration": _moment(ours.get("x", expires)),
        "delivery_time": _moment(ours.get("d", 0 if ours else due)),
    }


def _moment(milliseconds: int) -> datetime | None:
    return to_datetime(milliseconds or None)


def _decode_properties(frame: FrameReader, ours: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for _ in range(frame.count()):
        name = frame.text() or ""
        values[name] = read_value(frame)
    values.pop(METADATA, None)
    if ours and not values.get(_SEQUENCE, 1):
        del values[_SEQUENCE]  # ActiveMQ's client adds one
    for name, hidden in ours.get("p", {}).items():
        values[name] = None if hidden is None else _shown(*hidden)
    return values


def _shown(kind: str, text: str) -> Any:
    if kind == "boolean":
        return text == "true"
    return typed_property(float(text) if text.lower() == "nan" else text, kind)


def _decode_body(kind: int, frame: FrameReader, ours: Mapping[str, Any]) -> tuple[type[Message], Any]:
    if kind == _TEXT:
        return TextMessage, frame.text()
    if kind == _BYTES:
        special = ours.get("k")
        body = None if special in {"no bytes", "no object"} else frame.bytes()
        return (ObjectMessage if special in {"object", "no object"} else BytesMessage), body
    if kind == _PLAIN:
        return Message, None
    if kind == _UNREADABLE:
        raise ValueError(f"Java's client cannot read its body: {frame.text() or 'it is an object of Java'}")
    frame.position += 4  # the size
    if kind == _MAP:
        entries = {frame.text() or "": read_value(frame) for _ in range(frame.count())}
        renamed: dict[str, tuple[str, str | None]] = ours.get("f") or {}
        for sent, (name, text) in renamed.items():
            value = entries.pop(sent)
            entries[name] = value if text is None else text
        order = [name for name in ours.get("m", ()) if name in entries]  # clients keep none
        return MapMessage, {name: entries[name] for name in dict.fromkeys((*order, *entries))}
    return StreamMessage, [typed_entry(read_value(frame)) for _ in range(frame.count())]
