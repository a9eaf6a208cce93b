"""Properties: most are application properties of AMQP, some are fields of the message itself."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import GROUP_ID, Int, Properties, PropertyValue
from jmsjca.providers.amqp.encoding.marks import UInt
from jmsjca.providers.amqp.encoding.writing import NULL, map_of, text, write
from jmsjca.providers.amqp.mapping.values import as_property

__all__ = ["TYPED", "application_properties", "group_fields", "own_time_to_live", "received_properties"]

GROUP_SEQUENCE = "JMSXGroupSeq"
REPLY_GROUP = "JMS_AMQP_REPLY_TO_GROUP_ID"
USER = "JMSXUserID"
TIME_TO_LIVE = "JMS_AMQP_TTL"
TYPED = "JMS_AMQP_TYPED_ENCODING"

_ELSEWHERE = frozenset({GROUP_ID, GROUP_SEQUENCE, REPLY_GROUP, TIME_TO_LIVE, TYPED, USER, "JMSXDeliveryCount"})
_APPLICATION_PROPERTIES = b"\x00\x53\x74"
_UNSIGNED, _SIGN = 1 << 32, 1 << 31
_REMEMBERED = 128  # characters: strangers name the properties of messages that are passed on


def application_properties(properties: Properties) -> bytes:
    """Write what no field holds as a section; nothing if there is nothing."""
    parts: list[bytes] = []
    for name, value in properties.items():
        if name not in _ELSEWHERE:
            parts += (_known_name(name) if len(name) <= _REMEMBERED else text(name), write(value))
    return _APPLICATION_PROPERTIES + map_of(parts) if parts else b""


_known_name = lru_cache(1024)(text)  # programs use few names, again and again


def group_fields(properties: Properties) -> list[bytes]:
    """Write what is told of groups: the id, the place in it, and the group that replies should belong to."""
    if _ELSEWHERE.isdisjoint(properties):
        return []
    sequence = properties.get(GROUP_SEQUENCE)
    number = NULL if sequence is None else write(UInt(_integer(GROUP_SEQUENCE, sequence) % _UNSIGNED))
    return [_text(properties.get(GROUP_ID)), number, _text(properties.get(REPLY_GROUP))]


def own_time_to_live(properties: Properties) -> int | None:
    """The milliseconds that a property sets in place of the producer's; None if none does.

    Raises:
        MessageFormatError: The header has no room for it.
    """
    if TIME_TO_LIVE not in properties or properties[TIME_TO_LIVE] is None:
        return None
    milliseconds = _integer(TIME_TO_LIVE, properties[TIME_TO_LIVE])
    if not 0 <= milliseconds < _UNSIGNED:
        raise MessageFormatError(f"{TIME_TO_LIVE} is {milliseconds}, not between 0 and 2 to the power of 32")
    return milliseconds


def received_properties(values: Mapping[Any, Any], fields: list[Any], *, typed: bool) -> Properties:
    """The properties of a received message.

    Args:
        values: The application properties.
        fields: Those of the section of properties.
        typed: True if the body is an object of AMQP's own types.
    """
    found: dict[str, PropertyValue] = {str(name): as_property(value) for name, value in values.items()}
    user, group, sequence, reply_group = fields[1], *fields[10:13]
    if user is not None:
        found[USER] = user.decode(errors="replace") if isinstance(user, bytes) else str(user)
    if group is not None:
        found[GROUP_ID] = str(group)
    if sequence is not None:
        found[GROUP_SEQUENCE] = Int((sequence + _SIGN) % _UNSIGNED - _SIGN)
    if reply_group is not None:
        found[REPLY_GROUP] = str(reply_group)
    if typed:
        found[TYPED] = True
    return Properties.received(found)


def _integer(name: str, value: PropertyValue) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise MessageFormatError(f"{name} is a whole number, not {type(value).__name__}")


def _text(value: PropertyValue) -> bytes:
    return NULL if value is None else text(str(value))
