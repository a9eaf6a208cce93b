"""Things to do later on the thread of a connection."""

import heapq
import itertools
from collections.abc import Callable

__all__ = ["Alarms"]


class Alarms:
    """Belongs on the engine's thread."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def set(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of the monotonic clock."""
        heapq.heappush(self._heap, (when, next(self._numbers), function))

    def run(self, now: float) -> None:
        """Run what is due."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

    def next(self, otherwise: float) -> float:
        """When the first is due, if that is before another time; 0 there is never."""
        first = self._heap[0][0] if self._heap else 0.0
        return min(first or otherwise, otherwise or first)
