"""Typed values of messages, and properties: conversions, valid names, and a mapping that can be made read-only.

The conversions are the tables of JMS 3.1, sections 3.5.4 and 3.11.3, combined. Properties support all types except char
and bytes; entries of map and stream messages support all of them.

A plain `int` is an int if it fits 32 bits, else a long; a plain `float` is a double. State the type if it matters:
``message.properties["level"] = Short(3)``.
"""

import math
import re
import struct
from abc import abstractmethod
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from jmsjca.errors import MessageFormatError, MessageNotWriteableError, excerpt

__all__ = [
    "DELIVERY_COUNT",
    "DUPLICATE_ID",
    "GROUP_ID",
    "KEYWORDS",
    "Byte",
    "Char",
    "Double",
    "EntryValue",
    "Float",
    "Int",
    "Long",
    "Properties",
    "PropertyValue",
    "Short",
    "TypedMapping",
    "as_boolean",
    "as_bytes",
    "as_char",
    "as_integer",
    "as_real",
    "as_text",
    "check_name",
    "convert",
    "is_identifier",
    "type_name",
    "typed_entry",
    "typed_property",
]

_WHOLE = re.compile(r"[+-]?\d{1,50}\Z")  # Python would also accept blanks and underscores
# The number syntax of Java. Python would also accept "inf" and underscores, but not the suffix letter.
_REAL = re.compile(r"\s*([+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?\s*\Z")
_LAST_CHAR = "\uffff"


class _Integer(int):
    limit: ClassVar[int]

    def __new__(cls, value: int | str) -> Self:
        number = value if isinstance(value, int) else _whole(value, cls.__name__)
        if not -cls.limit <= number < cls.limit:
            raise MessageFormatError(
                f"A number of {number.bit_length()} bits and a sign does not fit a {cls.__name__}"
                f" of {cls.limit.bit_length()} bits."
            )
        return super().__new__(cls, number)


class Byte(_Integer):
    """A signed integer of 8 bits."""

    limit = 1 << 7


class Short(_Integer):
    """A signed integer of 16 bits."""

    limit = 1 << 15


class Int(_Integer):
    """A signed integer of 32 bits."""

    limit = 1 << 31


class Long(_Integer):
    """A signed integer of 64 bits."""

    limit = 1 << 63


class Float(float):
    """A number rounded to single precision."""

    def __new__(cls, value: float | str) -> Self:
        """Round the value to single precision; as in Java, a text beyond its range is infinite."""
        number = _number(value)
        try:
            return super().__new__(cls, struct.unpack("<f", struct.pack("<f", number))[0])
        except OverflowError as error:
            if isinstance(value, str):
                return super().__new__(cls, math.copysign(math.inf, number))
            raise MessageFormatError(f"{value!r:.100} is not a number of single precision: it is too large.") from error


class Double(float):
    """A number in double precision, like a plain `float`."""

    def __new__(cls, value: float | str) -> Self:
        """Convert a number or its text."""
        return super().__new__(cls, value if isinstance(value, float) else _number(value))


class Char(str):
    """A character of Java: 16 bits, so at most U+FFFF. It is a `str` of length one."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Convert a text of one character."""
        if not _is_char(value):
            raise MessageFormatError(f"{value!r:.100} is not a Char: one character up to U+FFFF.")
        return super().__new__(cls, value)


def _whole(value: object, kind: str) -> int:
    if isinstance(value, str) and _WHOLE.match(value):
        return int(value)
    raise MessageFormatError(f"{value!r:.100} is not a number that a {kind} can be: a whole one.")


