"""A queue of items that become due later. It needs no thread of its own."""

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
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()  # keeps the order of items with the same due time

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, item: T, seconds: float) -> None:
        """Add an item that becomes due in ``seconds``."""
        heappush(self._heap, (self._clock.monotonic() + seconds, next(self._order), item))

    def pop_due(self) -> Iterator[T]:
        """Remove and yield the items that are due."""
        while self._heap and self._heap[0][0] <= self._clock.monotonic():
            yield heappop(self._heap)[2]

    def time_to_next(self, limit: float | None) -> float | None:
        """Return the seconds until the next item is due, or ``limit`` if that is less or the queue is empty.

        Args:
            limit: Upper bound in seconds; None for no bound, so that the result is None for an empty queue.
        """
        if not self._heap:
            return limit
        left = max(self._heap[0][0] - self._clock.monotonic(), 0.0)
        return left if limit is None else min(left, limit)

    def retain(self, wanted: Callable[[T], bool]) -> None:
        """Remove all items for which ``wanted`` returns False."""
        self._heap = [entry for entry in self._heap if wanted(entry[2])]
        heapify(self._heap)

    def drain(self) -> list[T]:
        """Remove and return all items, due or not, in the order of their due times."""
        rest, self._heap = [item for _, _, item in sorted(self._heap, key=_sort_key)], []
        return rest


def _sort_key(entry: tuple[float, int, object]) -> tuple[float, int]:
    return entry[:2]
