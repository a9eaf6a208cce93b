"""Values as Apache's interop suite writes them in JSON, and as messages hold them."""

import base64
import struct

from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["UnknownTypeError", "read_value", "written"]

_INTEGERS = {"byte": (Byte, 8), "short": (Short, 16), "int": (Int, 32), "long": (Long, 64)}
_FLOATS = {"float": (Float, ">f", 4), "double": (Double, ">d", 8)}


class UnknownTypeError(ValueError):
    """A type that JMS does not have."""


def read_value(kind, told):
    """Return the value of a type; numbers may be told as hexadecimal digits, those with a point as their bits.

    Raises:
        UnknownTypeError: JMS has no such type.
    """
    if told is None or kind == "none":
        return None
    if kind in _INTEGERS:
        return _integer(kind, told)
    if kind in _FLOATS:
        return _floating(kind, told)
    readers = {"boolean": _boolean, "bytes": bytes.fromhex, "char": _character, "string": str, "text": str}
    if kind not in readers:
        raise UnknownTypeError(f"JMS has no type {kind!r}")
    return readers[kind](told)


def written(told):
    """Return the type and the JSON of a value that is described as a pair of its type and an exact text."""
    if told is None:
        return "none", None
    kind, text = told
    if kind in _INTEGERS:
        bits = _INTEGERS[kind][1]
        return kind, f"0x{int(text) % (1 << bits):0{bits // 4}x}"
    if kind in _FLOATS:
        return kind, f"0x{struct.pack(_FLOATS[kind][1], _of_java(text)).hex()}"
    writers = {
        "boolean": lambda text: text == "true",
        "bytes": lambda text: base64.b64decode(text).hex(),
        "char": lambda text: base64.b64encode(text.encode()).decode(),
        "string": str,
    }
    return kind, writers[kind](text)


def _integer(kind, told):
    make, bits = _INTEGERS[kind]
    number = int(told, 16) if isinstance(told, str) else told
    return make(number - (1 << bits) if number >= 1 << (bits - 1) else number)


def _floating(kind, told):
    make, form, size = _FLOATS[kind]
    if not isinstance(told, str):
        return make(told)
    [number] = struct.unpack(form, int(told, 16).to_bytes(size))
    return make(number)


def _boolean(told):
    return told if isinstance(told, bool) else told.lower() == "true"


def _character(told):
    return Char(told if len(told) == 1 else base64.b64decode(told).decode())


def _of_java(text):
    """Read what Java's ``toHexString`` writes."""
    return float(text) if text.lstrip("-") in {"NaN", "Infinity"} else float.fromhex(text)
