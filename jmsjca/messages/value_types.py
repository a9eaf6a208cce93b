"""Which type a value has, and what it may be read as: the tables of JMS 3.1, sections 3.5.4 and 3.11.3, in one.

Properties know all types but char and bytes; entries of map and stream messages know all of them.
"""

from collections.abc import Callable
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages.numbers import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["EntryValue", "PropertyValue", "convert", "entry", "type_name", "typed"]

PropertyValue = bool | int | float | str | None
EntryValue = PropertyValue | bytes

_NAMES: dict[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Char: "char",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    str: "string",
    bytes: "bytes",
}
_ONLY_IN_BODIES = (Char, bytes)
# From each type the types that it may be read as.
_READABLE = {
    "boolean": {"boolean", "string"},
    "byte": {"byte", "short", "int", "long", "string"},
    "short": {"short", "int", "long", "string"},
    "char": {"char", "string"},
    "int": {"int", "long", "string"},
    "long": {"long", "string"},
    "float": {"float", "double", "string"},
    "double": {"double", "string"},
    "string": {"boolean", "byte", "short", "int", "long", "float", "double", "string"},
    "bytes": {"bytes"},
}


def type_name(value: object) -> str:
    """Name the JMS type of a value: "boolean", "byte", … "string", "bytes".

    Raises:
        MessageFormatError: It has none.
    """
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if type(value) is int:
        return "int" if -(1 << 31) <= value < 1 << 31 else "long"
    if type(value) is float:
        return "double"
    if isinstance(value, bytearray):
        return "bytes"
    raise MessageFormatError(
        f"A message cannot hold {type(value).__name__} here; it takes bool, int, float, str, the marks Byte … Char,"
        " and in the body of a map or stream message bytes."
    )


def entry(value: object, name: str | None = None) -> EntryValue:
    """Give a value its mark: the plain int 5 becomes ``Int(5)``. None stays None.

    Args:
        value: The value.
        name: The type that it shall have; None for the one that it has.

    Raises:
        MessageFormatError: The value has no type of JMS, or does not fit the named one.
    """
    if value is None or (name is None and type(value) in _NAMES):  # it says its type already
        return cast("EntryValue", value)
    return _MAKERS[name or type_name(value)](value)


def typed(value: object, name: str | None = None) -> PropertyValue:
    """Give the value of a property its mark, as `entry` does.

    Raises:
        MessageFormatError: As there; or it is a char or bytes, which properties cannot hold.
    """
    marked = entry(value, name)
    if isinstance(marked, _ONLY_IN_BODIES):
        raise MessageFormatError(f"A property cannot hold {type(value).__name__}; the body of a map message can.")
    return marked


def convert(value: EntryValue, wanted: str) -> EntryValue:
    """Read a value as another type, where the conversion table allows it.

    Args:
        value: The value as it was set; None is one that is not set.
        wanted: The name of the type asked for.

    Raises:
        MessageFormatError: The table forbids it, or a string does not hold such a number.
    """
    if value is None:
        return _convert_null(wanted)
    actual = type_name(value)
    if wanted not in _READABLE[actual]:
        raise MessageFormatError(
            f"A value of type {actual} cannot be read as {wanted} (JMS 3.1, sections 3.5.4 and 3.11.3)."
        )
    if wanted == "string":
        return _text(value)
    if actual == "string" and wanted == "boolean":
        return cast("str", value).lower() == "true"
    return _MAKERS[wanted](value)


def _convert_null(wanted: str) -> EntryValue:
    if wanted in {"string", "bytes"}:
        return None
    if wanted == "boolean":
        return False
    raise MessageFormatError(f"The value is not set, or null, and nothing cannot be read as {wanted}.")


def _text(value: EntryValue) -> str:
    """The text of a value as Java writes it, but for the exponents of very large and very small numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Float):
        value = _shortest(value)
    if isinstance(value, float):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return str(value)


def _shortest(value: Float) -> float:
    """As few digits as tell a number of single precision from its neighbours."""
    candidates = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((short for short in candidates if Float(short) == value), value)


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise MessageFormatError(f"A boolean is True or False, not {type(value).__name__}.")


def _string(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    raise MessageFormatError(f"A string is a str, not {type(value).__name__}.")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise MessageFormatError(f"Bytes are bytes, not {type(value).__name__}.")


_MAKERS: dict[str, Callable[[Any], bool | int | float | str | bytes]] = {
    "boolean": _boolean,
    "byte": Byte,
    "short": Short,
    "char": Char,
    "int": Int,
    "long": Long,
    "float": Float,
    "double": Double,
    "string": _string,
    "bytes": _bytes,
}
