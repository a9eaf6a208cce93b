"""A limit for log records that repeat: a handler that fails thousands of times a second must not flood the log."""

from threading import Lock

from jmsjca.config.settings import Clock

__all__ = ["RepeatLimit"]

_BURST = 50
_PER_SECOND = 1.0


class RepeatLimit:
    """Admits a burst of records, and then one a second; each idle second admits one more, up to the burst. Thread-safe.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._left = float(_BURST)
        self._at = clock.monotonic()
        self._suppressed = 0

    def admit(self) -> int | None:
        """Return the number of records that were suppressed since the last admitted one; None to suppress this one."""
        with self._lock:
            now = self._clock.monotonic()
            self._left, self._at = min(self._left + (now - self._at) * _PER_SECOND, _BURST), now
            if self._left < 1:
                self._suppressed += 1
                return None
            self._left -= 1
            suppressed, self._suppressed = self._suppressed, 0
            return suppressed

    def take_suppressed(self) -> int:
        """Return the number of records that were suppressed since the last admitted one."""
        with self._lock:
            suppressed, self._suppressed = self._suppressed, 0
            return suppressed
