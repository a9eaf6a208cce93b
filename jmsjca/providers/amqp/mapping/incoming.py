"""A message as it came: its sections, each decoded when it is needed first."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

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

T = TypeVar("T")

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
        sections: Where they are.
        typed: True if the body is an object of AMQP's own types.

    Raises:
        MALFORMED: The bytes are no sections.
    """

    __slots__ = ("_fields", "arrived", "failures", "origin", "raw", "sections", "typed")

    def __init__(self, raw: bytes, origin: Origin, arrived: float = 0.0, failures: int = 0) -> None:
        self.raw = raw
        self.sections: Sections = split(raw)
        self.origin = origin
        self.arrived = arrived
        self.failures = failures
        self.typed = False
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
        return _NONE if begin is None else _annotations(self.raw[begin : end_of(self.raw, begin)])

    @property
    def header(self) -> Sequence[Any]:
        """The section that brokers change, whole; None where nothing is."""
        begin = self.sections.get(HEADER)
        return _NO_HEADER if begin is None else _header(self.raw[begin : end_of(self.raw, begin)])

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


def _remembering(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """What is short, a sender writes again and again."""
    known = lru_cache(256)(decode)
    return lambda encoded: known(encoded) if len(encoded) <= _REMEMBERED else decode(encoded)


@_remembering
def _annotations(encoded: bytes) -> Mapping[Any, Any]:
    found: dict[Any, Any] = expected(read(encoded)[0], dict)
    return found


@_remembering
def _header(encoded: bytes) -> Sequence[Any]:
    return fields_of(read(encoded)[0], len(_NO_HEADER))
