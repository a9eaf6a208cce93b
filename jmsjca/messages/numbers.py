"""Marks that give a Python number one of the numeric types of JMS.

A plain `int` is an int if it fits 32 bits, else a long; a plain `float` is a double. Where it matters, say so:
``message.properties["level"] = Short(3)``.
"""

import re
import struct
from typing import ClassVar, Self

from jmsjca.errors import MessageFormatError

__all__ = ["Byte", "Double", "Float", "Int", "Long", "Short"]


_WHOLE = re.compile(r"[+-]?\d{1,50}\Z")  # Python would also take blanks and underscores


class _Integer(int):
    bits: ClassVar[int]

    def __new__(cls, value: int | str) -> Self:
        if isinstance(value, float) or (isinstance(value, str) and not _WHOLE.match(value)):
            raise MessageFormatError(f"{value!r:.100} is not a number that a {cls.__name__} can be: a whole one.")
        number = super().__new__(cls, value)
        limit = 1 << (cls.bits - 1)
        if not -limit <= number < limit:
            raise MessageFormatError(f"{value} does not fit a {cls.__name__} of {cls.bits} bits.")
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
        except (ValueError, OverflowError) as error:
            raise MessageFormatError(f"{value!r} is not a number of single precision.") from error


class Double(float):
    """A number in double precision: what a plain `float` is."""

    def __new__(cls, value: float | str) -> Self:
        """Take a number or its text."""
        try:
            return super().__new__(cls, _number(value))
        except ValueError as error:
            raise MessageFormatError(f"{value!r} is not a number.") from error


def _number(value: float | str) -> float:
    if isinstance(value, str) and "_" in value:  # Python would skip it
        raise ValueError(value)
    return float(value)
