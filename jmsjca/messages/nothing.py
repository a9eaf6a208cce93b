"""The user rollback data of a message that no listener delivered."""

from collections.abc import Iterator, MutableMapping
from typing import NoReturn

from jmsjca.errors import IllegalStateError

__all__ = ["NoRollbackData"]


class NoRollbackData(MutableMapping[str, str]):
    """There is none, and nobody would find any again."""

    __slots__ = ()

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __setitem__(self, name: str, text: str) -> NoReturn:
        raise IllegalStateError(
            "No listener delivered this message, so nothing can be remembered of it; set a property, and send it."
        )

    def __delitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
