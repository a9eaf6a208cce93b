"""What opens something: to be awaited, or entered with ``async with``."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from jmsjca.aio.closing import Closing

__all__ = ["Opening"]

C = TypeVar("C", bound=Closing)


class Opening(Generic[C]):
    """Awaited it opens something, which is yours to close; ``async with`` closes it at the end of the block.

    Args:
        open_it: Opens it.
    """

    def __init__(self, open_it: Callable[[], Awaitable[C]]) -> None:
        self._open = open_it

    def __await__(self) -> Generator[Any, Any, C]:
        return self._open().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self
        try:
            return await self._opened.__aenter__()
        except BaseException:
            await self._opened.close()
            raise

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)
