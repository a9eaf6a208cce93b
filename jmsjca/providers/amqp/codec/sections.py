"""Message sections (AMQP 1.0, section 3.2): located in the encoded message, and decoded on demand."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from struct import Struct
from typing import Any, NamedTuple

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.common.amqp_types import MALFORMED, UByte, UInt, read, read_uint32
from jmsjca.providers.common.codec import encoding_of, metadata_in

__all__ = [
    "ANNOTATIONS",
    "APPLICATION_PROPERTIES",
    "DATA",
    "HEADER",
    "MAX_CACHED_BYTES",
    "PROPERTIES",
    "SEQUENCE",
    "VALUE",
    "Beginning",
    "EncodedMessage",
    "Header",
    "Sections",
    "bare_message",
    "encoded_body",
    "end_of_value",
    "expect_type",
    "fields_of",
    "find_sections",
    "has_damaged_header",
    "read_header",
    "values_of",
]

Sections = dict[int, int]
"""The offset of a section's value by its descriptor code; of repeated data and sequence sections, the first."""

HEADER, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE = 0x75, 0x76, 0x77
_CODES_BY_NAME = {
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
_BODY_SECTIONS = {DATA, SEQUENCE, VALUE}
_REPEATABLE_SECTIONS = {DATA, SEQUENCE}

_DESCRIBED = 0
_USUAL_DESCRIPTOR = 0x0053  # the encoding that all clients use: smallulong
_HEAD_SECTIONS = range(HEADER, ANNOTATIONS + 1)
_unpack_section = Struct(
    ">HBB"
).unpack_from  # this mark, the section code and the code of the value; every section has at least these
_unpack_uint32 = Struct(">I").unpack_from

# By the upper half of a constructor: the number of bytes after it, and how many of them hold the size of the rest.
_FIXED_BYTES = [-1, -1, -1, -1, 0, 1, 2, 4, 8, 16, 1, 4, 1, 4, 1, 4]
_SIZE_BYTES = [0] * 10 + [1, 4, 1, 4, 1, 4]
_VAR8_CODES, _VAR32_CODES = ({code for code in range(256) if _SIZE_BYTES[code >> 4] == width} for width in (1, 4))


def find_sections(raw: bytes) -> Sections:
    """Return the offsets of all sections of a message. An empty transfer is a message without sections.

    Raises:
        MessageFormatError: The bytes are not message sections in the specified order.
        MALFORMED: The same.
    """
    found: Sections = {}
    at, size, last = 0, len(raw), _FIRST - 1
    while at < size:
        mark, code, form = _unpack_section(raw, at)
        if mark == _USUAL_DESCRIPTOR:
            at += 3
        else:
            code, at = _read_descriptor(raw, at)
            form = raw[at]
        if last < code <= _LAST:
            found[code] = at
        elif code < last or code not in _REPEATABLE_SECTIONS:
            raise _misplaced(code, last)
        if form in _VAR8_CODES:
            at += 2 + raw[at + 1]
        elif form in _VAR32_CODES:
            at += 5 + _unpack_uint32(raw, at + 1)[0]
        else:
            at = _end_of_any_value(raw, at)
        last = code
    if at != size:
        raise MessageFormatError("it is truncated")
    return found


def values_of(raw: bytes, code: int, begin: int) -> list[Any]:
    """Decode the value at an offset, and the values of the sections directly after it with the same code.

    Raises:
        MALFORMED: The bytes are not AMQP values.
    """
    value, at = read(raw, begin)
    found = [value]
    while at < len(raw):
        following, begin = _read_descriptor(raw, at)
        if following != code:
            break
        value, at = read(raw, begin)
        found.append(value)
    return found


def bare_message(raw: bytes) -> bytes:
    """Return the bare message (AMQP 1.0, section 3.2): the part after header and annotations, which brokers keep."""
    at = 0
    with suppress(MessageFormatError, *MALFORMED):  # the rest may be damaged
        while at < len(raw):
            code, begin = _read_descriptor(raw, at)
            if code not in _HEAD_SECTIONS:
                break
            at = end_of_value(raw, begin)
    return raw[at:]


def encoded_body(raw: bytes) -> bytes:
    """Return the bytes of the body sections as received; empty without a body.

    Raises:
        MALFORMED: The bytes are not a message.
    """
    found = find_sections(raw)
    begins = [begin for code, begin in found.items() if code in _BODY_SECTIONS]
    return raw[begins[0] :] if begins else b""


def fields_of(section: Any, size: int) -> list[Any]:
    """Return the fields of a list section; omitted fields are None.

    Raises:
        MessageFormatError: The value is not a list.
    """
    fields: list[Any] = expect_type(section, list)
    missing = size - len(fields)
    return fields + [None] * missing if missing >= 0 else fields[:size]


def expect_type(value: Any, kind: type) -> Any:
    """Return a value after checking its type.

    Raises:
        MessageFormatError: The value has another type.
    """
    if isinstance(value, kind):
        return value
    raise MessageFormatError(f"there is {type(value).__name__} instead of {kind.__name__}")


def _read_descriptor(raw: bytes, at: int) -> tuple[int, int]:
    """Read the descriptor of a section in any encoding; return its code and the offset of the value."""
    if raw[at] != _DESCRIBED:
        raise MessageFormatError(f"no section begins at byte {at}")
    name, at = read(raw, at + 1)
    return _CODES_BY_NAME[name] if isinstance(name, str) else int(name), at


def _misplaced(code: int, last: int) -> MessageFormatError:
    if _FIRST <= code <= _LAST:
        return MessageFormatError(f"section {code:#x} follows section {last:#x}")
    return MessageFormatError(f"{code:#x} is not the descriptor of a message section")


def end_of_value(raw: bytes, at: int) -> int:
    """Return the offset after the value that begins at `at`."""
    return at + 2 + raw[at + 1] if raw[at] in _VAR8_CODES else _end_of_any_value(raw, at)


def _end_of_any_value(raw: bytes, at: int) -> int:
    """Return the offset after a value of any type; a described value counts as two values."""
    values = 1
    while values:
        code = raw[at]
        if code == _DESCRIBED:
            at, values = at + 1, values + 1
            continue
        more, width = _FIXED_BYTES[code >> 4], _SIZE_BYTES[code >> 4]
        if more < 0:
            raise MessageFormatError(f"at byte {at} there is {code:#04x}, which is not an AMQP type")
        size = int.from_bytes(raw[at + 1 : at + 1 + width], "big") if width else 0
        at, values = at + 1 + more + size, values - 1
    return at


_USUAL_HEADER = b"\x00\x53\x70\xc0"  # the encoding that all clients use: smallulong, list8
_HEADER_TYPES = (bool, UByte, UInt, bool, UInt)


class Header(NamedTuple):
    """The fields of the header section; the first three are None if omitted, and of any type if damaged."""

    durable: Any
    priority: Any
    ttl: Any
    first_acquirer: bool  #: True if no other link has acquired the message before
    delivery_count: int  #: the number of earlier deliveries

    def jms_delivery_count(self, failures: int, *, counts: bool) -> int | None:
        """Return the number of deliveries including the current one; None if it is unknown.

        Args:
            failures: The number of failures that this client counts because the broker does not.
            counts: True if the broker counts deliveries.
        """
        return self.delivery_count + 1 + failures if counts or failures else None

    def redelivered(self, failures: int, *, counts: bool) -> bool:
        """Return True if the message was delivered before. For the arguments see `jms_delivery_count`."""
        return failures > 0 or (self.delivery_count > 0 if counts else not self.first_acquirer)


_NO_HEADER = Header(None, None, None, first_acquirer=False, delivery_count=0)


def read_header(raw: bytes) -> Header:
    """Decode the header alone, so that damage after it has no effect; a damaged header counts as a missing one."""
    try:
        if raw.startswith(_USUAL_HEADER):
            return _cached_header(raw[3 : 5 + raw[4]])
        return _header_of_fields(_header_fields(raw))
    except MALFORMED:
        return _NO_HEADER


def has_damaged_header(raw: bytes) -> bool:
    """Return True if the header cannot be decoded, or has a field of a wrong type: a broker may not count in it."""
    try:
        fields = fields_of(_header_fields(raw), len(_HEADER_TYPES))
    except MALFORMED:
        return True
    return any(
        value is not None and not isinstance(value, kind) for value, kind in zip(fields, _HEADER_TYPES, strict=False)
    )


def _header_fields(raw: bytes) -> Any:
    """Return the value of the header section, of any type; no fields without a header."""
    code, begin = _read_descriptor(raw, 0)
    return read(raw, begin)[0] if code == HEADER else []


def _parse_header(encoded: bytes) -> Header:
    return _header_of_fields(read(encoded)[0])


def _header_of_fields(value: Any) -> Header:
    durable, priority, ttl, first, count = fields_of(value, 5)
    return Header(durable, priority, ttl, first is True, int(count) if isinstance(count, UInt) else 0)


_cached_header = lru_cache(256)(_parse_header)  # most messages have one of a few


_VBIN32 = 0xB0
MAX_CACHED_BYTES = 256
"""The size of the beginning of a message that is kept for the next one."""
_EMPTY: dict[Any, Any] = {}


class Beginning:
    """The first sections of a message, mostly equal in all messages of a sender: each is decoded at its first access.

    Args:
        raw: The bytes of the message up to a later section.
        header_at: The offset of the header section; None without one.
        annotations_at: The offset of the message annotations; None without them.
    """

    def __init__(self, raw: bytes, header_at: int | None, annotations_at: int | None) -> None:
        self.raw = raw
        self._header_at = header_at
        self._annotations_at = annotations_at

    @cached_property
    def header(self) -> Header:
        """The header section."""
        return _NO_HEADER if self._header_at is None else _header_of_fields(read(self.raw, self._header_at)[0])

    @cached_property
    def annotations(self) -> Mapping[Any, Any]:
        """The message annotations."""
        found: dict[Any, Any] = _EMPTY
        if self._annotations_at is not None:
            found = expect_type(read(self.raw, self._annotations_at)[0], dict)
        return found


_cached_beginning = lru_cache(256)(Beginning)


class EncodedMessage:
    """A received message in its encoded form; sections are located and decoded on demand.

    Args:
        raw: The encoded message.
        context: How the message was received.
        arrival_time: Seconds since the epoch.
        failures: The number of failures that this client counts because the broker does not.

    Attributes:
        sections: The offsets of the sections that are needed later.
        beginning: The sections before the properties.
        fields: The fields of the properties section; omitted fields are None.
        is_damaged: True if a header is known to be damaged.
        metadata: What this library sent over STOMP beside the headers; empty if the message was not sent so.
        reads: How many headers were read one by one.
        is_typed: True if the body is an object of AMQP types.
    """

    __slots__ = (
        *("arrival_time", "beginning", "context", "failures", "fields", "is_damaged", "is_typed", "metadata", "raw"),
        *("reads", "sections"),
    )

    sections: Sections
    metadata: Mapping[str, Any]
    beginning: Beginning
    fields: list[Any]

    def __init__(self, raw: bytes, context: ReceiveContext, arrival_time: float = 0.0, failures: int = 0) -> None:
        self.raw = raw
        self.context = context
        self.arrival_time = arrival_time
        self.failures = failures
        self.is_damaged = self.is_typed = False
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        """Decode an attribute at its first access: after it, there is no call of a property for each.

        Raises:
            MALFORMED: The bytes are not message sections.
        """
        if name not in _LATER:
            raise AttributeError(name)
        value = _LATER[name](self)
        setattr(self, name, value)
        return value

    def value_of(self, code: int, otherwise: Any = None) -> Any:
        """Decode the value of a section that is not repeated; return `otherwise` without such a section."""
        begin = self.sections.get(code)
        return otherwise if begin is None else read(self.raw, begin)[0]

    def data_from(self, begin: int) -> bytes:
        """Return the content of the data section at an offset, joined with the content of all later data sections."""
        raw, form = self.raw, self.raw[begin]
        if form == _VBIN32 and begin + 5 + read_uint32(raw, begin + 1)[0] == len(raw):
            return raw[begin + 5 :]  # usually there is one, at the end
        return b"".join(filter(None, values_of(raw, DATA, begin)))  # some brokers encode no bytes as null

    def map_of_section(self, code: int) -> Mapping[Any, Any]:
        """Decode a map section; return an empty map without such a section."""
        begin = self.sections.get(code)
        found: dict[Any, Any] = _EMPTY if begin is None else expect_type(read(self.raw, begin)[0], dict)
        return found

    @property
    def annotations(self) -> Mapping[Any, Any]:
        """The message annotations."""
        return self.beginning.annotations

    @property
    def content_type(self) -> str | None:
        """The content type of the body; None without one."""
        content_type = self.fields[6]
        return str(content_type) if content_type else None

    @property
    def content_encoding(self) -> str | None:
        """The encoding of the body, such as "gzip"; None without one."""
        return encoding_of(self.fields[7])


def _beginning(encoded: EncodedMessage) -> Beginning:
    raw, sections = encoded.raw, encoded.sections
    end = next((begin for code, begin in sections.items() if code >= PROPERTIES), len(raw))
    make = _cached_beginning if end <= MAX_CACHED_BYTES else Beginning
    return make(raw[:end], sections.get(HEADER), sections.get(ANNOTATIONS))


_LATER: dict[str, Callable[[EncodedMessage], Any]] = {
    "sections": lambda encoded: find_sections(encoded.raw),
    "metadata": lambda encoded: metadata_in(encoded.map_of_section(APPLICATION_PROPERTIES)),
    "beginning": _beginning,
    "fields": lambda encoded: fields_of(encoded.value_of(PROPERTIES, []), 13),
}
