"""Bodies as bytes: text as UTF-8, maps and streams as JSON, bytes and objects as they are."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, TypeAlias

from jmsjca.messages import (
    BytesMessage,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    entry,
)
from jmsjca.providers.values import from_json, special_type

__all__ = ["DECODERS", "Kind", "encode_body"]

Kind: TypeAlias = tuple[type[Message], Callable[[bytes | None], Any]]
"""The type of a kind of messages, and what decodes its body; what is none of that kind may raise anything."""

_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode  # infinities: only we read it


def encode_body(message: Message) -> tuple[str, bytes | None]:
    """Name the kind of a message, and encode its body."""
    if isinstance(message, TextMessage):
        return "text", None if message.body is None else message.body.encode()
    if isinstance(message, BytesMessage):
        return "bytes", message.body
    if isinstance(message, MapMessage):
        return "map", _to_json({name: _written(value) for name, value in message.body.items()}).encode()
    if isinstance(message, StreamMessage):
        return "stream", _to_json([_written(value) for value in message.body]).encode()
    return ("object", message.pickled) if isinstance(message, ObjectMessage) else ("plain", None)


def _text(body: bytes | None) -> str | None:
    return None if body is None else body.decode()


def _map(body: bytes | None) -> dict[str, EntryValue]:
    return {name: _read(value) for name, value in _parsed(body, dict).items()}


def _stream(body: bytes | None) -> list[EntryValue]:
    return [_read(value) for value in _parsed(body, list)]


def _as_it_is(body: bytes | None) -> bytes | None:
    return body


def _nothing(body: bytes | None) -> None:
    del body


DECODERS: dict[str, Kind] = {
    "text": (TextMessage, _text),
    "bytes": (BytesMessage, _as_it_is),
    "map": (MapMessage, _map),
    "stream": (StreamMessage, _stream),
    "object": (ObjectMessage, _as_it_is),
    "plain": (Message, _nothing),
}
"""Every kind, by its name."""


def _parsed(body: bytes | None, kind: type) -> Any:
    parsed = from_json((body or b"").decode())
    if not isinstance(parsed, kind):
        raise TypeError(f"the body is no {kind.__name__}")
    return parsed


def _written(value: EntryValue) -> Any:
    """A value as JSON: by itself, or behind its type where JSON does not tell it."""
    name = special_type(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _read(written: EntryValue | list[Any]) -> EntryValue:
    if not isinstance(written, list):
        return entry(written)
    name, value = written
    return entry(b64decode(value, validate=True) if name == "bytes" else value, name)
