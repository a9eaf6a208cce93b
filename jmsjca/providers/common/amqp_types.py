"""Reading values of AMQP: for each of the 256 codes that a value may begin with a function that reads the rest.

Numbers get the types of JMS where it has them. A count is believed only as far as there are bytes for it, and what is
nested deeper than `DEEPEST` is refused, so that bytes of any kind cost no more than a few times their own size.
"""

import struct
import uuid
from collections.abc import Callable
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, Short
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
from jmsjca.providers.amqp.encoding.scalars import Reader, boolean, char, constant, fixed, long, number, short

__all__ = ["MALFORMED", "read"]

MALFORMED = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)
"""What bytes that are no value may provoke here, besides `MessageFormatError`, which is a `ValueError`."""


def read(raw: bytes, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """Read the value that begins there.

    Returns:
        The value, and where it ends. That may be behind the last byte: whoever knows where it should end compares.

    Raises:
        MALFORMED: There is none.
    """
    return READERS[raw[at]](raw, at + 1, depth)


def _compound(layout: str, fill: Callable[[bytes, int, int, int], tuple[Any, int]]) -> Reader:
    """Something with parts, behind its size and their count, each of that layout."""
    both, width = struct.Struct(f">2{layout}").unpack_from, struct.calcsize(f">{layout}")

    def compound(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
        size, count = both(raw, at)
        begin = at + width
        end = begin + size
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
        code = raw[at]
        value, at = (None, at + 1) if code == _NULL else READERS[code](raw, at + 1, depth)  # many are not set
        values.append(value)
    return values, at


def _map(raw: bytes, at: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
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


def _unknown(raw: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001
    raise MessageFormatError(f"at byte {at - 1} there is {raw[at - 1]:#04x}, which is no type of AMQP")


_DESCRIBED, _NULL = 0x00, 0x40

_READERS: dict[int, Reader] = {
    _DESCRIBED: _described,
    _NULL: constant(None),
    0x41: constant(True),
    0x42: constant(False),
    0x43: constant(UInt(0)),
    0x44: constant(ULong(0)),
    0x45: lambda raw, at, depth: ([], at),  # noqa: ARG005  # a new one each time: it can be changed
    0x50: number("B", UByte),
    0x51: number("b", Byte),
    0x52: number("B", UInt),
    0x53: number("B", ULong),
    0x54: number("b", Int),
    0x55: number("b", Long),
    0x56: boolean,
    0x60: number("H", UShort),
    0x61: number("h", Short),
    0x70: number("I", UInt),
    0x71: number("i", Int),
    0x72: number("f", Float),
    0x73: fixed(4, char),
    0x74: fixed(4, lambda encoded: Decimal(0x74, encoded)),
    0x80: number("Q", ULong),
    0x81: number("q", Long),
    0x82: number("d", Double),
    0x83: number("q", Timestamp),
    0x84: fixed(8, lambda encoded: Decimal(0x84, encoded)),
    0x94: fixed(16, lambda encoded: Decimal(0x94, encoded)),
    0x98: fixed(16, lambda encoded: uuid.UUID(bytes=encoded)),
    0xA0: short(bytes),
    0xA1: short(bytes.decode),
    0xA3: short(lambda encoded: Symbol(encoded, "ascii")),
    0xB0: long(bytes),
    0xB1: long(bytes.decode),
    0xB3: long(lambda encoded: Symbol(encoded, "ascii")),
    0xC0: _compound("B", _list),
    0xC1: _compound("B", _map),
    0xD0: _compound("I", _list),
    0xD1: _compound("I", _map),
    0xE0: _compound("B", _array),
    0xF0: _compound("I", _array),
}
READERS = [_READERS.get(code, _unknown) for code in range(256)]
