"""Attributes that are set late."""

from typing import Any, TypeVar

__all__ = ["set_if_unset", "unchanged"]

T = TypeVar("T")


def set_if_unset(slot: Any, of: object, value: object) -> Any:
    """Set an attribute, but not one that somebody has set meanwhile; give what it has then.

    Args:
        slot: The attribute, as it stands in the class.
        of: The object.
        value: What it is set to.
    """
    try:
        return slot.__get__(of)
    except AttributeError:
        slot.__set__(of, value)
        return value


def unchanged(value: T) -> T:
    """What gives headers once they are decoded: a function with a name, or a message could not be pickled."""
    return value
