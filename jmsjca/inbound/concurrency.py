"""How much may be in flight: units that are not settled, and messages that wait for the end of a delay."""

import threading
from collections.abc import Callable

__all__ = ["Outstanding"]

_LOOK_AGAIN = 0.1


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
        self._lock = threading.Lock()
        # One is told of each place that becomes free: all of them would hinder each other. First who has a message.
        self._for_place = threading.Condition(self._lock)
        self._for_later = threading.Condition(self._lock)
        self._waiting = 0  # for a place

    def reserve(self, timeout: float | None) -> bool:
        """Take one place; False if there was none after so many seconds, and once this is closed."""
        with self._lock:
            if not self._is_free() and timeout != 0:
                self._wait_for_place(timeout)
            if self._closed or self.full:
                return False
            self._count += 1
            return True

    def wait(self, timeout: float | None) -> None:
        """Wait until a place is free, or this is closed, or so many seconds are over, or some are; take none.

        Who was told of a free place may find no message for it, while one who was not told has some.
        """
        with self._lock:
            self._for_later.wait_for(self._is_free, _LOOK_AGAIN if timeout is None else min(timeout, _LOOK_AGAIN))

    def add(self) -> None:
        """Take one place, also over the bound: what has come already must be somewhere."""
        with self._lock:
            self._count += 1

    def release(self) -> None:
        """Give one place back."""
        with self._lock:
            self._count -= 1
            (self._for_place if self._waiting else self._for_later).notify()
        if self._released is not None:
            self._released()

    @property
    def full(self) -> bool:
        """True if no place is free."""
        return self._count >= self._most

    def close(self) -> None:
        """Give no more places: whoever waits for one returns, and who comes later too."""
        with self._lock:
            self._closed = True
            self._for_place.notify_all()
            self._for_later.notify_all()

    def _is_free(self) -> bool:
        return self._closed or self._count < self._most

    def _wait_for_place(self, timeout: float | None) -> None:
        self._waiting += 1
        try:
            self._for_place.wait_for(self._is_free, timeout)
        finally:
            self._waiting -= 1
            if self._is_free():  # more were told than waited for a place
                self._for_later.notify(self._most - self._count)
