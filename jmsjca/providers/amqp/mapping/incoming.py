"""A message as it came: its sections, each decoded when it is needed first."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jmsjca.providers.amqp.encoding.reading import read
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.sections import (
    ANNOTATIONS,
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

_REMEMBERED = 128  # bytes: annotations of that size are remembered, for a sender writes the same ones again and again
_NONE: dict[Any, Any] = {}


class Incoming:
    """The encoded message, and what is known of it.

    Args:
        raw: Its bytes.
        origin: What it was received from.
        arrived: When, in seconds since the epoch.
        failures: How often it failed here, which the broker does not know.

    Attributes:
        sections: Where they are.
        typed: True if the body is an object of AMQP's own types.

    Raises:
        MALFORMED: The bytes are no sections.
    """

    __slots__ = ("_fields", "_header", "arrived", "failures", "origin", "raw", "sections", "typed")

    def __init__(self, raw: bytes, origin: Origin, arrived: float = 0.0, failures: int = 0) -> None:
        self.raw = raw
        self.sections: Sections = split(raw)
        self.origin = origin
        self.arrived = arrived
        self.failures = failures
        self.typed = False
        self._header: list[Any] | None = None
        self._fields: list[Any] | None = None

    def values_of(self, code: int) -> list[Any]:
        """The values of the sections with that code; of most there is one or none."""
        begin = self.sections.get(code)
        return [] if begin is None else values(self.raw, code, begin)

    def value_of(self, code: int, otherwise: Any = None) -> Any:
        """The value of a section of which there is one, or what stands for it if there is none."""
        begin = self.sections.get(code)
        return otherwise if begin is None else read(self.raw, begin)[0]

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
        return fields_of(self.value_of(code, []), size)


def _annotations(encoded: bytes) -> Mapping[Any, Any]:
    value, _ = read(encoded)
    found: dict[Any, Any] = expected(value, dict)
    return found


_remembered = lru_cache(256)(_annotations)
