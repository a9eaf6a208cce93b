"""Where the sections of a message begin (AMQP 1.0, section 3.2), found without decoding what is in them."""

from contextlib import suppress
from struct import Struct
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.encoding.reading import MALFORMED, read

__all__ = [
    "ANNOTATIONS",
    "APPLICATION_PROPERTIES",
    "DATA",
    "HEADER",
    "PROPERTIES",
    "SEQUENCE",
    "VALUE",
    "Sections",
    "bare",
    "body",
    "end_of",
    "expected",
    "fields_of",
    "split",
    "values",
]

Sections = dict[int, int]
"""By the code of a section where its value begins; of data and sequences, which may be several, the first."""

HEADER, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE = 0x75, 0x76, 0x77
_NAMES = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": 0x78,
}
_FIRST, _LAST = HEADER, 0x78
_BODIES = {DATA, SEQUENCE, VALUE}
_REPEATED = {DATA, SEQUENCE}

_DESCRIBED = 0
_USUAL_MARK = 0x0053  # how all write it: described by a small number
_HEAD = range(HEADER, ANNOTATIONS + 1)
_begin = Struct(">HBB").unpack_from  # that mark, the code of the section and that of its value; none is shorter
_four_bytes = Struct(">I").unpack_from

# How many bytes follow a code, and how many of them tell how many more: by its upper half.
_FIXED = [-1, -1, -1, -1, 0, 1, 2, 4, 8, 16, 1, 4, 1, 4, 1, 4]
_SIZED = [0] * 10 + [1, 4, 1, 4, 1, 4]
_SHORT, _LONG = ({code for code in range(256) if _SIZED[code >> 4] == width} for width in (1, 4))


def split(raw: bytes) -> Sections:
    """Go from section to section to the last byte.

    Raises:
        MessageFormatError: The bytes are no sections, or not in order.
        MALFORMED: The same.
    """
    found: Sections = {}
    at, size, last = 0, len(raw), _FIRST - 1
    while at < size:
        mark, code, form = _begin(raw, at)
        if mark == _USUAL_MARK:
            at += 3
        else:
            code, at = _descriptor(raw, at)
            form = raw[at]
        if last < code <= _LAST:
            found[code] = at
        else:
            _check_follows(code, last)
        if form in _SHORT:
            at += 2 + raw[at + 1]
        elif form in _LONG:
            at += 5 + _four_bytes(raw, at + 1)[0]
        else:
            at = _end_of_any(raw, at)
        last = code
    if at != size or not found:
        raise MessageFormatError("it is cut off")
    return found


def values(raw: bytes, code: int, begin: int) -> list[Any]:
    """The value that begins there, and those of the sections behind it that have the same code.

    Raises:
        MALFORMED: There is none.
    """
    value, at = read(raw, begin)
    found = [value]
    while at < len(raw):
        following, begin = _descriptor(raw, at)
        if following != code:
            break
        value, at = read(raw, begin)
        found.append(value)
    return found


def bare(raw: bytes) -> bytes:
    """What of a message stays the same on its way (AMQP 1.0, section 3.2): all behind its header and annotations."""
    at = 0
    with suppress(MessageFormatError, *MALFORMED):  # what is behind may be anything
        while at < len(raw):
            code, begin = _descriptor(raw, at)
            if code not in _HEAD:
                break
            at = end_of(raw, begin)
    return raw[at:]


def body(raw: bytes) -> bytes:
    """The bytes of the body as they came; none if there is none.

    Raises:
        MALFORMED: The bytes are no message.
    """
    found = split(raw)
    begins = [begin for code, begin in found.items() if code in _BODIES]
    return raw[begins[0] :] if begins else b""


def fields_of(section: Any, size: int) -> list[Any]:
    """The fields of a section that is a list; those that are left out are None.

    Raises:
        MessageFormatError: It is no list.
    """
    fields: list[Any] = expected(section, list)
    return (fields + [None] * (size - len(fields)))[:size]


def expected(value: Any, kind: type) -> Any:
    """The value, if it is of that type.

    Raises:
        MessageFormatError: It is of another.
    """
    if isinstance(value, kind):
        return value
    raise MessageFormatError(f"there is {type(value).__name__}, where {kind.__name__} should be")


def _descriptor(raw: bytes, at: int) -> tuple[int, int]:
    """A section that is described at length, or by its name."""
    if raw[at] != _DESCRIBED:
        raise MessageFormatError(f"no section begins at byte {at}")
    name, at = read(raw, at + 1)
    return _NAMES[name] if isinstance(name, str) else int(name), at


def _check_follows(code: int, last: int) -> None:
    if not _FIRST <= code <= _LAST:
        raise MessageFormatError(f"{code:#x} describes no section of a message")
    if code < last or code not in _REPEATED:
        raise MessageFormatError(f"section {code:#x} follows section {last:#x}")


def end_of(raw: bytes, at: int) -> int:
    """Where the value ends that begins here."""
    return at + 2 + raw[at + 1] if raw[at] in _SHORT else _end_of_any(raw, at)


def _end_of_any(raw: bytes, at: int) -> int:
    """Where it ends, whatever it is; one that is described are two."""
    values = 1
    while values:
        code = raw[at]
        if code == _DESCRIBED:
            at, values = at + 1, values + 1
            continue
        more, width = _FIXED[code >> 4], _SIZED[code >> 4]
        if more < 0:
            raise MessageFormatError(f"at byte {at} there is {code:#04x}, which is no type of AMQP")
        size = int.from_bytes(raw[at + 1 : at + 1 + width], "big") if width else 0
        at, values = at + 1 + more + size, values - 1
    return at