def _is_char(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and value <= _LAST_CHAR


def _number(value: object) -> float:
    if isinstance(value, str):
        found = _REAL.match(value)
        if found:
            return float(found[1])
    elif isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError as error:
            raise MessageFormatError(
                f"A number of {int(value).bit_length()} bits is too large for a double."
            ) from error
    raise MessageFormatError(f"{value!r:.100} is not a number.")


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
# For each type the types that it can be read as.
_READABLE_AS = {
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
    """Return the name of a value's JMS type: "boolean", "byte", … "string", "bytes".

    Raises:
        MessageFormatError: The value has no JMS type.
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


def typed_entry(value: object, name: str | None = None) -> EntryValue:
    """Return a value as an instance of its JMS type: the plain int 5 becomes ``Int(5)``. None stays None.

    Args:
        value: The value.
        name: The JMS type; None infers it from the Python type.

    Raises:
        MessageFormatError: The value has no JMS type, or does not fit the named one.
    """
    if value is None or (name is None and type(value) in _NAMES):  # it has an explicit type already
        return cast("EntryValue", value)
    return _MAKERS[name or type_name(value)](value)


def typed_property(value: object, name: str | None = None) -> PropertyValue:
    """Return the value of a property as an instance of its JMS type, like `typed_entry`.

    Raises:
        MessageFormatError: As for `typed_entry`, or the value is a char or bytes, which properties cannot hold.
    """
    if name is None:  # the usual values, without the checks of the others
        if type(value) is str:
            return value
        if type(value) is int and -Int.limit <= value < Int.limit:
            return int.__new__(Int, value)
    marked = typed_entry(value, name)
    if isinstance(marked, _ONLY_IN_BODIES):
        raise MessageFormatError(f"A property cannot hold {type(value).__name__}; the body of a map message can.")
    return marked


def convert(value: EntryValue, wanted: str) -> EntryValue:
    """Return a value converted to another type, if the conversion table allows it.

    Args:
        value: The value as it was set; None if it is not set.
        wanted: The name of the requested type.

    Raises:
        MessageFormatError: The table forbids the conversion, or a string is not such a number.
    """
    if value is None:
        return _convert_null(wanted)
    actual = type_name(value)
    if wanted not in _READABLE_AS[actual]:
        raise MessageFormatError(
            f"A value of type {actual} cannot be read as {wanted} (JMS 3.1, sections 3.5.4 and 3.11.3)."
        )
    if wanted == "string":
        return _to_java_text(value)
    if actual == "string" and wanted == "boolean":
        return cast("str", value).lower() == "true"
    return _MAKERS[wanted](value)


def _convert_null(wanted: str) -> EntryValue:
    if wanted in {"string", "bytes"}:
        return None
    if wanted == "boolean":
        return False
    raise MessageFormatError(f"The value is not set, or null, and nothing cannot be read as {wanted}.")


def _to_java_text(value: EntryValue) -> str:
    """Return the text of a value as in Java, except for the exponents of very large and very small numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Float):
        value = _shortest_decimal(value)
    if isinstance(value, float):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return str(value)


def _shortest_decimal(value: Float) -> float:
    """Return the number with the fewest digits that identify a number of single precision."""
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


def as_boolean(value: EntryValue) -> bool:
    """Return a value as boolean; False for None."""
    return bool(convert(value, "boolean"))


def as_integer(value: EntryValue, kind: str) -> int:
    """Return a value as "byte", "short", "int" or "long"."""
    return int(cast("int", convert(value, kind)))


def as_real(value: EntryValue, kind: str) -> float:
    """Return a value as "float" or "double"."""
    return float(cast("float", convert(value, kind)))


def as_text(value: EntryValue) -> str | None:
    """Return a value as string; None for None."""
    if type(value) is str:  # the usual case needs no table
        return value
    return cast("str | None", convert(value, "string"))


def as_char(value: EntryValue) -> str:
    """Return a value as char."""
    return str(convert(value, "char"))


def as_bytes(value: EntryValue) -> bytes | None:
    """Return a value as bytes; None for None."""
    return cast("bytes | None", convert(value, "bytes"))


V = TypeVar("V")
_NAMES_SHOWN = 10
_MAX_REPR_LENGTH = 1000

DELIVERY_COUNT = "JMSXDeliveryCount"
_CLIENT_JMSX = {"JMSXGroupID": "string", "JMSXGroupSeq": "int"}
"""The JMSX properties that the sender sets, with their types."""
_PROVIDER_JMSX = frozenset(
    {DELIVERY_COUNT, "JMSXUserID", "JMSXAppID", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState"}
)
"""The JMSX properties that the provider sets."""

_ASCII = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)
# Unicode categories as in Java, except for invisible parts (control and format characters).
_START = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"}
_PART = _START | {"Nd", "Mn", "Mc"}
KEYWORDS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})
"""The keywords of the selector syntax, in upper case; keywords are not case-sensitive."""
# The vendor names of the JMSJCA manual contain dots.
_VENDOR = ("JMSJCA.", "JMS_")
_MAX_CACHED_LENGTH = 128  # characters: property names of forwarded messages come from other programs


def is_identifier(text: str) -> bool:
    """Return True for an identifier of the selector syntax: a Java identifier that is not a keyword."""
    return (_ASCII.match(text) is not None or _is_unicode_identifier(text)) and text.upper() not in KEYWORDS


