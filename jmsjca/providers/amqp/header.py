"""The header of a message: how it is kept, and what it tells of its deliveries (AMQP 1.0, section 3.2.1)."""

from functools import lru_cache
from typing import Any, NamedTuple

from jmsjca.providers.amqp.encoding.marks import Described, UInt
from jmsjca.providers.amqp.encoding.reading import MALFORMED, read
from jmsjca.providers.amqp.sections import HEADER, fields_of

__all__ = ["Header", "header_of"]

_USUAL = b"\x00\x53\x70\xc0"  # how all write it: described by a small number, a short list
_NAME = "amqp:header:list"
_HEADER_BYTES = 64  # it is never longer: two flags and three small numbers


class Header(NamedTuple):
    """What the header of a message tells of its deliveries."""

    before: int  #: how often it was delivered before
    first: bool  #: True if nobody else can have acquired it

    def deliveries(self, failures: int, *, counts: bool) -> int | None:
        """How often the message was delivered, this time included; None if nobody knows.

        Args:
            failures: How often it failed here, which the broker does not know.
            counts: True if the broker counts deliveries.
        """
        return self.before + 1 + failures if counts or failures else None

    def redelivered(self, failures: int, *, counts: bool) -> bool:
        """True if the message was delivered before. Takes what `deliveries` takes."""
        return failures > 0 or (self.before > 0 if counts else not self.first)


_NOTHING = Header(0, first=False)


def header_of(raw: bytes) -> Header:
    """Decode the header alone: poison behind it does no harm."""
    try:
        if raw.startswith(_USUAL):
            return _remembered(raw[3 : 5 + raw[4]])
        section, _ = read(raw[:_HEADER_BYTES])
        is_header = isinstance(section, Described) and section.descriptor in {HEADER, _NAME}
        return _told(section.value) if is_header else _NOTHING
    except MALFORMED:
        return _NOTHING


@lru_cache(256)  # most messages have one of a few
def _remembered(encoded: bytes) -> Header:
    return _told(read(encoded)[0])


def _told(fields: Any) -> Header:
    first, before = fields_of(fields, 5)[3:]
    return Header(int(before) if isinstance(before, UInt) else 0, first is True)
