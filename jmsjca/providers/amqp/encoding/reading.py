"""Reading values of AMQP: for each of the 256 codes that a value may begin with a function that reads the rest.

Numbers get the types of JMS where it has them. A count is believed only as far as there are bytes for it, and what is
nested deeper than `DEEPEST` is refused, so that bytes of any kind cost no more than a few times their own size.
"""

import struct
import uuid
from collections.abc import Callable
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short
from jmsjca.providers.amqp.encoding.marks import (
    DEEPEST,
    Decimal,
    Described,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

__all__ = ["MALFORMED", "read"]

MALFORMED = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)
"""What bytes that are no value may provoke here, besides `MessageFormatError`, which is a `ValueError`."""

Reader = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads what is behind a code: of these bytes, from there, that deep. Gives the value and where it ends."""


def read(raw: bytes, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """Read the value that begins there.

    Returns:
        The value, and where it ends. That may be behind the last byte: whoever knows where it should end compares.

    Raises:
        MALFORMED: There is none.
    """
    return READERS[raw[at]](raw, at + 1, depth)


def _constant(value: Any) -> Reader:
    return lambda raw, at, depth: (value, at)  # noqa: ARG005


def _number(layout: str, kind: type) -> Reader:
    packed = struct.Struct(">" + layout)
    unpack, size = packed.unpack_from, packed.size
    new: Any = (int if issubclass(kind, int) else float).__new__  # it fits: the mark need not look at it

    def number(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        return new(kind, unpack(raw, at)[0]), at + size

    return number


def _fixed(size: int, make: Callable[[bytes], Any]) -> Reader:
    return lambda raw, at, depth: (make(raw[at : at + size]), at + size)  # noqa: ARG005


def _short(make: Callable[[bytes], Any]) -> Reader:
    """What one byte tells the length of."""

    def short(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        end = at + 1 + raw[at]
        return make(raw[at + 1 : end]), end

    return short


def _long(make: Callable[[bytes], Any]) -> Reader:
    """What four bytes tell the length of."""

    def long(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
        begin = at + 4
        end = begin + int.from_bytes(raw[at:begin], "big")
        return make(raw[begin:end]), end

    return long


def _compound(width: int, fill: Callable[[bytes, int, int, int], tuple[Any, int]]) -> Reader:
    """Something with parts, behind its size and their count, each of so many bytes."""

    def compound(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
        begin = at + width
        end = begin + int.from_bytes(raw[at:begin], "big")
        count = int.from_bytes(raw[begin : begin + width], "big")
        if end > len(raw) or count > end - begin:
            raise MessageFormatError(f"at byte {at} there are fewer bytes than are told")
        if depth == DEEPEST:
            raise MessageFormatError(f"values are nested deeper than {DEEPEST}")
        value, reached = fill(raw, begin + width, count, depth + 1)
        if reached != end:
            raise MessageFormatError(f"at byte {at} the size does not fit the parts")
        return value, end

    return compound


def _list(raw: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    for _ in range(count):
        value, at = READERS[raw[at]](raw, at + 1, depth)
        values.append(value)
    return values, at


def _map(raw: bytes, at: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    if count % 2:
        raise MessageFormatError(f"at byte {at} a map has a name without a value")
    values: dict[Any, Any] = {}
    for _ in range(count // 2):
        name, at = READERS[raw[at]](raw, at + 1, depth)
        values[name], at = READERS[raw[at]](raw, at + 1, depth)
    return values, at


def _array(raw: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    """Values of one code, which is told once; more than there are bytes do not come even if they take none."""
    described = raw[at] == _DESCRIBED
    descriptor, at = read(raw, at + 1, depth) if described else (None, at)
    reader, at = READERS[raw[at]], at + 1
    values: list[Any] = []
    for _ in range(count):
        value, at = reader(raw, at, depth)
        values.append(Described(descriptor, value) if described else value)
    return values, at


def _described(raw: bytes, at: int, depth: int) -> tuple[Described, int]:
    if depth == DEEPEST:
        raise MessageFormatError(f"values are nested deeper than {DEEPEST}")
    descriptor, at = read(raw, at, depth + 1)
    value, at = read(raw, at, depth + 1)
    return Described(descriptor, value), at


def _boolean(raw: bytes, at: int, depth: int) -> tuple[bool, int]:  # noqa: ARG001
    return bool(raw[at]), at + 1


def _char(encoded: bytes) -> str:
    """A character; JMS has none beyond 16 bits, so those are texts."""
    text = chr(int.from_bytes(encoded, "big"))
    return Char(text) if text <= "\uffff" else text


def _unknown(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
    raise MessageFormatError(f"at byte {at - 1} there is {raw[at - 1]:#04x}, which is no type of AMQP")


_DESCRIBED = 0x00

_READERS: dict[int, Reader] = {
    _DESCRIBED: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: lambda raw, at, depth: ([], at),  # noqa: ARG005  # a new one each time: it can be changed
    0x50: _number("B", UByte),
    0x51: _number("b", Byte),
    0x52: _number("B", UInt),
    0x53: _number("B", ULong),
    0x54: _number("b", Int),
    0x55: _number("b", Long),
    0x56: _boolean,
    0x60: _number("H", UShort),
    0x61: _number("h", Short),
    0x70: _number("I", UInt),
    0x71: _number("i", Int),
    0x72: _number("f", Float),
    0x73: _fixed(4, _char),
    0x74: _fixed(4, lambda encoded: Decimal(0x74, encoded)),
    0x80: _number("Q", ULong),
    0x81: _number("q", Long),
    0x82: _number("d", Double),
    0x83: _number("q", Timestamp),
    0x84: _fixed(8, lambda encoded: Decimal(0x84, encoded)),
    0x94: _fixed(16, lambda encoded: Decimal(0x94, encoded)),
    0x98: _fixed(16, lambda encoded: uuid.UUID(bytes=encoded)),
    0xA0: _short(bytes),
    0xA1: _short(bytes.decode),
    0xA3: _short(lambda encoded: Symbol(encoded, "ascii")),
    0xB0: _long(bytes),
    0xB1: _long(bytes.decode),
    0xB3: _long(lambda encoded: Symbol(encoded, "ascii")),
    0xC0: _compound(1, _list),
    0xC1: _compound(1, _map),
    0xD0: _compound(4, _list),
    0xD1: _compound(4, _map),
    0xE0: _compound(1, _array),
    0xF0: _compound(4, _array),
}
READERS = [_READERS.get(code, _unknown) for code in range(256)]
