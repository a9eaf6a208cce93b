"""What can be closed, as a context manager."""

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Leaving it closes it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
