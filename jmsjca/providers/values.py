"""Values as JSON: what type they have where JSON does not tell it, and the numbers that JSON does not know."""

import json
import math
from collections.abc import Mapping
from typing import Any

from jmsjca.messages import EntryValue, PropertyValue, type_name

__all__ = ["as_text", "from_json", "special_type", "to_json", "with_infinities"]

_PLAIN = {"boolean", "int", "long", "double", "string"}
_INFINITE = {math.inf: "9e999", -math.inf: "-9e999"}

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


def as_text(value: object) -> str | None:
    """Give what must be a text, or nothing: JSON may hold anything there.

    Raises:
        TypeError: It is something else.
    """
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"it has {type(value).__name__} where a text should be")


def special_type(value: EntryValue) -> str | None:
    """Name the type of a value if it is not the one that its JSON has."""
    if value is None:
        return None
    name = type_name(value)
    plain = name in _PLAIN and (name != "long" or not -(1 << 31) <= int(value) < 1 << 31)
    return None if plain else name


def with_infinities(values: Mapping[str, PropertyValue]) -> str:
    """Write properties some of which are no finite numbers, as SQLite reads them.

    What is out of range is infinite to it, and not-a-number is null.
    """
    return f"{{{','.join(f'{to_json(name)}:{_text(value)}' for name, value in values.items())}}}"


def _text(value: PropertyValue) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return to_json(value)
    return _INFINITE.get(value, "null")
