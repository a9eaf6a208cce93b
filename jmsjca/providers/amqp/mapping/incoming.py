"""A message as it came: its sections, each decoded when it is needed first."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.encoding.reading import read
from jmsjca.providers.amqp.sections import ANNOTATIONS, HEADER, PROPERTIES, Sections, expected, fields_of, split

__all__ = ["Incoming"]

_REMEMBERED = 128  # bytes: annotations of that size are remembered, for a sender writes the same ones again and again
_NONE: dict[Any, Any] = {}


class Incoming:
    """The encoded message, and what is known of it.

    Args:
        raw: Its bytes.
        source: What it was received from.
        arrived: When, in seconds since the epoch.
        naming: How the broker names destinations.

    Attributes:
        typed: True if the body is an object of AMQP's own types.

    Raises:
        MALFORMED: The bytes are no sections.
    """

    __slots__ = ("_fields", "_header", "_raw", "arrived", "naming", "sections", "source", "typed")

    def __init__(self, raw: bytes, source: Destination | None, arrived: float, naming: Naming) -> None:
        self._raw = raw
        self.sections: Sections = split(raw)
        self.source = source
        self.arrived = arrived
        self.naming: Naming = naming
        self.typed = False
        self._header: list[Any] | None = None
        self._fields: list[Any] | None = None

    def values(self, code: int) -> list[Any]:
        """The values of the sections with that code; of most there is one or none."""
        return [read(self._raw, begin)[0] for begin, _ in self.sections.get(code, ())]

    def mapping(self, code: int) -> Mapping[Any, Any]:
        """The value of a section that is a map; an empty one if there is none."""
        [value] = self.values(code) or [_NONE]
        found: dict[Any, Any] = expected(value, dict)
        return found

    @property
    def annotations(self) -> Mapping[Any, Any]:
        """What brokers and clients say about the message."""
        if ANNOTATIONS not in self.sections:
            return _NONE
        [(begin, end)] = self.sections[ANNOTATIONS]
        encoded = self._raw[begin:end]
        return _remembered(encoded) if len(encoded) <= _REMEMBERED else _annotations(encoded)

    @property
    def header(self) -> list[Any]:
        """The section that brokers change, whole; None where nothing is."""
        if self._header is None:
            self._header = self._list(HEADER, 5)
        return self._header

    @property
    def fields(self) -> list[Any]:
        """The section of properties, whole; None where nothing is."""
        if self._fields is None:
            self._fields = self._list(PROPERTIES, 13)
        return self._fields

    @property
    def content_type(self) -> str | None:
        """What the body is said to be; None if nothing is said."""
        told = self.fields[6]
        return str(told) if told else None

    def _list(self, code: int, size: int) -> list[Any]:
        [value] = self.values(code) or [[]]
        return fields_of(value, size)


def _annotations(encoded: bytes) -> Mapping[Any, Any]:
    value, _ = read(encoded)
    found: dict[Any, Any] = expected(value, dict)
    return found


_remembered = lru_cache(256)(_annotations)
