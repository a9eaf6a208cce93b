"""Where the sections of a message begin (AMQP 1.0, section 3.2), found without decoding what is in them."""

from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.encoding.reading import read

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
    "expected",
    "fields_of",
    "split",
]

Sections = dict[int, list[tuple[int, int]]]
"""By the code of a section where its value begins and ends; data and sequences may have several."""

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
_USUAL = b"\x00\x53"  # how all write it: described by a small number
_HEAD = range(HEADER, ANNOTATIONS + 1)

# How many bytes follow a code, and how many of them tell how many more: by its upper half.
_FIXED = [-1, -1, -1, -1, 0, 1, 2, 4, 8, 16, 1, 4, 1, 4, 1, 4]
_SIZED = [0] * 10 + [1, 4, 1, 4, 1, 4]


def split(raw: bytes) -> Sections:
    """Go from section to section to the last byte.

    Raises:
        MessageFormatError: The bytes are no sections, or not in order.
        MALFORMED: The same.
    """
    found: Sections = {}
    at, size, last = 0, len(raw), _FIRST - 1
    while at < size:
        if raw.startswith(_USUAL, at):
            code, at = raw[at + 2], at + 3
        else:
            code, at = _descriptor(raw, at)
        end = _end(raw, at)
        if last < code <= _LAST:
            found[code] = [(at, end)]
        else:
            _check_follows(code, last)
            found[code].append((at, end))
        last, at = code, end
    if at != size or not found:
        raise MessageFormatError("it is cut off")
    return found


def bare(raw: bytes) -> bytes:
    """What of a message stays the same on its way (AMQP 1.0, section 3.2): all behind its header and annotations."""
    at = 0
    try:
        while raw.startswith(_USUAL, at) and raw[at + 2] in _HEAD:
            at = _end(raw, at + 3)
    except (LookupError, MessageFormatError):
        return raw
    return raw[at:]


def body(raw: bytes) -> bytes:
    """The bytes of the body as they came; none if there is none.

    Raises:
        MALFORMED: The bytes are no message.
    """
    found = split(raw)
    begins = [places[0][0] for code, places in found.items() if code in _BODIES]
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


def _end(raw: bytes, at: int) -> int:
    """Where the value ends that begins here."""
    width = _SIZED[raw[at] >> 4]
    if width == 1:
        return at + 2 + raw[at + 1]
    return _end_of_any(raw, at)


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
