"""A queue of items that become due later. It does not use a thread."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from jmsjca.config.clock import Clock

__all__ = ["DelayQueue"]

T = TypeVar("T")


class DelayQueue(Generic[T]):
    """Items with the time at which each is due. Not thread-safe.

    Args:
        clock: The source of time.

    Attributes:
        entries: The items with their due times, as a heap. It is tested for emptiness for each message.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.entries: list[tuple[float, int, T]] = []
        self._order = count()  # keeps the order of items with the same due time

    def __len__(self) -> int:
        return len(self.entries)

    def put(self, item: T, seconds: float) -> None:
        """Add an item that becomes due in ``seconds``."""
        heappush(self.entries, (self._clock.monotonic() + seconds, next(self._order), item))

    def pop_due(self) -> Iterator[T]:
        """Remove and yield the items that are due."""
        while self.entries and self.entries[0][0] <= self._clock.monotonic():
            yield heappop(self.entries)[2]

    def time_to_next(self, limit: float | None) -> float | None:
        """Return the seconds until the next item is due; or ``limit`` if that is less, or the queue is empty.

        Args:
            limit: Upper bound in seconds; None for no bound, so that the result is None for an empty queue.
        """
        if not self.entries:
            return limit
        left = max(self.entries[0][0] - self._clock.monotonic(), 0.0)
        return left if limit is None else min(left, limit)

    def retain(self, wanted: Callable[[T], bool]) -> None:
        """Remove all items for which ``wanted`` returns False."""
        self.entries = [entry for entry in self.entries if wanted(entry[2])]
        heapify(self.entries)

    def drain(self) -> list[T]:
        """Remove and return all items, due or not, in the order of their due times."""
        rest, self.entries = [item for _, _, item in sorted(self.entries, key=_sort_key)], []
        return rest


def _sort_key(entry: tuple[float, int, object]) -> tuple[float, int]:
    return entry[:2]
