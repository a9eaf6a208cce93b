"""Clocks and deadlines."""

import time
from typing import Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "Deadline", "SystemClock"]


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Return the seconds since the epoch, for timestamps and expiry."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock, for timeouts."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    # Aliases instead of methods save a stack frame: listeners call them several times for each message.
    now = staticmethod(time.time)
    """Return the seconds since the epoch."""

    monotonic = staticmethod(time.monotonic)
    """Return the seconds of a monotonic clock."""


SYSTEM_CLOCK: Clock = SystemClock()


class Deadline:
    """The end of a timeout that several waits share.

    Args:
        seconds: Timeout in seconds, from now; None never ends.
        clock: Source of the time.
    """

    __slots__ = ("_clock", "_end")

    def __init__(self, seconds: float | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock.monotonic() + seconds

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, 0 once it has passed; None waits forever."""
        return None if self._end is None else max(self._end - self._clock.monotonic(), 0.0)
