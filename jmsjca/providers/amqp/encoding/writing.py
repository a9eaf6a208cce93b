"""Writing values of AMQP: for each type of Python a function that gives its bytes, the shortest there are."""

import struct
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, TypeVar

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

__all__ = [
    "NULL",
    "binary",
    "data_section",
    "list_of",
    "map_of",
    "symbol",
    "text",
    "text_section",
    "timestamp",
    "write",
]

T = TypeVar("T")

NULL = b"\x40"

_SIZES = [bytes([size]) for size in range(256)]
_SHORT, _LONG = 1 << 8, 1 << 32
_short_head, _pack_size = struct.Struct("BBB").pack, struct.Struct(">I").pack


def write(value: Any, depth: int = 0) -> bytes:
    """Write a value by its type: the marks of JMS and of `marks`, and what Python has of its own.

    Raises:
        MessageFormatError: It has no type of AMQP, is too large or nested too deep.
    """
    kind: type = value.__class__
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value)
    compound = _COMPOUNDS.get(kind)
    if compound is None:
        raise MessageFormatError(f"AMQP has no type for {kind.__name__}")
    if depth == DEEPEST:
        raise MessageFormatError(f"values are nested deeper than {DEEPEST}")
    return compound(value, depth + 1)


def list_of(values: list[bytes]) -> bytes:
    """Make a list of values that are written already."""
    return _compound(0xC0, values) if values else b"\x45"


def map_of(names_and_values: list[bytes]) -> bytes:
    """Make a map of names and values, in turns, that are written already."""
    return _compound(0xC1, names_and_values)


def _variable(code: int, encode: Callable[[T], bytes], before: bytes = b"") -> Callable[[T], bytes]:
    """What has its length before it, in one byte if it fits; before all stands something that is always the same."""
    heads, long_head = [before + bytes([code, size]) for size in range(_SHORT)], before + bytes([code + 0x10])

    def variable(value: T) -> bytes:
        encoded = encode(value)
        size = len(encoded)
        return (heads[size] if size < _SHORT else long_head + _four_bytes(size)) + encoded

    return variable


def _compound(code: int, parts: list[bytes]) -> bytes:
    body, count = b"".join(parts), len(parts)
    if count < _SHORT and len(body) < _SHORT - 1:
        return _short_head(code, len(body) + 1, count) + body
    return _SIZES[code + 0x10] + _four_bytes(len(body) + 4) + _four_bytes(count) + body


def _four_bytes(size: int) -> bytes:
    if size >= _LONG:
        raise MessageFormatError("a part of more than 4 GiB has no place in AMQP")
    return _pack_size(size)


def _packed(code: int, layout: str) -> Callable[[Any], bytes]:
    return partial(struct.Struct(">B" + layout).pack, code)


def _integer(small: int, large: int, layout: str) -> Callable[[Any], bytes]:
    """A number in one byte if it fits, else in all that its type has."""
    pack_small, pack_large = struct.Struct(">Bb").pack, struct.Struct(">B" + layout).pack
    return lambda value: pack_small(small, value) if -0x80 <= value < 0x80 else pack_large(large, value)  # noqa: PLR2004


def _unsigned(zero: int, small: int, large: int, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(">B" + layout).pack
    nothing = _SIZES[zero]

    def unsigned(value: int) -> bytes:
        if 0 <= value < _SHORT:
            return _SIZES[small] + _SIZES[value] if value else nothing
        return pack(large, value)

    return unsigned


def _ascii(value: str) -> bytes:
    return value.encode("ascii")


binary, data_section = _variable(0xA0, bytes), _variable(0xA0, bytes, b"\x00\x53\x75")
text, text_section = _variable(0xA1, str.encode), _variable(0xA1, str.encode, b"\x00\x53\x77")
symbol = _variable(0xA3, _ascii)
timestamp = _packed(0x83, "q")
_write_int, _write_long = _integer(0x54, 0x71, "i"), _integer(0x55, 0x81, "q")


def _plain_integer(value: int) -> bytes:
    """An int if it fits, else a long, as everywhere."""
    return _write_int(value) if -(1 << 31) <= value < 1 << 31 else _write_long(Long(value))


def _uuid(value: uuid.UUID) -> bytes:
    return b"\x98" + value.bytes


def _list(values: Iterable[Any], depth: int) -> bytes:
    return list_of([write(value, depth) for value in values])


def _map(values: dict[Any, Any], depth: int) -> bytes:
    return map_of([write(part, depth) for part in chain.from_iterable(values.items())])


def _described(value: Described, depth: int) -> bytes:
    return b"\x00" + write(value.descriptor, depth) + write(value.value, depth)


def _decimal(value: Decimal) -> bytes:
    return _SIZES[value.code] + value.encoded


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: NULL,  # noqa: ARG005
    bool: lambda value: b"\x41" if value else b"\x42",
    int: _plain_integer,
    float: _packed(0x82, "d"),
    str: text,
    bytes: binary,
    bytearray: binary,
    uuid.UUID: _uuid,
    Byte: _packed(0x51, "b"),
    Short: _packed(0x61, "h"),
    Char: lambda value: b"\x73" + value.encode("utf-32-be"),
    Int: _write_int,
    Long: _write_long,
    Float: _packed(0x72, "f"),
    Double: _packed(0x82, "d"),
    UByte: _packed(0x50, "B"),
    UShort: _packed(0x60, "H"),
    UInt: _unsigned(0x43, 0x52, 0x70, "I"),
    ULong: _unsigned(0x44, 0x53, 0x80, "Q"),
    Timestamp: timestamp,
    Symbol: symbol,
    Decimal: _decimal,
}
_COMPOUNDS: dict[type, Callable[[Any, int], bytes]] = {
    list: _list,
    tuple: _list,
    dict: _map,
    Described: _described,
}
