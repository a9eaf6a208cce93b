"""Views of messages, destinations, dead letters and changes, shared by the command line, the console and MCP.

Rows have complete values, for JSON and tables. A `MessageView` is text of bounded length. Pickles are never loaded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, cast

from jmsjca.errors import MessageFormatError, excerpt
from jmsjca.management.dead_letter import DeadLetterRecord, distinct_facts
from jmsjca.management.insight import DestinationInfo, SubscriptionInfo
from jmsjca.management.message_changes import Change
from jmsjca.messages.bytes_and_stream import BytesMessage, StreamMessage
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.messages.object_message import ObjectMessage

__all__ = [
    "Entry",
    "MessageView",
    "bounded",
    "change_row",
    "destination_row",
    "header_row",
    "message_row",
    "overview_row",
    "preview_row",
    "rate_row",
    "record_details",
    "record_row",
    "subscription_row",
    "visible",
]

_MAX_TEXT = 64 * 1024  # characters of a body
_MAX_PREVIEW = 120  # characters of a body in a list
_MAX_FIELD = 1024  # characters of a header, a property or an entry
_MAX_BYTES = 4096  # bytes of a hexadecimal dump
_MAX_ENTRIES = 200  # properties, or entries of a body
_LINE = 16  # bytes per line of the dump


@dataclass(frozen=True, slots=True)
class Entry:
    """A property of a message, or an entry of a map or stream body.

    Attributes:
        name: Name, or index from 0.
        type: Type of the value.
        value: The value as text.
    """

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as text. Control characters are escaped, and all sizes are bounded.

    Attributes:
        kind: Class of the message.
        headers: The headers that are set, by name.
        properties: The first 200 properties.
        text: Body of a text message; or a hexadecimal dump of bytes, or of a pickle, which is not loaded.
        entries: The first 200 entries of a map or stream message.
        size: Size of the body in characters, bytes or entries; None without a body.
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
    def of(cls, message: Message, limit: int = _MAX_TEXT, *, as_letter: bool = False) -> "MessageView":
        """Return the view of a message. A fact that a dead letter records under both vendor names is one property.

        Args:
            message: The message.
            limit: Maximum number of characters of a text body.
            as_letter: True to leave out the stack trace, which `record_details` shows.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """
        headers = {name: _field(value) for name, value in _headers(message) if value not in (None, "")}
        properties = _entries(distinct_facts(message.properties, traces=not as_letter))
        return cls(type(message).__name__, headers, properties, **_body(message, limit))

    def beginning(self, limit: int) -> dict[str, Any]:
        """Return the beginning of the body, limited in characters, and the size of the body, as JSON values."""
        if self.entries:
            return {"entries": {each.name: each.value for each in self.entries}, "size": self.size, "cut": self.cut}
        text = self.text
        cut = self.cut or (text is not None and len(text) > limit)
        return {"text": text and text[:limit], "size": self.size, "cut": cut}

    def as_dict(self, limit: int) -> dict[str, Any]:
        """Return the view as JSON values.

        Args:
            limit: Maximum number of characters of the body.
        """
        properties = {each.name: each.value for each in self.properties}
        return {"kind": self.kind, "headers": dict(self.headers), "properties": properties, **self.beginning(limit)}


def header_row(message: Message) -> dict[str, object]:
    """Return the headers of a message as a row."""
    return {
        "message_id": message.message_id,
        "kind": type(message).__name__,
        "timestamp": message.timestamp,
        "redelivered": message.redelivered,
        "priority": int(message.priority),
        "correlation_id": message.correlation_id,
        "type": message.type,
    }


def message_row(message: Message) -> dict[str, object]:
    """Return the headers, the properties and the body of a message as a row."""
    return {**header_row(message), "properties": dict(message.properties), "body": _whole_body(message)}


def preview_row(message: Message) -> dict[str, Any]:
    """Return the headers of a message as a row, with the beginning of its body in one line, and its properties."""
    try:
        view = MessageView.of(message, _MAX_PREVIEW)
    except MessageFormatError as error:
        return {**header_row(message), "preview": visible(str(error), _MAX_PREVIEW), "size": None, "properties": ()}
    text = ", ".join(f"{each.name}={each.value}" for each in view.entries) if view.text is None else view.text
    return {
        **header_row(message),
        "preview": " ".join(text[:_MAX_PREVIEW].split()),
        "size": view.size,
        "properties": view.properties,
    }


def destination_row(info: DestinationInfo) -> dict[str, object]:
    """Return a destination with depth and consumers as a row. Figures that the broker does not count are None."""
    depth = info.depth
    return {
        "kind": info.destination.kind,
        "name": info.destination.name,
        "ready": depth and depth.ready,
        "held": depth and depth.held,
        "scheduled": depth and depth.scheduled,
        "consumers": info.activity and info.activity.consumers,
    }


def subscription_row(info: SubscriptionInfo) -> dict[str, object]:
    """Return a durable subscription with depth and consumers as a row."""
    found, depth = info.subscription, info.depth
    return {
        "name": found.name,
        "client_id": found.client_id,
        "topic": found.topic.name,
        "ready": depth.ready,
        "held": depth.held,
        "scheduled": depth.scheduled,
        "consumers": info.activity.consumers,
    }


def rate_row(info: DestinationInfo) -> dict[str, object]:
    """Return the row of a destination with its measured rates."""
    rates = {"added_per_second": info.added_per_second, "settled_per_second": info.settled_per_second}
    return {**destination_row(info), **{name: rate and round(rate, 1) for name, rate in rates.items()}}


def overview_row(info: DestinationInfo) -> dict[str, object]:
    """Return the row of a queue with its measured rates, and the time at which its oldest waiting message was sent."""
    return {**rate_row(info), "oldest": info.oldest}


def record_row(record: DeadLetterRecord) -> dict[str, object]:
    """Return the origin and the failure of a dead letter as a row."""
    return {
        "message_id": record.message_id,
        "origin": None if record.origin is None else str(record.origin),
        "moved": _seconds(record.moved),
        "redeliveries": record.redeliveries,
        "replays": record.replays,
        "reason": record.reason,
        "error": record.error,
    }


def record_details(record: DeadLetterRecord) -> dict[str, object]:
    """Return the row of a dead letter, with its stack trace and the user data of the handler."""
    return {
        **record_row(record),
        "original_id": record.original_id,
        "expiration": _seconds(record.expiration),
        "user_data": dict(record.user_data),
        "stack_trace": record.stack_trace,
    }


def change_row(change: Change) -> dict[str, object]:
    """Return the change of a message as a row."""
    return {
        "message_id": change.message_id,
        "target": None if change.target is None else str(change.target),
        "outcome": change.outcome,
        "replays": change.replays,
        "expired": change.expired,
    }


def bounded(value: Any, limit: int) -> Any:
    """Return a JSON value with each text truncated, and non-printable characters escaped.

    Args:
        value: A text, a mapping of values, or any other value.
        limit: Maximum number of characters per text.
    """
    if isinstance(value, Mapping):
        found = cast("Mapping[str, object]", value)
        return {visible(name, limit): bounded(each, limit) for name, each in found.items()}
    return visible(value, limit) if isinstance(value, str) else value


def visible(text: str, limit: int | None = _MAX_TEXT) -> str:
    """Return the beginning of a text. Non-printable characters, except newline and tab, are escaped.

    Args:
        text: The text.
        limit: Maximum number of characters; None for all.
    """
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text[:limit])


def _seconds(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")


def _whole_body(message: Message) -> Any:
    """Return the body. Pickled objects are never loaded, and bytes that are not text are shown in hexadecimal."""
    try:
        body = message.get_body(object)
    except MessageFormatError:
        return None
    if isinstance(body, bytes):
        try:
            return body.decode()
        except UnicodeDecodeError:
            return f"0x{body.hex()}"
    return body


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


def _body(message: Message, limit: int) -> dict[str, Any]:
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
    return {"text": visible(body, limit), "size": len(body), "cut": len(body) > limit}


def _listed(items: Iterable[tuple[object, object]], size: int) -> dict[str, Any]:
    return {"entries": _entries(items), "size": size, "cut": size > _MAX_ENTRIES}


def _dumped(content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {}
    shown = content[:_MAX_BYTES]
    lines = (_dump_line(start, shown[start : start + _LINE]) for start in range(0, len(shown), _LINE))
    return {"text": "\n".join(lines), "size": len(content), "cut": len(content) > _MAX_BYTES}


def _dump_line(start: int, part: bytes) -> str:
    shown = part.decode("latin-1")
    readable = "".join(char if char.isascii() and char.isprintable() else "." for char in shown)
    return f"{start:06x}  {part.hex(' '):<{_LINE * 3}} {readable}"
