"""The header of a message: what it tells of its deliveries."""

from typing import Any, NamedTuple

from proton import Data, Described, uint

from jmsjca.providers.amqp.sections import UNDECODABLE

__all__ = ["Header", "header_of"]

_HEADER = (0x70, "amqp:header:list")
_HEADER_BYTES = 64  # it is never longer: two flags and three small numbers


class Header(NamedTuple):
    """What the header of a message tells of its deliveries."""

    before: int  #: how often it was delivered before
    first: bool  #: True if nobody else can have acquired it


def header_of(raw: bytes) -> Header:
    """Decode the header alone: poison behind it does no harm."""
    data = Data()
    try:
        data.decode(raw[:_HEADER_BYTES])
        data.rewind()
        section = data.get_object() if data.next() else None
    except UNDECODABLE:
        return Header(0, False)
    if not isinstance(section, Described) or section.descriptor not in _HEADER or not isinstance(section.value, list):
        return Header(0, False)
    fields: list[Any] = [*section.value, None, None, None, None, None]
    before = fields[4]
    return Header(int(before) if isinstance(before, uint) else 0, fields[3] is True)
