"""The header of a message: how it is kept, and what it tells of its deliveries (AMQP 1.0, section 3.2.1)."""

from typing import NamedTuple

from jmsjca.providers.amqp.encoding.marks import Described, UInt
from jmsjca.providers.amqp.encoding.reading import MALFORMED, read
from jmsjca.providers.amqp.sections import HEADER, fields_of

__all__ = ["Header", "header_of"]

_DESCRIPTORS = (HEADER, "amqp:header:list")
_HEADER_BYTES = 64  # it is never longer: two flags and three small numbers


class Header(NamedTuple):
    """What the header of a message tells of its deliveries."""

    before: int  #: how often it was delivered before
    first: bool  #: True if nobody else can have acquired it


_NOTHING = Header(0, first=False)


def header_of(raw: bytes) -> Header:
    """Decode the header alone: poison behind it does no harm."""
    try:
        section, _ = read(raw[:_HEADER_BYTES])
        if not isinstance(section, Described) or section.descriptor not in _DESCRIPTORS:
            return _NOTHING
        first, before = fields_of(section.value, 5)[3:]
    except MALFORMED:
        return _NOTHING
    return Header(int(before) if isinstance(before, UInt) else 0, first is True)
