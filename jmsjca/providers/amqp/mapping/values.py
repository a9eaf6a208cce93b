"""Values of AMQP as values of JMS, which has fewer types."""

import uuid
from collections.abc import Callable
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Char, Double, EntryValue, Float, Int, Long, PropertyValue, Short
from jmsjca.providers.amqp.encoding.marks import Symbol, Timestamp, UByte, UInt, ULong, UShort

__all__ = ["as_entry", "as_property"]

_LONGS = 1 << 63


def _long(value: int) -> PropertyValue:
    return Long(value) if value < _LONGS else str(int(value))


# Unsigned numbers become the next wider type that holds them all.
_WIDER: dict[type, Callable[[Any], PropertyValue]] = {
    UByte: Short,
    UShort: Int,
    UInt: Long,
    ULong: _long,
    Timestamp: Long,
    Symbol: str,
    uuid.UUID: str,
}
_OF_PROPERTIES = frozenset({type(None), bool, Byte, Short, Int, Long, Float, Double, str})
_OF_ENTRIES = _OF_PROPERTIES | {Char, bytes}


def as_property(value: Any) -> PropertyValue:
    """A property, with its JMS type; what has none there becomes text."""
    kind: type = value.__class__
    return cast("PropertyValue", value) if kind in _OF_PROPERTIES else _WIDER.get(kind, str)(value)


def as_entry(value: Any) -> EntryValue:
    """An entry of a map or a stream message, with its JMS type.

    Raises:
        MessageFormatError: It has none there.
    """
    kind: type = value.__class__
    if kind in _OF_ENTRIES:
        return cast("EntryValue", value)
    if kind not in _WIDER:
        raise MessageFormatError(f"a map or stream message holds no {kind.__name__}")
    return _WIDER[kind](value)
