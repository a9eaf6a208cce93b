"""Attributes that are set late."""

from typing import Any

__all__ = ["set_if_unset"]


def set_if_unset(slot: Any, of: object, value: object) -> None:
    """Set an attribute, but not one that somebody has set meanwhile.

    Args:
        slot: The attribute, as it stands in the class.
        of: The object.
        value: What it is set to.
    """
    try:
        slot.__get__(of)
    except AttributeError:
        slot.__set__(of, value)
