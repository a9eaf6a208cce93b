"""A queue of items that become due later, without a thread of its own."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from jmsjca.config import Clock

__all__ = ["Waiting"]

T = TypeVar("T")


class Waiting(Generic[T]):
    """Things, each with the time when it is due. For one thread.

    Args:
        clock: Where time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()  # what is due at the same time stays in order

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, item: T, seconds: float) -> None:
        """Let something wait for so long."""
        heappush(self._heap, (self._clock.monotonic() + seconds, next(self._order), item))

    def due(self) -> Iterator[T]:
        """Take out what is due."""
        while self._heap and self._heap[0][0] <= self._clock.monotonic():
            yield heappop(self._heap)[2]

    def patience(self, most: float | None) -> float | None:
        """Tell how long to wait for something else: until the next one is due, or at most so long; None for ever."""
        if not self._heap:
            return most
        left = max(self._heap[0][0] - self._clock.monotonic(), 0.0)
        return left if most is None else min(left, most)

    def retain(self, wanted: Callable[[T], bool]) -> None:
        """Forget everything else."""
        self._heap = [entry for entry in self._heap if wanted(entry[2])]
        heapify(self._heap)

    def clear(self) -> list[T]:
        """Take everything out, due or not."""
        rest, self._heap = [item for _, _, item in sorted(self._heap, key=_place)], []
        return rest


def _place(entry: tuple[float, int, object]) -> tuple[float, int]:
    return entry[:2]
