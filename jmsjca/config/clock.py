"""The two clocks that the library reads, replaceable in tests."""

import time
from typing import Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "SystemClock"]


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since the epoch: for timestamps and expiry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: for waiting."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()


SYSTEM_CLOCK: Clock = SystemClock()
