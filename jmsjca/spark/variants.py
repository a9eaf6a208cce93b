"""Values of JMS in the binary encoding of VARIANT, which Spark shares with Parquet.

Each type of JMS has its own type in VARIANT: byte, short, int and long are the integers of 1, 2, 4 and 8 bytes, float
and double are the floating-point numbers of 4 and 8 bytes. So decoding restores the type of an encoded value.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, Short

__all__ = ["decode_object", "encode_object", "is_null"]

_LIMIT = (1 << 24) - 1  # bytes: Spark refuses a larger value
_SHORT_TEXT = 0x3F
_MAX_BYTE = 0xFF
_OBJECT, _SHORT_STRING = 2, 1  # the basic types, in the two lowest bits
_NULL, _TRUE, _FALSE = b"\x00", b"\x04", b"\x08"
_BINARY, _STRING = 15 << 2, 16 << 2
_NUMBERS: dict[type, struct.Struct] = {
    Byte: struct.Struct("<Bb"),
    Short: struct.Struct("<Bh"),
    Int: struct.Struct("<Bi"),
    Long: struct.Struct("<Bq"),
    Double: struct.Struct("<Bd"),
    Float: struct.Struct("<Bf"),
}
_CODES: dict[type, int] = {Byte: 3 << 2, Short: 4 << 2, Int: 5 << 2, Long: 6 << 2, Double: 7 << 2, Float: 14 << 2}
_KINDS: dict[int, type] = {code: kind for kind, code in _CODES.items()}
_DECIMALS = {8 << 2: 4, 9 << 2: 8, 10 << 2: 16}  # of the numbers of other programs: the sizes without the scale


def encode_object(values: Mapping[str, object]) -> dict[str, bytes]:
    """Return named values as an object.

    Args:
        values: Values of JMS types.

    Returns:
        The fields ``value`` and ``metadata`` of the VARIANT.

    Raises:
        MessageFormatError: A value has another type, or all of them are too large.
    """
    # Java compares names by units of UTF-16, and Spark looks up the fields of large objects by bisection.
    names = sorted(values, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    parts = [_ENCODERS.get(type(values[name]), _encode_other)(values[name]) for name in names]
    value = _object_of(parts)
    metadata = _metadata_of([name.encode() for name in names])
    if max(len(value), len(metadata)) > _LIMIT:
        raise MessageFormatError(f"Properties of {len(value)} bytes do not fit a VARIANT, which holds 16 MiB.")
    return {"value": value, "metadata": metadata}


def decode_object(value: bytes, metadata: bytes) -> dict[str, Any]:
    """Return the named values of an object.

    Raises:
        MessageFormatError: The VARIANT is not an object, or one of its values has no JMS type.
    """
    try:
        names = _names_of(metadata)
        return {names[n]: _decoded(value, at, names[n]) for n, at in _fields_of(value)}
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MessageFormatError(f"A VARIANT with the typed properties of a message is damaged: {error}.") from error


def is_null(value: bytes) -> bool:
    """Return whether a VARIANT is a JSON null, which differs from SQL's NULL."""
    return value[:1] == _NULL


def _encode_text(value: str) -> bytes:
    data = value.encode()
    if len(data) <= _SHORT_TEXT:
        return bytes((len(data) << 2 | _SHORT_STRING,)) + data
    return struct.pack("<BI", _STRING, len(data)) + data


def _encode_other(value: Any) -> bytes:
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, bytes | bytearray):
        return struct.pack("<BI", _BINARY, len(value)) + value
    if isinstance(value, int):
        kind: type = Int if -(1 << 31) <= value < 1 << 31 else Long
        return _NUMBERS[kind].pack(_CODES[kind], kind(value))
    if isinstance(value, float):
        return _NUMBERS[Double].pack(_CODES[Double], value)
    raise MessageFormatError(f"A value of type {type(value).__name__} does not fit a VARIANT.")