def check_name(name: str) -> None:
    """Raise an error for a name that a client cannot set as a property.

    Raises:
        MessageFormatError: The name is not an identifier, or reserved for JMS or the provider.
    """
    if problem := (_cached_problem if len(name) <= _MAX_CACHED_LENGTH else _problem)(name):
        raise MessageFormatError(problem)


def _problem(name: str) -> str | None:
    if not is_identifier(name.replace(".", "_") if _is_vendor_name(name) else name):
        return (
            f"{name!r:.100} cannot name a property: it must be an identifier as in Java, and no keyword of selectors."
        )
    if name.startswith("JMS") and not name.startswith(_VENDOR) and name not in _CLIENT_JMSX:
        return _reserved(name)
    return None


_cached_problem = lru_cache(1024)(_problem)  # programs use few names, but often


def _is_vendor_name(name: str) -> bool:
    return name.startswith(_VENDOR) and all(name.split("."))


def _reserved(name: str) -> str:
    if name in _PROVIDER_JMSX:
        return f"{name} cannot name a property that you set: the provider does."
    return (
        f"{name!r:.100} cannot name a property: names that begin with JMS are reserved, but for JMS_<vendor>…,"
        f" {' and '.join(_CLIENT_JMSX)}. Headers are attributes of the message."
    )


def _is_unicode_identifier(text: str) -> bool:
    from unicodedata import category  # most names are ASCII

    categories = [category(character) for character in text]
    return bool(text) and categories[0] in _START and _PART.issuperset(categories)


class TypedMapping(MutableMapping[str, V], Generic[V]):
    """A mapping from names to typed values; subclasses define the allowed names and values.

    Args:
        values: Initial values.

    Attributes:
        read_only: True for a received message, until its body or properties are cleared.

    Raises:
        MessageFormatError: On setting: the name or the value is not allowed.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ("_values", "read_only")

    _refusal: ClassVar[str]
    _noun: ClassVar[str]

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, V] = {}
        self.read_only = False
        if values is not None:
            if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a check
                raise MessageFormatError(
                    f"{self._noun} are a mapping from names to values, not {type(values).__name__}."
                )
            self._fill(values)

    @classmethod
    def received(cls, values: dict[str, V]) -> Self:
        """Return a read-only mapping of values that a provider has decoded and typed."""
        mapping: Self = cls.__new__(cls)
        mapping._values = values
        mapping.read_only = True
        return mapping

    def __getitem__(self, name: str) -> V:
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        if self.read_only:
            raise MessageNotWriteableError(self._refusal)
        self._values[name] = self._typed(name, value)

    def __delitem__(self, name: str) -> None:
        if self.read_only:
            raise MessageNotWriteableError(self._refusal)
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._values.keys()

    def items(self) -> ItemsView[str, V]:
        """Return the names with their values."""
        return self._values.items()  # the inherited method looks up each value

    def __repr__(self) -> str:
        names = ", ".join(excerpt(name) for name in islice(self._values, _NAMES_SHOWN))
        return f"<{type(self).__name__} of {len(self)}: {names}"[:_MAX_REPR_LENGTH] + ">"

    def _fill(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():  # `update` sets each by two calls more
            self._values[name] = self._typed(name, value)

    @abstractmethod
    def _typed(self, name: object, value: object) -> V:
        """Return the typed value; raise an error if the name or the value is not allowed."""


DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property for the detection of duplicates; the name is that of Artemis."""

GROUP_ID = "JMSXGroupID"
"""The property of the message group: one consumer receives all messages of a group (JMS 3.1, section 3.5.9)."""


class Properties(TypedMapping[PropertyValue]):
    """The properties of a message (JMS 3.1, section 3.5). Values keep the JMS type that they were set with.

    A copy of another message's properties has all of them except those set by its provider.

    Raises:
        MessageFormatError: On setting: the name is not an identifier or reserved, or the value has no property type.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ()

    _refusal = "The properties of a received message are read-only; call clear_properties()."
    _noun = "Properties"

    def _fill(self, values: Mapping[str, object]) -> None:
        if isinstance(values, Properties):  # checked when they were set, perhaps less strictly
            self._values = {name: value for name, value in values.items() if name not in _PROVIDER_JMSX}
        else:
            super()._fill(values)

    def _typed(self, name: object, value: object) -> PropertyValue:
        if not isinstance(name, str):
            raise MessageFormatError(f"A property is named by a text, not by {type(name).__name__}.")
        check_name(name)
        try:
            return typed_property(value, _CLIENT_JMSX.get(name))
        except MessageFormatError as error:
            raise MessageFormatError(f"The property {name!r:.100} cannot be set: {error}") from error
