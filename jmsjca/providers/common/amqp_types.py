"""AMQP 1.0, part 1: reading and writing values, by tables of type codes.

Each of the 256 constructor codes has a function that reads the rest of the value; each Python type has a function that
writes its shortest encoding. Numbers are returned as JMS types where JMS has them. A count larger than the remaining
bytes is refused, and so is nesting deeper than `MAX_DEPTH`: decoding hostile bytes never takes more memory than a small
multiple of their size.
"""

import struct
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short
from jmsjca.providers.common.codec import decode_modified, decode_string

__all__ = [
    "MALFORMED",
    "MAX_DEPTH",
    "NULL",
    "Described",
    "RawDecimal",
    "Reader",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "_boolean",
    "_char",
    "_constant",
    "_fixed",
    "_number",
    "_var8",
    "_var32",
    "amqp_value_string_section",
    "binary",
    "data_section",
    "list_of",
    "map_of",
    "read",
    "read_uint32",
    "symbol",
    "text",
    "timestamp",
    "write",
]

MAX_DEPTH = 50
"""Maximum nesting of values: more than any real message uses, and far below the interpreter's recursion limit."""

read_uint32 = struct.Struct(">I").unpack_from
"""Unpack four bytes as an unsigned integer, in a tuple of one."""

Reader = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads the value after its code. Takes the bytes, the offset and the depth; returns the value and its end offset."""


def _constant(value: Any) -> Reader:
    """Return a reader of a value that has no bytes after its code."""
    return lambda _raw, at, _depth: (value, at)


def _number(layout: str, kind: type) -> Reader:
    """Return a reader of a number in a `struct` layout, as an instance of a type."""
    packed = struct.Struct(">" + layout)
    unpack, size = packed.unpack_from, packed.size
    new: Any = (int if issubclass(kind, int) else float).__new__  # the value fits: skip the range check of the type

    def _read(raw: bytes, at: int, _depth: int) -> tuple[Any, int]:
        return new(kind, unpack(raw, at)[0]), at + size

    return _read


def _fixed(size: int, make: Callable[[bytes], Any]) -> Reader:
    """Return a reader of a value of fixed size."""
    return lambda raw, at, _depth: (make(raw[at : at + size]), at + size)


def _var8(make: Callable[[bytes], Any]) -> Reader:
    """Return a reader of a value with a length of one byte."""

    def _read(raw: bytes, at: int, _depth: int) -> tuple[Any, int]:
        end = at + 1 + raw[at]
        return make(raw[at + 1 : end]), end

    return _read


def _var32(make: Callable[[bytes], Any]) -> Reader:
    """Return a reader of a value with a length of four bytes."""

    def _read(raw: bytes, at: int, _depth: int) -> tuple[Any, int]:
        begin = at + 4
        end = begin + read_uint32(raw, at)[0]
        return make(raw[begin:end]), end

    return _read


def _text8(raw: bytes, at: int, _depth: int) -> tuple[str, int]:
    """Read a string with a length of one byte. The call of `_var8` is saved, so that the handler costs nothing."""
    end = at + 1 + raw[at]
    try:
        return raw[at + 1 : end].decode(), end
    except UnicodeDecodeError as error:
        return decode_modified(raw[at + 1 : end], error), end


def _boolean(raw: bytes, at: int, _depth: int) -> tuple[bool, int]:
    """Read a boolean of one byte."""
    return bool(raw[at]), at + 1


def _char(encoded: bytes) -> str:
    """Return a character. Characters beyond 16 bits are returned as strings, since JMS has no type for them."""
    text = chr(int.from_bytes(encoded, "big"))
    return Char(text) if text <= "\uffff" else text


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
    """A symbol: an ASCII name of the protocol."""

    __slots__ = ()


def _symbol(encoded: bytes) -> Symbol:
    return Symbol(encoded, "ascii")


class Described(NamedTuple):
    """A described value: a descriptor and a value."""

    descriptor: Any
    value: Any


class RawDecimal(NamedTuple):
    """A decimal number in its encoded form, which is passed through; its text form is the number."""

    code: int
    encoded: bytes

    def __str__(self) -> str:
        """Return the number (AMQP 1.0, section 1.6.13: IEEE 754-2008, coefficients are binary integers)."""
        width, bias, digits = _DECIMALS[self.code]
        size, number = 8 * len(self.encoded), int.from_bytes(self.encoded, "big")
        sign, combination = number >> size - 1, number >> size - 6 & 0b11111
        if combination >= _SPECIAL:
            return "NaN" if combination > _SPECIAL else "-Infinity" if sign else "Infinity"
        large = combination >= _LARGE  # the coefficient has an implicit 100 before its bits
        rest = size - 1 - width - (2 if large else 0)
        exponent, coefficient = number >> rest & (1 << width) - 1, number & (1 << rest) - 1 | large << rest + 2
        shown = coefficient if coefficient < 10**digits else 0  # larger ones stand for 0
        return str(Decimal((sign, tuple(map(int, str(shown))), exponent - bias)))


_DECIMALS = {0x74: (8, 101, 7), 0x84: (10, 398, 16), 0x94: (14, 6176, 34)}  # bits and bias of the exponent, digits
_LARGE, _SPECIAL = 0b11000, 0b11110  # the latter is infinity; the next one is NaN


MALFORMED = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)
"""Errors that malformed bytes may raise here; `MessageFormatError` is a `ValueError`."""


def read(raw: bytes, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """Return the value that begins at an offset.

    Returns:
        The value and its end offset. The end may lie beyond the last byte: a caller that knows the expected end must
        compare.

    Raises:
        MALFORMED: The bytes are not a valid value.
    """
    return READERS[raw[at]](raw, at + 1, depth)


def _compound_reader(layout: str, fill: Callable[[bytes, int, int, int], tuple[Any, int]]) -> Reader:
    """Return a reader of a compound value: its size and its count in a `struct` layout, then its elements."""
    both, width = struct.Struct(f">2{layout}").unpack_from, struct.calcsize(f">{layout}")

    def _compound(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
        size, count = both(raw, at)
        begin = at + width
        end = begin + size
        if end > len(raw) or count > end - begin:
            raise MessageFormatError(f"at byte {at} the size or count exceeds the remaining bytes")
        if depth == MAX_DEPTH:
            raise MessageFormatError(f"values are nested deeper than {MAX_DEPTH}")
        value, reached = fill(raw, begin + width, count, depth + 1)
        if reached != end:
            raise MessageFormatError(f"at byte {at} the size does not match the elements")
        return value, end

    return _compound


def _read_list(raw: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    for _ in range(count):
        code = raw[at]
        value, at = (None, at + 1) if code == _NULL else READERS[code](raw, at + 1, depth)  # nulls are frequent
        values.append(value)
    return values, at


def _read_map(raw: bytes, at: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    values: dict[Any, Any] = {}
    for _ in range(count // 2):
        name, at = READERS[raw[at]](raw, at + 1, depth)
        values[name], at = READERS[raw[at]](raw, at + 1, depth)
    return values, at


def _read_array(raw: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    """Read values that share one code. Elements of zero width count as one byte each against the size."""
    described = raw[at] == _DESCRIBED
    descriptor, at = read(raw, at + 1, depth) if described else (None, at)
    reader, at = READERS[raw[at]], at + 1
    values: list[Any] = []
    for _ in range(count):
        value, at = reader(raw, at, depth)
        values.append(Described(descriptor, value) if described else value)
    return values, at


def _read_described(raw: bytes, at: int, depth: int) -> tuple[Described, int]:
    if depth == MAX_DEPTH:
        raise MessageFormatError(f"values are nested deeper than {MAX_DEPTH}")
    descriptor, at = read(raw, at, depth + 1)
    value, at = read(raw, at, depth + 1)
    return Described(descriptor, value), at


def _read_unknown(raw: bytes, at: int, _depth: int) -> tuple[Any, int]:
    raise MessageFormatError(f"at byte {at - 1} the code {raw[at - 1]:#04x} is no AMQP type")


_DESCRIBED, _NULL = 0x00, 0x40

_READERS: dict[int, Reader] = {
    _DESCRIBED: _read_described,
    _NULL: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: lambda _raw, at, _depth: ([], at),  # a new list each time, as it is mutable
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
    0x74: _fixed(4, lambda encoded: RawDecimal(0x74, encoded)),
    0x80: _number("Q", ULong),
    0x81: _number("q", Long),
    0x82: _number("d", Double),
    0x83: _number("q", Timestamp),
    0x84: _fixed(8, lambda encoded: RawDecimal(0x84, encoded)),
    0x94: _fixed(16, lambda encoded: RawDecimal(0x94, encoded)),
    0x98: _fixed(16, lambda encoded: uuid.UUID(bytes=encoded)),
    0xA0: _var8(bytes),
    0xA1: _text8,
    0xA3: _var8(lru_cache(256)(_symbol)),  # few, such as content types
    0xB0: _var32(bytes),
    0xB1: _var32(decode_string),
    0xB3: _var32(_symbol),
    0xC0: _compound_reader("B", _read_list),
    0xC1: _compound_reader("B", _read_map),
    0xD0: _compound_reader("I", _read_list),
    0xD1: _compound_reader("I", _read_map),
    0xE0: _compound_reader("B", _read_array),
    0xF0: _compound_reader("I", _read_array),
}
READERS = [_READERS.get(code, _read_unknown) for code in range(256)]

T = TypeVar("T")

NULL = b"\x40"

_BYTES = [bytes([size]) for size in range(256)]
_LIMIT8, _LIMIT32 = 1 << 8, 1 << 32
_SIGNED_BYTES = range(-0x80, 0x80)
_pack_compound8, _pack_uint32 = struct.Struct("BBB").pack, struct.Struct(">I").pack


def write(value: Any, depth: int = 0) -> bytes:
    """Return the encoding of a value of a JMS type, of an AMQP type of this module, or of a built-in Python type.

    Raises:
        MessageFormatError: The value has no AMQP type, is too large or nested too deeply.
    """
    kind: type = value.__class__
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value)
    compound = _COMPOUNDS.get(kind)
    if compound is None:
        raise MessageFormatError(f"AMQP has no type for {kind.__name__}")
    if depth == MAX_DEPTH:
        raise MessageFormatError(f"values are nested deeper than {MAX_DEPTH}")
    return compound(value, depth + 1)


def list_of(values: list[bytes]) -> bytes:
    """Return a list of encoded values."""
    return _write_compound(0xC0, values) if values else b"\x45"


def map_of(names_and_values: list[bytes]) -> bytes:
    """Return a map of encoded keys and values, which alternate."""
    return _write_compound(0xC1, names_and_values)


def _variable_writer(code: int, encode: Callable[[T], bytes], before: bytes = b"") -> Callable[[T], bytes]:
    """Return a writer of a value preceded by its length, in one byte if possible; `before` is a constant prefix."""
    heads, long_head = [before + bytes([code, size]) for size in range(_LIMIT8)], before + bytes([code + 0x10])

    def _variable(value: T) -> bytes:
        encoded = encode(value)
        size = len(encoded)
        return (heads[size] if size < _LIMIT8 else long_head + _uint32_bytes(size)) + encoded

    return _variable


def _write_compound(code: int, parts: list[bytes]) -> bytes:
    body, count = b"".join(parts), len(parts)
    if count < _LIMIT8 and len(body) < _LIMIT8 - 1:
        return _pack_compound8(code, len(body) + 1, count) + body
    return _BYTES[code + 0x10] + _uint32_bytes(len(body) + 4) + _uint32_bytes(count) + body


def _uint32_bytes(size: int) -> bytes:
    if size >= _LIMIT32:
        raise MessageFormatError("AMQP has no encoding for a value of more than 4 GiB")
    return _pack_uint32(size)


def _fixed_writer(code: int, layout: str) -> Callable[[Any], bytes]:
    return partial(struct.Struct(">B" + layout).pack, code)


def _signed_writer(small: int, large: int, layout: str) -> Callable[[Any], bytes]:
    """Return a writer of a signed integer: in one byte if it fits, else in the full width of its type."""
    pack_small, pack_large = struct.Struct(">Bb").pack, struct.Struct(">B" + layout).pack
    return lambda value: pack_small(small, value) if value in _SIGNED_BYTES else pack_large(large, value)


def _unsigned_writer(zero: int, small: int, large: int, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(">B" + layout).pack
    nothing = _BYTES[zero]

    def _unsigned(value: int) -> bytes:
        if 0 <= value < _LIMIT8:
            return _BYTES[small] + _BYTES[value] if value else nothing
        return pack(large, value)

    return _unsigned


def _encode_ascii(value: str) -> bytes:
    return value.encode("ascii")


binary, data_section = _variable_writer(0xA0, bytes), _variable_writer(0xA0, bytes, b"\x00\x53\x75")
text, amqp_value_string_section = (
    _variable_writer(0xA1, str.encode),
    _variable_writer(0xA1, str.encode, b"\x00\x53\x77"),
)
symbol = _variable_writer(0xA3, _encode_ascii)
timestamp = _fixed_writer(0x83, "q")
_write_int, _write_long = _signed_writer(0x54, 0x71, "i"), _signed_writer(0x55, 0x81, "q")


def _write_int_or_long(value: int) -> bytes:
    """Write a Python int as an AMQP int if it fits, else as a long."""
    return _write_int(value) if -(1 << 31) <= value < 1 << 31 else _write_long(Long(value))


def _write_uuid(value: uuid.UUID) -> bytes:
    return b"\x98" + value.bytes


def _write_list(values: Iterable[Any], depth: int) -> bytes:
    return list_of([write(value, depth) for value in values])


def _write_map(values: dict[Any, Any], depth: int) -> bytes:
    return map_of([write(part, depth) for part in chain.from_iterable(values.items())])


def _write_described(value: Described, depth: int) -> bytes:
    return b"\x00" + write(value.descriptor, depth) + write(value.value, depth)


def _write_decimal(value: RawDecimal) -> bytes:
    return _BYTES[value.code] + value.encoded


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _value: NULL,
    bool: lambda value: b"\x41" if value else b"\x42",
    int: _write_int_or_long,
    float: _fixed_writer(0x82, "d"),
    str: text,
    bytes: binary,
    bytearray: binary,
    uuid.UUID: _write_uuid,
    Byte: _fixed_writer(0x51, "b"),
    Short: _fixed_writer(0x61, "h"),
    Char: lambda value: b"\x73" + value.encode("utf-32-be"),
    Int: _write_int,
    Long: _write_long,
    Float: _fixed_writer(0x72, "f"),
    Double: _fixed_writer(0x82, "d"),
    UByte: _fixed_writer(0x50, "B"),
    UShort: _fixed_writer(0x60, "H"),
    UInt: _unsigned_writer(0x43, 0x52, 0x70, "I"),
    ULong: _unsigned_writer(0x44, 0x53, 0x80, "Q"),
    Timestamp: timestamp,
    Symbol: symbol,
    RawDecimal: _write_decimal,
}
_COMPOUNDS: dict[type, Callable[[Any, int], bytes]] = {
    list: _write_list,
    tuple: _write_list,
    dict: _write_map,
    Described: _write_described,
}
