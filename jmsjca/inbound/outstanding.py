"""How much may be in flight: units that are not settled, and messages that wait for the end of a delay."""

import threading
from collections.abc import Callable

__all__ = ["Outstanding"]


class Outstanding:
    """Counts what is in flight; for any number of threads.

    Args:
        most: The bound.
        released: Told when a place is free again.
    """

    def __init__(self, most: int, released: Callable[[], None] | None = None) -> None:
        self._most = most
        self._released = released
        self._count = 0
        self._changed = threading.Condition()

    def reserve(self, timeout: float | None) -> bool:
        """Take one place; False if there was none after so many seconds, or when woken."""
        with self._changed:
            if self._count >= self._most:
                self._changed.wait(timeout)
            if self._count >= self._most:
                return False
            self._count += 1
            return True

    def add(self) -> None:
        """Take one place, also over the bound: what has come already must be somewhere."""
        with self._changed:
            self._count += 1

    def release(self) -> None:
        """Give one place back."""
        with self._changed:
            self._count -= 1
            self._changed.notify()
        if self._released is not None:
            self._released()

    def wake(self) -> None:
        """Let everybody who waits return."""
        with self._changed:
            self._changed.notify_all()
