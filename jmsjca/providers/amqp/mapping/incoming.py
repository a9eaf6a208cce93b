"""A message as it came: its sections, each decoded when it is needed first."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jmsjca.providers.amqp.encoding.reading import read
from jmsjca.providers.amqp.encoding.scalars import four_bytes
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.sections import (
    ANNOTATIONS,
    DATA,
    HEADER,
    PROPERTIES,
    Sections,
    end_of,
    expected,
    fields_of,
    split,
    values,
)

__all__ = ["Incoming"]

_LONG_BINARY = 0xB0
_REMEMBERED = 128  # bytes
_NONE: dict[Any, Any] = {}
_NO_HEADER: Sequence[Any] = (None,) * 5


class Incoming:
    """The encoded message, and what is known of it.

    Args:
        raw: Its bytes.
        origin: What it was received from.
        arrived: When, in seconds since the epoch.
        failures: How often it failed here, which the broker does not know.

    Attributes:
        typed: True if the body is an object of AMQP's own types.
    """

    __slots__ = ("_fields", "_sections", "arrived", "failures", "origin", "raw", "typed")

    def __init__(self, raw: bytes, origin: Origin, arrived: float = 0.0, failures: int = 0) -> None:
        self.raw = raw
        self._sections: Sections | None = None
        self.origin = origin
        self.arrived = arrived
        self.failures = failures
        self.typed = False
        self._fields: list[Any] | None = None

    @property
    def sections(self) -> Sections:
        """Where they are.

        Raises:
            MALFORMED: The bytes are no sections.
        """
        if self._sections is None:
            self._sections = split(self.raw)
        return self._sections

    def value_of(self, code: int, otherwise: Any = None) -> Any:
        """The value of a section of which there is one, or what stands for it if there is none."""
        begin = self.sections.get(code)
        return otherwise if begin is None else read(self.raw, begin)[0]

    def data(self, begin: int) -> bytes:
        """The bytes of the section of data that begins there, and of all that follow."""
        raw, form = self.raw, self.raw[begin]
        if form == _LONG_BINARY and begin + 5 + four_bytes(raw, begin + 1)[0] == len(raw):
            return raw[begin + 5 :]  # of most there is one, at the end
        return b"".join(filter(None, values(raw, DATA, begin)))  # some brokers write null for no bytes

    def mapping(self, code: int) -> Mapping[Any, Any]:
        """The value of a section that is a map; an empty one if there is none."""
        found: dict[Any, Any] = expected(self.value_of(code, _NONE), dict)
        return found

    @property
    def annotations(self) -> Mapping[Any, Any]:
        """What brokers and clients say about the message."""
        begin = self.sections.get(ANNOTATIONS)
        if begin is None:
            return _NONE
        encoded = self.raw[begin : end_of(self.raw, begin)]
        return _known_annotations(encoded) if len(encoded) <= _REMEMBERED else _annotations(encoded)

    @property
    def header(self) -> Sequence[Any]:
        """The section that brokers change, whole; None where nothing is."""
        begin = self.sections.get(HEADER)
        if begin is None:
            return _NO_HEADER
        encoded = self.raw[begin : end_of(self.raw, begin)]
        return _known_header(encoded) if len(encoded) <= _REMEMBERED else _header(encoded)

    @property
    def fields(self) -> list[Any]:
        """The section of properties, whole; None where nothing is."""
        if self._fields is None:
            self._fields = fields_of(self.value_of(PROPERTIES, []), 13)
        return self._fields

    @property
    def content_type(self) -> str | None:
        """What the body is said to be; None if nothing is said."""
        told = self.fields[6]
        return str(told) if told else None


def _annotations(encoded: bytes) -> Mapping[Any, Any]:
    found: dict[Any, Any] = expected(read(encoded)[0], dict)
    return found


def _header(encoded: bytes) -> Sequence[Any]:
    return fields_of(read(encoded)[0], len(_NO_HEADER))


_known_annotations, _known_header = lru_cache(256)(_annotations), lru_cache(256)(_header)
"""What is short, a sender writes again and again."""
