"""What a broker's management answers, read with care: another shape than the tested one is an error that shows it."""

from collections.abc import Mapping
from typing import Any

from jmsjca.errors import JMSError

__all__ = ["Fields", "list_of", "number_of", "strange"]

_DIGITS = 20  # of the largest number that a broker counts
_SHOWN = 300


def strange(wanted: str, found: Any) -> JMSError:
    """The error for something that is of another shape.

    Args:
        wanted: What should be there.
        found: What came.
    """
    shown = repr(found)[:_SHOWN]
    return JMSError(f"An answer of the broker's management cannot be read: {wanted} should be there, and not {shown}")


def list_of(what: str, found: Any) -> list[Any]:
    """A list.

    Raises:
        JMSError: It is none.
    """
    if not isinstance(found, list):
        raise strange(f"a list, {what},", found)
    return list(found)  # pyright: ignore[reportUnknownArgumentType]  # of anything


def number_of(what: str, found: Any) -> int:
    """A number of things, which may be written as a text.

    Raises:
        JMSError: It is none.
    """
    text = str(int(found)) if isinstance(found, int) and not isinstance(found, bool) else found
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    raise strange(f"a number, {what},", found)


class Fields:
    """A map.

    Args:
        found: What came.

    Raises:
        JMSError: It is no map; of its methods: it has no such field.
    """

    def __init__(self, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise strange("a map", found)
        self._found: Mapping[Any, Any] = found

    def get(self, name: str) -> Any:
        """A field of any shape; None if there is none."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """A text."""
        found = self.get(name)
        if not isinstance(found, str):
            raise strange(f"a text, {name},", found)
        return found

    def number(self, name: str) -> int:
        """A number of things."""
        return number_of(name, self.get(name))

    def list(self, name: str) -> list[Any]:
        """A list."""
        return list_of(name, self.get(name))
