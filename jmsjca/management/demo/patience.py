"""Gives up on a step that makes no progress."""

import time
from collections.abc import Callable

__all__ = ["Patience"]


class Patience:
    """Watches a figure that should grow.

    Args:
        seconds: How long it may stay as it is.
        clock: Where time comes from.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._figure: int | None = None
        self._since = clock()

    def is_over(self, figure: int) -> bool:
        """Look at the figure; True if it has not changed for too long."""
        if figure != self._figure:
            self._figure, self._since = figure, self._clock()
        return self._clock() - self._since > self._seconds
