"""What values of AMQP are here that neither Python nor JMS has a type for."""

from typing import Any, NamedTuple

__all__ = ["DEEPEST", "Decimal", "Described", "Symbol", "Timestamp", "UByte", "UInt", "ULong", "UShort"]

DEEPEST = 50
"""How deep values may be nested: nothing that people send goes there, and the interpreter's stack is far away."""


class UByte(int):
    """An unsigned integer of 8 bits."""


class UShort(int):
    """An unsigned integer of 16 bits."""


class UInt(int):
    """An unsigned integer of 32 bits."""


class ULong(int):
    """An unsigned integer of 64 bits."""


class Timestamp(int):
    """A point in time: milliseconds since the epoch."""


class Symbol(str):
    """A word of the protocol, in ASCII."""

    __slots__ = ()


class Described(NamedTuple):
    """A value with what describes it."""

    descriptor: Any
    value: Any


class Decimal(NamedTuple):
    """A decimal number, which nobody here computes with."""

    code: int
    encoded: bytes
