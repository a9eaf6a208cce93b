"""Business objects: the typed records that a connector builds from messages and gives to its collaborations.

A business object has a type (``Customer``), a verb (``Create``) and attributes. The value of an attribute is a scalar,
a child business object (single cardinality) or a list (multiple cardinality).
"""

import copy
import re
from dataclasses import dataclass, field
from typing import TypeAlias

from jmsjca.errors import InvalidAttributeError, excerpt

__all__ = ["Attribute", "BusinessObject", "Scalar", "shown"]

Scalar: TypeAlias = str | int | float | bool | None
Attribute: TypeAlias = "Scalar | BusinessObject | list[Scalar | BusinessObject]"

# Python does not convert integers of more than 4300 digits to text.
_LARGEST_SHOWN = 10**40

_EVENT_ID = "ObjectEventId"
_STEP = re.compile(r"([^.\[\]]+)(?:\[([0-9]{1,9})\])?")


@dataclass
class BusinessObject:
    """A record with a type, a verb and attributes; equal to another one with the same type, verb and attributes.

    Attributes:
        type: The name of the business object's type, ``Customer`` for instance.
        verb: The action that the event reports, ``Create`` for instance; empty if the message does not name one.
        attributes: The values by the name of the attribute.
        object_event_id: The unique id of the event; None if the object is not of an event. It is read by the path
            ``ObjectEventId`` as well, and does not count for equality.
    """

    type: str
    verb: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    object_event_id: str | None = field(default=None, compare=False)

    def get(self, path: str) -> Attribute:
        """Return the value at an attribute path.

        Args:
            path: Names of attributes, separated by dots; an index in brackets, from 0, selects an element of a list:
                ``Address[4].AddressID``.

        Raises:
            InvalidAttributeError: The path is malformed, or there is no such attribute or element.
        """
        value: Attribute = self
        for step in path.split("."):
            value = _step(value, step, path)
        return value

    def copy(self) -> "BusinessObject":
        """Return a deep copy: a change to the copy or to its children does not change this object."""
        return copy.deepcopy(self)


def shown(value: Attribute) -> str:
    """Return the beginning of a value for an error message: of a business object its type, of a list its length."""
    if isinstance(value, BusinessObject):
        return excerpt(value.type)
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:
        return f"an integer of {value.bit_length()} bits"
    return excerpt(value)


def _step(value: Attribute, step: str, path: str) -> Attribute:
    match = _STEP.fullmatch(step)
    if match is None:
        raise _invalid(path, f"{excerpt(step)!r} is not a name with an optional index, as in Address[4]")
    if not isinstance(value, BusinessObject):
        raise _invalid(path, f"{match[1]!r} is read from a value that is not a single business object")
    if match[0] == _EVENT_ID and match[1] not in value.attributes:
        return value.object_event_id
    if match[1] not in value.attributes:
        raise _invalid(path, f"business object {value.type} has no attribute {match[1]!r}")
    found = value.attributes[match[1]]
    return found if match[2] is None else _element(found, int(match[2]), path)


def _element(value: Attribute, index: int, path: str) -> Attribute:
    if not isinstance(value, list):
        raise _invalid(path, f"index {index} is applied to a value that is not a list")
    if index >= len(value):
        raise _invalid(path, f"index {index} is out of range: the list has {len(value)} elements")
    return value[index]


def _invalid(path: str, reason: str) -> InvalidAttributeError:
    return InvalidAttributeError(f"Attribute path {excerpt(path, 100)!r} cannot be resolved: {reason}.")
