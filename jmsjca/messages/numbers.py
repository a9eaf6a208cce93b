"""Marks that give a Python value one of the types of JMS.

A plain `int` is an int if it fits 32 bits, else a long; a plain `float` is a double. Where it matters, say so:
``message.properties["level"] = Short(3)``.
"""

import re
import struct
from typing import ClassVar, Self

from jmsjca.errors import MessageFormatError

__all__ = ["Byte", "Char", "Double", "Float", "Int", "Long", "Short"]


_WHOLE = re.compile(r"[+-]?\d{1,50}\Z")  # Python would also take blanks and underscores
# As Java writes and reads numbers; Python would also take "inf" and underscores, and not the letter at the end.
_REAL = re.compile(r"\s*([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?\s*\Z")
_LAST_CHAR = "\uffff"


class _Integer(int):
    bits: ClassVar[int]

    def __new__(cls, value: int | str) -> Self:
        if not _is_whole(value):
            raise MessageFormatError(f"{value!r:.100} is not a number that a {cls.__name__} can be: a whole one.")
        number = super().__new__(cls, value)
        limit = 1 << (cls.bits - 1)
        if not -limit <= number < limit:
            raise MessageFormatError(
                f"A number of {number.bit_length()} bits and a sign does not fit a {cls.__name__} of {cls.bits} bits."
            )
        return number


class Byte(_Integer):
    """A signed integer of 8 bits."""

    bits = 8


class Short(_Integer):
    """A signed integer of 16 bits."""

    bits = 16


class Int(_Integer):
    """A signed integer of 32 bits."""

    bits = 32


class Long(_Integer):
    """A signed integer of 64 bits."""

    bits = 64


class Float(float):
    """A number in single precision (rounded to it)."""

    def __new__(cls, value: float | str) -> Self:
        """Round the value to single precision."""
        try:
            return super().__new__(cls, struct.unpack("<f", struct.pack("<f", _number(value)))[0])
        except OverflowError as error:
            raise MessageFormatError(f"{value!r:.100} is not a number of single precision: it is too large.") from error


class Double(float):
    """A number in double precision: what a plain `float` is."""

    def __new__(cls, value: float | str) -> Self:
        """Take a number or its text."""
        return super().__new__(cls, _number(value))


class Char(str):
    """One character of Java: 16 bits, so none beyond U+FFFF. It is a `str` of length one."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Take a text of one character."""
        if not _is_char(value):
            raise MessageFormatError(f"{value!r:.100} is not a Char: one character up to U+FFFF.")
        return super().__new__(cls, value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and _WHOLE.match(value) is not None)


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
