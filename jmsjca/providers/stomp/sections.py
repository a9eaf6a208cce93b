"""Just enough of AMQP 1.0's encoding to read what RabbitMQ shows of it over STOMP: sections of plain values."""

import struct
import uuid
from collections.abc import Callable
from typing import Any

from jmsjca.messages import Byte, Double, Float, Int, Long, Short

__all__ = ["read_section"]

# For each constructor the form of its value and what is made of it. Unsigned numbers take the next wider type.
_FIXED: dict[int, tuple[str, Callable[[Any], Any]]] = {
    0x50: (">B", Short),
    0x51: (">b", Byte),
    0x52: (">B", Long),
    0x53: (">B", Long),
    0x54: (">b", Int),
    0x55: (">b", Long),
    0x56: (">?", bool),
    0x60: (">H", Int),
    0x61: (">h", Short),
    0x70: (">I", Long),
    0x71: (">i", Int),
    0x72: (">f", Float),
    0x80: (">Q", Long),
    0x81: (">q", Long),
    0x82: (">d", Double),
    0x83: (">q", Long),
    0x98: (">16s", lambda value: str(uuid.UUID(bytes=value))),
}
_EMPTY: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: Long(0), 0x44: Long(0), 0x45: []}
_TEXT, _BINARY = {0xA1, 0xB1, 0xA3, 0xB3}, {0xA0, 0xB0}
_LISTS, _MAPS = {0xC0, 0xD0}, {0xC1, 0xD1}
_WIDE = 0x10  # the bit of a constructor that says whether sizes have four bytes or one


def read_section(data: bytes) -> Any:
    """Read the value of a section: a list, a map, or a plain value.

    Raises:
        ValueError: It is none, or holds what no message property can.
        struct.error: It is cut short.
    """
    if data[:1] != b"\0":
        raise ValueError("no section")
    _, begin = _read(data, 1)  # its descriptor
    return _read(data, begin)[0]


def _read(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    (code,) = struct.unpack_from(">B", data, at)
    at += 1
    if code in _EMPTY:
        return _EMPTY[code], at
    if code in _FIXED:
        form, made = _FIXED[code]
        return made(struct.unpack_from(form, data, at)[0]), at + struct.calcsize(form)
    if code in _TEXT or code in _BINARY:
        size, at = _size(data, at, code)
        (value,) = struct.unpack_from(f"{size}s", data, at)
        return (value.decode() if code in _TEXT else value), at + size
    if code not in _LISTS | _MAPS or depth:
        raise ValueError(f"a value with the constructor {code:#x}")
    return _compound(data, at, code)


def _compound(data: bytes, at: int, code: int) -> tuple[Any, int]:
    size, begin = _size(data, at, code)
    count, at = _size(data, begin, code)
    items: list[Any] = []
    while len(items) < count:
        item, at = _read(data, at, 1)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if code in _MAPS else items), begin + size


def _size(data: bytes, at: int, code: int) -> tuple[int, int]:
    form = ">I" if code & _WIDE else ">B"
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