def _encoder_of(kind: type) -> Callable[[Any], bytes]:
    pack, code = _NUMBERS[kind].pack, _CODES[kind]
    return lambda value: pack(code, value)


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    str: _encode_text,
    bool: lambda value: _TRUE if value else _FALSE,
    type(None): lambda _: _NULL,
    **{kind: _encoder_of(kind) for kind in _NUMBERS},
}


def _object_of(parts: list[bytes]) -> bytes:
    """Return an object; its fields have the names of the metadata, in order."""
    count, size = len(parts), sum(map(len, parts))
    large = count > _MAX_BYTE
    id_size, offset_size = _size_of(count), _size_of(size)
    made = bytearray((_OBJECT | offset_size - 1 << 2 | id_size - 1 << 4 | large << 6,))
    made += count.to_bytes(4 if large else 1, "little")
    for n in range(count):
        made += n.to_bytes(id_size, "little")
    _add_offsets(made, parts, offset_size)
    return bytes(made) + b"".join(parts)


def _metadata_of(names: list[bytes]) -> bytes:
    size = _size_of(max(len(names), sum(map(len, names))))
    made = bytearray((1 | size - 1 << 6,))  # version 1
    made += len(names).to_bytes(size, "little")
    _add_offsets(made, names, size)
    return bytes(made) + b"".join(names)


def _size_of(number: int) -> int:
    """Return the number of bytes for numbers up to the given one."""
    return max(1, (number.bit_length() + 7) // 8)


def _add_offsets(made: bytearray, parts: list[bytes], size: int) -> None:
    offset = 0
    made += bytes(size)
    for part in parts:
        offset += len(part)
        made += offset.to_bytes(size, "little")


def _names_of(metadata: bytes) -> list[str]:
    size = (metadata[0] >> 6) + 1
    count = _number_at(metadata, 1, size)
    begin = 1 + (count + 2) * size
    ends = [begin + _number_at(metadata, 1 + (n + 1) * size, size) for n in range(count + 1)]
    return [metadata[ends[n] : ends[n + 1]].decode() for n in range(count)]


def _fields_of(value: bytes) -> list[tuple[int, int]]:
    """Return the number of the name, and the place of the value, of each field."""
    head = value[0]
    if head & 3 != _OBJECT:
        raise MessageFormatError("typed_properties must be an object of a VARIANT: to_variant_object(struct(…)).")
    offset_size, id_size, wide = (head >> 2 & 3) + 1, (head >> 4 & 3) + 1, 4 if head >> 6 & 1 else 1
    count = _number_at(value, 1, wide)
    offsets = 1 + wide + count * id_size
    begin = offsets + (count + 1) * offset_size
    return [
        (
            _number_at(value, 1 + wide + n * id_size, id_size),
            begin + _number_at(value, offsets + n * offset_size, offset_size),
        )
        for n in range(count)
    ]


def _number_at(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError("it is truncated")
    return int.from_bytes(data[at : at + size], "little")


def _decoded(value: bytes, at: int, name: str) -> Any:
    code = value[at]
    if code & 3 == _SHORT_STRING:
        return value[at + 1 : at + 1 + (code >> 2)].decode()
    if code in _KINDS:
        kind = _KINDS[code]
        return kind(_NUMBERS[kind].unpack_from(value, at)[1])
    if code in (_NULL[0], _TRUE[0], _FALSE[0]):
        return None if code == _NULL[0] else code == _TRUE[0]
    if code in (_STRING, _BINARY):
        begin = at + 5
        data = value[begin : begin + _number_at(value, at + 1, 4)]
        return data.decode() if code == _STRING else data
    if code in _DECIMALS:
        digits = int.from_bytes(value[at + 2 : at + 2 + _DECIMALS[code]], "little", signed=True)
        return Double(digits / 10 ** value[at + 1])
    raise MessageFormatError(
        f"The typed property {name!r:.100} is a value of a VARIANT that no property has: cast it to a string or number."
    )
