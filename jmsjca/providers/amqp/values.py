"""Values of AMQP: the types of properties, ids, and bytes that are ours to keep."""

import uuid
from collections.abc import Callable
from typing import Any, cast

from proton import byte, float32, int32, short, symbol, timestamp, ubyte, uint, ulong, ushort

from jmsjca.messages import Byte, Double, Float, Int, Long, PropertyValue, Short, typed

__all__ = ["from_wire", "owned", "text_of_id", "to_wire"]

_TO_WIRE: dict[type, Callable[[Any], Any]] = {
    Byte: byte,
    Short: short,
    Int: int32,
    Long: int,
    Float: float32,
    Double: float,
}

# Unsigned numbers have no type in JMS: the next wider one that holds them.
_FROM_WIRE: dict[type, Callable[[Any], PropertyValue]] = {
    byte: Byte,
    short: Short,
    int32: Int,
    int: Long,
    float32: Float,
    float: Double,
    bool: bool,
    str: str,
    symbol: str,
    ubyte: Short,
    ushort: Int,
    uint: Long,
    ulong: Long,
    timestamp: Long,
    uuid.UUID: str,
}


def to_wire(value: PropertyValue) -> Any:
    """A property, with the type of AMQP that its JMS type has."""
    value = typed(value)
    return _TO_WIRE.get(type(value), lambda same: same)(value)


def from_wire(value: Any) -> PropertyValue:
    """A property, with its JMS type; what has none there becomes text."""
    if value is None:
        return None
    make = _FROM_WIRE.get(value.__class__)
    return str(value) if make is None else make(value)


def text_of_id(value: Any) -> str | None:
    """An id as text; those that are none carry their type, as Java's clients write it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, uuid.UUID):
        return f"ID:AMQP_UUID:{value}"
    if isinstance(value, int):
        return f"ID:AMQP_ULONG:{int(value)}"
    return f"ID:AMQP_BINARY:{bytes(value).hex().upper()}"


def owned(value: Any) -> Any:
    """Bytes are a view into proton's memory, which is freed with the wire message: they are copied at once."""
    return bytes(cast("memoryview[int]", value)) if isinstance(value, memoryview) else value
