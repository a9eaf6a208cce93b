"""Values read as one type each, by the conversion table."""

from typing import cast

from jmsjca.messages.conversion import EntryValue, convert

__all__ = ["as_boolean", "as_bytes", "as_char", "as_integer", "as_real", "as_text"]


def as_boolean(value: EntryValue) -> bool:
    """Read as boolean; False if there is no value."""
    return bool(convert(value, "boolean"))


def as_integer(value: EntryValue, kind: str) -> int:
    """Read as "byte", "short", "int" or "long"."""
    return int(cast("int", convert(value, kind)))


def as_real(value: EntryValue, kind: str) -> float:
    """Read as "float" or "double"."""
    return float(cast("float", convert(value, kind)))


def as_text(value: EntryValue) -> str | None:
    """Read as string; None if there is no value."""
    if type(value) is str:  # most are, and need no table
        return value
    return cast("str | None", convert(value, "string"))


def as_char(value: EntryValue) -> str:
    """Read as char."""
    return str(convert(value, "char"))


def as_bytes(value: EntryValue) -> bytes | None:
    """Read as bytes; None if there is no value."""
    return cast("bytes | None", convert(value, "bytes"))
