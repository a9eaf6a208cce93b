"""Marks that give a Python value one of the types of JMS.

A plain `int` is an int if it fits 32 bits, else a long; a plain `float` is a double. Where it matters, say so:
``message.properties["level"] = Short(3)``.
"""

import math
import re
import struct
from typing import ClassVar, Self

from jmsjca.errors import MessageFormatError

__all__ = ["Byte", "Char", "Double", "Float", "Int", "Long", "Short"]


_WHOLE = re.compile(r"[+-]?\d{1,50}\Z")  # Python would also take blanks and underscores
# As Java writes and reads numbers; Python would also take "inf" and underscores, and not the letter at the end.
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
    """A number in single precision (rounded to it)."""

    def __new__(cls, value: float | str) -> Self:
        """Round the value to single precision; a text beyond it is infinite, as for Java."""
        number = _number(value)
        try:
            return super().__new__(cls, struct.unpack("<f", struct.pack("<f", number))[0])
        except OverflowError as error:
            if isinstance(value, str):
                return super().__new__(cls, math.copysign(math.inf, number))
            raise MessageFormatError(f"{value!r:.100} is not a number of single precision: it is too large.") from error


class Double(float):
    """A number in double precision: what a plain `float` is."""

    def __new__(cls, value: float | str) -> Self:
        """Take a number or its text."""
        return super().__new__(cls, value if isinstance(value, float) else _number(value))


class Char(str):
    """One character of Java: 16 bits, so none beyond U+FFFF. It is a `str` of length one."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Take a text of one character."""
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
