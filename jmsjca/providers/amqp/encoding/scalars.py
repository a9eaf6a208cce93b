"""Reading what has no parts: constants, numbers, texts and bytes, by the size of each."""

import struct
from collections.abc import Callable
from typing import Any

from jmsjca.messages import Char

__all__ = ["Reader", "boolean", "char", "constant", "fixed", "four_bytes", "long", "number", "short"]

four_bytes = struct.Struct(">I").unpack_from
"""Reads a number of four bytes, as the only one of a tuple."""

Reader = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads what is behind a code: of these bytes, from there, that deep. Gives the value and where it ends."""


def constant(value: Any) -> Reader:
    """A value that its code tells."""
    return lambda raw, at, depth: (value, at)  # noqa: ARG005


def number(layout: str, kind: type) -> Reader:
    """A number of a layout, with the mark of its type."""
    packed = struct.Struct(">" + layout)
    unpack, size = packed.unpack_from, packed.size
    new: Any = (int if issubclass(kind, int) else float).__new__  # it fits: the mark need not look at it

    def read(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        return new(kind, unpack(raw, at)[0]), at + size

    return read


def fixed(size: int, make: Callable[[bytes], Any]) -> Reader:
    """What always takes so many bytes."""
    return lambda raw, at, depth: (make(raw[at : at + size]), at + size)  # noqa: ARG005


def short(make: Callable[[bytes], Any]) -> Reader:
    """What one byte tells the length of."""

    def read(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        end = at + 1 + raw[at]
        return make(raw[at + 1 : end]), end

    return read


def long(make: Callable[[bytes], Any]) -> Reader:
    """What four bytes tell the length of."""

    def read(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        begin = at + 4
        end = begin + four_bytes(raw, at)[0]
        return make(raw[begin:end]), end

    return read


def boolean(raw: bytes, at: int, depth: int) -> tuple[bool, int]:  # noqa: ARG001
    """A truth value in a byte."""
    return bool(raw[at]), at + 1


def char(encoded: bytes) -> str:
    """A character; JMS has none beyond 16 bits, so those are texts."""
    text = chr(int.from_bytes(encoded, "big"))
    return Char(text) if text <= "\uffff" else text
