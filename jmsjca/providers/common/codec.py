"""Message bodies as bytes, and typed values and destinations as JSON."""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from jmsjca.destinations import Destination, destination
from jmsjca.messages import (
    BytesMessage,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PropertyValue,
    StreamMessage,
    TextMessage,
    type_name,
    typed_entry,
)

__all__ = [
    "BODY_DECODERS",
    "BodyDecoder",
    "destination_from_json",
    "destination_to_json",
    "encode_body",
    "expect_text",
    "from_json",
    "to_json",
    "to_json_with_infinities",
    "type_tag",
]

BodyDecoder: TypeAlias = tuple[type[Message], Callable[[bytes | None], Any]]
"""A message type and the decoder of its body. The decoder may raise any exception for an invalid body."""

# Writes infinities as well: only this module reads these bodies.
_dump_body = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def encode_body(message: Message) -> tuple[str, bytes | None]:
    """Return the kind of a message and its encoded body."""
    if isinstance(message, TextMessage):
        # `body` may be None, although its type does not mention it.
        return "text", None if message.body is None else message.body.encode()  # type: ignore[redundant-expr]
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
"""The message type and body decoder of each kind."""


def _parse_json(body: bytes | None, kind: type) -> Any:
    parsed = from_json((body or b"").decode())
    if not isinstance(parsed, kind):
        raise TypeError(f"the body is no {kind.__name__}")
    return parsed


def _to_json_value(value: EntryValue) -> Any:
    """Return a value as JSON: plain, or as a pair of type and value if JSON does not imply the type."""
    name = type_tag(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _from_json_value(written: EntryValue | list[Any]) -> EntryValue:
    if not isinstance(written, list):
        return typed_entry(written)
    name, value = written
    return typed_entry(b64decode(value, validate=True) if name == "bytes" else value, name)


_UNTAGGED_TYPES = {"boolean", "int", "long", "double", "string"}
_INFINITY_LITERALS = {math.inf: "9e999", -math.inf: "-9e999"}

# Created once: json.dumps() and json.loads() evaluate their options at every call.
to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_DECODER = json.JSONDecoder()


def from_json(text: str) -> Any:
    """Return the value of a JSON text."""
    try:
        value, end = _DECODER.raw_decode(text)  # decode() also skips surrounding whitespace, which costs 50 % more
    except json.JSONDecodeError:
        return _DECODER.decode(text)
    return value if end == len(text) else _DECODER.decode(text)


def expect_text(value: object) -> str | None:
    """Return a decoded JSON value that must be a string or null.

    Raises:
        TypeError: The value has another type.
    """
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"it has {type(value).__name__} where a text should be")


def destination_to_json(of: Destination) -> list[str | bool]:
    """Return a destination as a JSON value: kind and name, and a third element for a temporary destination."""
    return [of.kind, of.name, True] if of.temporary else [of.kind, of.name]


def destination_from_json(address: Any) -> Destination:
    """Return the destination of a JSON value.

    Raises:
        ValueError: The value has no kind and name.
        TypeError: The value is no list, or the name no string.
        InvalidDestinationError: The kind is unknown, or the name empty.
    """
    return _destination(*address)


@lru_cache(1024)  # programs use few, but name them in each message
def _destination(kind: str, name: object, *temporary: object) -> Destination:
    if not isinstance(name, str):
        raise TypeError(f"it has {type(name).__name__} where the name of a destination should be")
    return destination(name, kind, temporary=bool(temporary))


def type_tag(value: EntryValue) -> str | None:
    """Return the type name of a value, or None if its JSON form implies the type."""
    if value is None:
        return None
    name = type_name(value)
    plain = name in _UNTAGGED_TYPES and (name != "long" or not -(1 << 31) <= int(value) < 1 << 31)
    return None if plain else name


def to_json_with_infinities(values: Mapping[str, PropertyValue]) -> str:
    """Return properties as JSON that SQLite can read, although some values are not finite.

    Infinities become literals that are out of range, which SQLite reads as infinite; NaN becomes null.
    """
    return f"{{{','.join(f'{to_json(name)}:{_number_text(value)}' for name, value in values.items())}}}"


def _number_text(value: PropertyValue) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return to_json(value)
    return _INFINITY_LITERALS.get(value, "null")
