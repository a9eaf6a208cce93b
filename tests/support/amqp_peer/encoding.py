"""AMQP 1.0 in a codec of the tests' own: values and described lists."""

import struct
import uuid
from functools import cache
from typing import NamedTuple

__all__ = [
    "Composite",
    "Described",
    "Symbol",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "Value",
    "composed",
    "decode",
    "encode",
]


class Symbol(str):
    __slots__ = ()


class UByte(int):
    pass


class UShort(int):
    pass


class UInt(int):
    pass


class ULong(int):
    pass


class Described(NamedTuple):
    """A value with a descriptor that says what it means."""

    descriptor: object
    value: object


class Value(NamedTuple):
    """A decoded value, and where the next one begins."""

    value: object
    end: int


_NOTHING = {0x40: None, 0x41: True, 0x42: False, 0x43: UInt(0), 0x44: ULong(0)}
_FIXED = {
    0x50: (">B", UByte),
    0x51: (">b", int),
    0x52: (">B", UInt),
    0x53: (">B", ULong),
    0x54: (">b", int),
    0x55: (">b", int),
    0x56: (">?", bool),
    0x60: (">H", UShort),
    0x61: (">h", int),
    0x70: (">I", UInt),
    0x71: (">i", int),
    0x72: (">f", float),
    0x73: (">I", chr),
    0x80: (">Q", ULong),
    0x81: (">q", int),
    0x82: (">d", float),
    0x83: (">q", int),
    0x98: ("16s", lambda data: uuid.UUID(bytes=data)),
}
_VARIABLE = {0x0: bytes, 0x1: lambda data: data.decode(), 0x3: lambda data: Symbol(data.decode("ascii"))}
_NUMBERS = {UByte: (0x50, ">B"), UShort: (0x60, ">H"), UInt: (0x70, ">I"), ULong: (0x80, ">Q"), int: (0x81, ">q")}
_SIZED = {bytes: 0xB0, str: 0xB1, Symbol: 0xB3}


def encode(value):
    """Encode a value; a list of symbols and nothing else is an array, as AMQP writes several mechanisms."""
    kind = type(value)
    if kind in _NUMBERS:
        code, form = _NUMBERS[kind]
        return bytes([code]) + struct.pack(form, value)
    if kind in _SIZED:
        data = value if kind is bytes else value.encode()
        return bytes([_SIZED[kind]]) + struct.pack(">I", len(data)) + data
    if kind is Described:
        return b"\0" + encode(value.descriptor) + encode(value.value)
    if kind in _COMPOUND:
        return _COMPOUND[kind](value)
    return encode(value.described()) if hasattr(value, "described") else _SINGLE[value]


def decode(data, at=0):
    """Decode the value that begins at a byte."""
    code, at = data[at], at + 1
    if code == 0:
        descriptor, at = decode(data, at)
        value, at = decode(data, at)
        return Value(Described(descriptor, value), at)
    return _decode(code, data, at)


def _decode(code, data, at):
    if code in _NOTHING:
        return Value(_NOTHING[code], at)
    if code == 0x45:
        return Value([], at)
    if code in _FIXED:
        form, make = _FIXED[code]
        return Value(make(struct.unpack_from(form, data, at)[0]), at + struct.calcsize(form))
    form = ">B" if code & 0xF0 in {0xA0, 0xC0, 0xE0} else ">I"
    size, begin = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if code >= 0xC0:
        return Value(_decode_compound(code, form, data, begin), begin + size)
    return Value(_VARIABLE[code & 0xF](data[begin : begin + size]), begin + size)


def _decode_compound(code, form, data, at):
    count, at = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    constructor = 0
    if code >= 0xE0:
        constructor, at = data[at], at + 1
    values = []
    for _ in range(count):
        value, at = _decode(constructor, data, at) if constructor else decode(data, at)
        values.append(value)
    return dict(zip(values[::2], values[1::2], strict=True)) if code & 0xF == 1 else values


def _compound(code, values):
    data = b"".join(map(encode, values))
    return bytes([code]) + struct.pack(">II", len(data) + 4, len(values)) + data


def _list(values):
    return _array(values) if values and all(type(v) is Symbol for v in values) else _compound(0xD0, values)


def _map(pairs):
    return _compound(0xD1, [part for pair in pairs.items() for part in pair])


def _array(symbols):
    data = b"\xb3" + b"".join(struct.pack(">I", len(s)) + s.encode() for s in symbols)
    return b"\xf0" + struct.pack(">II", len(data) + 4, len(symbols)) + data


_SINGLE = {None: b"\x40", True: b"\x41", False: b"\x42"}
_COMPOUND = {list: _list, dict: _map}


_TYPES = {"uint": UInt, "ushort": UShort, "ubyte": UByte, "symbol": Symbol, "any": lambda value: value}


class Composite:
    """A described list with named fields: ``Open(container_id="peer")``. What is not named is null."""

    CODE = 0
    FIELDS = ""

    def __init__(self, **fields):
        known = self._types()
        assert fields.keys() <= known.keys(), f"{type(self).__name__} has no {fields.keys() - known.keys()}"
        self.fields = {name: None if value is None else known[name](value) for name, value in fields.items()}

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._types():
            raise AttributeError(name)
        return self.fields.get(name)

    def __repr__(self):
        told = ", ".join(f"{name}={str(value)[:60]}" for name, value in self.fields.items() if value is not None)
        return f"{type(self).__name__}({told})"

    def matches(self, other):
        """Tell whether another one has the fields of this one; of composites inside, only what they name."""
        return type(self) is type(other) and all(_same(value, getattr(other, n)) for n, value in self.fields.items())

    def described(self):
        """Itself as a described list."""
        return Described(ULong(self.CODE), [self.fields.get(name) for name in self._types()])

    @classmethod
    def _types(cls):
        pairs = (field.partition(":") for field in cls.FIELDS.split())
        return {name: _TYPES[kind or "any"] for name, _, kind in pairs}


def _same(wanted, found):
    if isinstance(wanted, type):
        return isinstance(found, wanted)
    return wanted.matches(found) if isinstance(wanted, Composite) else wanted == found


def composed(value):
    """Turn described lists, also those inside, into composites where they are known."""
    if isinstance(value, Described) and value.descriptor in _by_code() and isinstance(value.value, list):
        kind = _by_code()[value.descriptor]
        return kind(**dict(zip(kind._types(), map(composed, value.value), strict=False)))
    return value


@cache
def _by_code():
    return {kind.CODE: kind for kind in Composite.__subclasses__()}
