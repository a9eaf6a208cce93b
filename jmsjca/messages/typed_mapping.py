"""A mapping from names to typed values that can be made read-only: properties, and the body of a map message."""

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping
from itertools import islice
from typing import ClassVar, Generic, Self, TypeVar, cast

from jmsjca.errors import MessageNotWriteableError
from jmsjca.messages.shown import shown

__all__ = ["TypedMapping"]

V = TypeVar("V")
_NAMES_SHOWN = 10
_LONGEST = 1000


class TypedMapping(MutableMapping[str, V], Generic[V]):
    """Names and typed values; subclasses say which names and values there may be.

    Args:
        values: Initial values.

    Attributes:
        read_only: True on a received message, until it is cleared.

    Raises:
        MessageFormatError: On setting: the name or the value is not allowed.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ("_values", "read_only")

    _refusal: ClassVar[str]

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, V] = {}
        self.read_only = False
        if values:
            self._fill(values)

    @classmethod
    def received(cls, values: dict[str, V]) -> Self:
        """Wrap what a provider has decoded and typed already; read-only."""
        mapping = cls()
        mapping._values = values
        mapping.read_only = True
        return mapping

    def __getitem__(self, name: str) -> V:
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._check_writeable()
        self._values[name] = self._checked(name, value)

    def __delitem__(self, name: str) -> None:
        self._check_writeable()
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._values.keys()

    def items(self) -> ItemsView[str, V]:
        """The names with their values."""
        return self._values.items()  # the inherited one asks for each value

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name in islice(self._values, _NAMES_SHOWN))
        return f"<{type(self).__name__} of {len(self)}: {names}"[:_LONGEST] + ">"

    def _fill(self, values: Mapping[str, object]) -> None:
        self.update(cast("Mapping[str, V]", values))

    @abstractmethod
    def _checked(self, name: object, value: object) -> V:
        """The value with its type, if both may be here."""

    def _check_writeable(self) -> None:
        if self.read_only:
            raise MessageNotWriteableError(self._refusal)
