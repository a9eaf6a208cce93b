"""A message as bounded text: its headers, its properties, and its body by type. No pickle is loaded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, cast

from jmsjca.errors import excerpt
from jmsjca.messages.bytes_and_stream import BytesMessage, StreamMessage
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.messages.object_message import ObjectMessage

__all__ = ["Entry", "MessageView", "visible"]

_MAX_TEXT = 64 * 1024  # characters of a body
_MAX_FIELD = 1024  # characters of a header, a property or an entry
_MAX_BYTES = 4096  # bytes of a hexadecimal dump
_MAX_ENTRIES = 200  # properties, or entries of a body
_LINE = 16  # bytes of a line of the dump


@dataclass(frozen=True, slots=True)
class Entry:
    """A property of a message, or an entry of a map or stream body.

    Attributes:
        name: The name, or the index from 0.
        type: The type of the value.
        value: The value as text.
    """

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as text. Control characters are escaped, and everything is bounded.

    Attributes:
        kind: The class of the message.
        headers: The headers that are set, by name.
        properties: The properties; the first 200.
        text: The body of a text message; or the hexadecimal dump of bytes, or of a pickle, which is not loaded.
        entries: The entries of a map or stream message; the first 200.
        size: The size of the body in characters, bytes or entries; None without a body.
        cut: True if the body is longer than what is shown.
    """

    kind: str
    headers: Mapping[str, str]
    properties: Sequence[Entry]
    text: str | None = None
    entries: Sequence[Entry] = ()
    size: int | None = None
    cut: bool = False

    @classmethod
    def of(cls, message: Message) -> "MessageView":
        """Return the view of a message.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """
        headers = {name: _field(value) for name, value in _headers(message) if value not in (None, "")}
        properties = _entries(message.properties.items())
        return cls(type(message).__name__, headers, properties, **_body(message))


def visible(text: str, limit: int = _MAX_TEXT) -> str:
    """Return the beginning of a text; characters that are not printable, except newline and tab, are escaped.

    Args:
        text: The text.
        limit: The maximum number of its characters.
    """
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text[:limit])


def _headers(message: Message) -> Iterable[tuple[str, object]]:
    yield "message id", message.message_id
    yield "destination", message.destination
    yield "timestamp", message.timestamp
    yield "type", message.type
    yield "correlation id", message.correlation_id
    yield "reply to", message.reply_to
    yield "priority", int(message.priority)
    yield "delivery mode", message.delivery_mode.name.lower().replace("_", " ")
    yield "delivery time", message.delivery_time
    yield "expiration", message.expiration
    yield "redelivered", "yes" if message.redelivered else "no"
    yield "delivery count", message.delivery_count or None


def _field(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return excerpt(value, _MAX_FIELD)


def _entries(items: Iterable[tuple[object, object]]) -> Sequence[Entry]:
    return [_entry(name, value) for name, value in islice(items, _MAX_ENTRIES)]


def _entry(name: object, value: object) -> Entry:
    shown = f"0x{value[:_MAX_FIELD].hex()}" if isinstance(value, bytes) else excerpt(value, _MAX_FIELD)
    return Entry(excerpt(name, _MAX_FIELD), type(value).__name__.lower(), shown)


def _body(message: Message) -> dict[str, Any]:
    """Return the fields of the view that describe the body."""
    if isinstance(message, ObjectMessage):
        return _dumped(message.pickled)
    if isinstance(message, BytesMessage):
        return _dumped(message.get_body(bytes))
    if isinstance(message, MapMessage):
        return _listed(message.body.items(), len(message.body))
    if isinstance(message, StreamMessage):
        return _listed(enumerate(message.body), len(message.body))
    body = cast("object", message.body) if isinstance(message, TextMessage) else None
    if not isinstance(body, str):
        return {}
    return {"text": visible(body), "size": len(body), "cut": len(body) > _MAX_TEXT}


def _listed(items: Iterable[tuple[object, object]], size: int) -> dict[str, Any]:
    return {"entries": _entries(items), "size": size, "cut": size > _MAX_ENTRIES}


def _dumped(content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {}
    shown = content[:_MAX_BYTES]
    lines = (_dump_line(start, shown[start : start + _LINE]) for start in range(0, len(shown), _LINE))
    return {"text": "\n".join(lines), "size": len(content), "cut": len(content) > _MAX_BYTES}


def _dump_line(start: int, part: bytes) -> str:
    readable = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)  # noqa: PLR2004  # ASCII
    return f"{start:06x}  {part.hex(' '):<{_LINE * 3}} {readable}"
