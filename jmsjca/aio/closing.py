"""What can be closed, as an asynchronous context manager."""

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Leaving it closes it."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what it holds, also if the await is cancelled. Closing twice does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
