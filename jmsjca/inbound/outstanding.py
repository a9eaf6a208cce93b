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
        self._closed = False
        self._changed = threading.Condition()

    def reserve(self, timeout: float | None) -> bool:
        """Take one place; False if there was none after so many seconds, and once this is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._count < self._most, timeout)
            if self._closed or self._count >= self._most:
                return False
            self._count += 1
            return True

    def wait(self, timeout: float | None) -> None:
        """Wait until a place is free, or this is closed, or so many seconds are over; take none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._count < self._most, timeout)

    def add(self) -> None:
        """Take one place, also over the bound: what has come already must be somewhere."""
        with self._changed:
            self._count += 1

    def release(self) -> None:
        """Give one place back."""
        with self._changed:
            self._count -= 1
            self._changed.notify_all()  # some of those who wait take no place
        if self._released is not None:
            self._released()

    @property
    def full(self) -> bool:
        """True if no place is free."""
        return self._count >= self._most

    def close(self) -> None:
        """Give no more places: whoever waits for one returns, and who comes later too."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
