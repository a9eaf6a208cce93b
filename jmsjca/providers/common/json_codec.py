"""Message bodies as bytes, and typed values as JSON."""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jmsjca.messages import (
    BytesMessage,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PropertyValue,
    StreamMessage,
    TextMessage,
    entry,
    type_name,
)

__all__ = [
    "BODY_DECODERS",
    "BodyDecoder",
    "encode_body",
    "expect_text",
    "from_json",
    "to_json",
    "to_json_with_infinities",
    "type_tag",
]

BodyDecoder: TypeAlias = tuple[type[Message], Callable[[bytes | None], Any]]
"""The type of a kind of messages, and what decodes its body; what is none of that kind may raise anything."""

_dump_body = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode  # infinities: only we read it


def encode_body(message: Message) -> tuple[str, bytes | None]:
    """Name the kind of a message, and encode its body."""
    if isinstance(message, TextMessage):
        return "text", None if message.body is None else message.body.encode()
    if isinstance(message, BytesMessage):
        return "bytes", message.body
    if isinstance(message, MapMessage):
        return "map", _dump_body({name: _to_json_value(value) for name, value in message.body.items()}).encode()
    if isinstance(message, StreamMessage):
        return "stream", _dump_body([_to_json_value(value) for value in message.body]).encode()
    return ("object", message.pickled) if isinstance(message, ObjectMessage) else ("plain", None)


def _decode_text(body: bytes | None) -> str | None:
    return None if body is None else body.decode()


def _decode_map(body: bytes | None) -> dict[str, EntryValue]:
    return {name: _from_json_value(value) for name, value in _parse_json(body, dict).items()}


def _decode_stream(body: bytes | None) -> list[EntryValue]:
    return [_from_json_value(value) for value in _parse_json(body, list)]


def _decode_bytes(body: bytes | None) -> bytes | None:
    return body


def _decode_no_body(body: bytes | None) -> None:
    del body


BODY_DECODERS: dict[str, BodyDecoder] = {
    "text": (TextMessage, _decode_text),
    "bytes": (BytesMessage, _decode_bytes),
    "map": (MapMessage, _decode_map),
    "stream": (StreamMessage, _decode_stream),
    "object": (ObjectMessage, _decode_bytes),
    "plain": (Message, _decode_no_body),
}
"""Every kind, by its name."""


def _parse_json(body: bytes | None, kind: type) -> Any:
    parsed = from_json((body or b"").decode())
    if not isinstance(parsed, kind):
        raise TypeError(f"the body is no {kind.__name__}")
    return parsed


def _to_json_value(value: EntryValue) -> Any:
    """A value as JSON: by itself, or behind its type where JSON does not tell it."""
    name = type_tag(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _from_json_value(written: EntryValue | list[Any]) -> EntryValue:
    if not isinstance(written, list):
        return entry(written)
    name, value = written
    return entry(b64decode(value, validate=True) if name == "bytes" else value, name)


_UNTAGGED_TYPES = {"boolean", "int", "long", "double", "string"}
_INFINITY_LITERALS = {math.inf: "9e999", -math.inf: "-9e999"}

# Made once: json.dumps() and json.loads() look at their options at every call.
to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_DECODER = json.JSONDecoder()


def from_json(text: str) -> Any:
    """Read what `to_json` wrote, or any other JSON."""
    try:
        value, end = _DECODER.raw_decode(text)  # which looks for no spaces around it: that costs half as much again
    except json.JSONDecodeError:
        return _DECODER.decode(text)
    return value if end == len(text) else _DECODER.decode(text)


def expect_text(value: object) -> str | None:
    """Give what must be a text, or nothing: JSON may hold anything there.

    Raises:
        TypeError: It is something else.
    """
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"it has {type(value).__name__} where a text should be")


def type_tag(value: EntryValue) -> str | None:
    """Name the type of a value if it is not the one that its JSON has."""
    if value is None:
        return None
    name = type_name(value)
    plain = name in _UNTAGGED_TYPES and (name != "long" or not -(1 << 31) <= int(value) < 1 << 31)
    return None if plain else name


def to_json_with_infinities(values: Mapping[str, PropertyValue]) -> str:
    """Write properties some of which are no finite numbers, as SQLite reads them.

    What is out of range is infinite to it, and not-a-number is null.
    """
    return f"{{{','.join(f'{to_json(name)}:{_number_text(value)}' for name, value in values.items())}}}"


def _number_text(value: PropertyValue) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return to_json(value)
    return _INFINITY_LITERALS.get(value, "null")
