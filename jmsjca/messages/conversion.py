"""Which type a property value has, and the conversion table of JMS 3.1, section 3.5.4."""

from collections.abc import Callable
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages.numbers import Byte, Double, Float, Int, Long, Short

__all__ = ["PropertyValue", "convert", "type_name", "typed"]

PropertyValue = bool | int | float | str | None

_NAMES: dict[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    str: "string",
}
_MAKERS: dict[str, Callable[[Any], PropertyValue]] = {name: maker for maker, name in _NAMES.items()}

# From each type the types it may be read as, besides itself and string.
_WIDER = {
    "boolean": (),
    "byte": ("short", "int", "long"),
    "short": ("int", "long"),
    "int": ("long",),
    "long": (),
    "float": ("double",),
    "double": (),
}


def type_name(value: object) -> str:
    """Name the JMS type of a property value: "boolean", "byte", … "string".

    Raises:
        MessageFormatError: A value of this type cannot be a property.
    """
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if type(value) is int:
        return "int" if -(1 << 31) <= value < 1 << 31 else "long"
    if type(value) is float:
        return "double"
    raise MessageFormatError(
        f"A property cannot hold {type(value).__name__}; it takes bool, int, float, str and the marks Byte … Double."
    )


def typed(value: object, name: str | None = None) -> PropertyValue:
    """Give a value its mark: the plain int 5 becomes ``Int(5)``. None stays None.

    Raises:
        MessageFormatError: The value cannot be a property, or does not fit the named type.
    """
    if value is None or (name is None and type(value) in _NAMES):  # it says its type already
        return cast("PropertyValue", value)
    return _MAKERS[name or type_name(value)](value)


def convert(value: PropertyValue, wanted: str) -> PropertyValue:
    """Read a value as another type, where the conversion table allows it.

    Args:
        value: The value as it was set; None is a property that is not set.
        wanted: The name of the type asked for.

    Raises:
        MessageFormatError: The table forbids it, or a string does not hold such a number.
    """
    if value is None:
        return _convert_null(wanted)
    actual = type_name(value)
    if wanted == actual:
        return typed(value)
    if wanted == "string":
        return _text(value)
    if actual == "string":
        return value.strip().lower() == "true" if wanted == "boolean" else _MAKERS[wanted](value)  # type: ignore[union-attr]
    if wanted in _WIDER[actual]:
        return _MAKERS[wanted](value)
    raise MessageFormatError(f"A property of type {actual} cannot be read as {wanted} (JMS 3.1, section 3.5.4).")


def _convert_null(wanted: str) -> PropertyValue:
    if wanted == "string":
        return None
    if wanted == "boolean":
        return False
    raise MessageFormatError(f"The property is not set, and nothing cannot be read as {wanted}.")


def _text(value: PropertyValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
