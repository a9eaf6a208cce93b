"""Attributes that are set late."""

from typing import Any

__all__ = ["set_if_unset"]


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
