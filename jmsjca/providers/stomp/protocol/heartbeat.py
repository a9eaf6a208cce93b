"""When to show the broker that this side lives, and when to take the broker for dead."""

from jmsjca.config import Clock

__all__ = ["Heartbeat"]


class Heartbeat:
    """Keeps the time of the last traffic both ways.

    Args:
        clock: Where time comes from.
        write: After how many seconds without a write a sign of life is due; 0 for never.
        read: After how many seconds without a byte the broker is dead; 0 for never.
    """

    def __init__(self, clock: Clock, write: float = 0.0, read: float = 0.0) -> None:
        self._clock = clock
        self._write = write
        self._read = read
        self._wrote = self._heard = clock.monotonic()

    @property
    def pause(self) -> float:
        """How many seconds may pass until somebody must look again."""
        spans = [span for span in (self._write / 2, self._read / 4) if span]
        return min(spans, default=60.0)

    def wrote(self) -> None:
        """Note that something was written."""
        self._wrote = self._clock.monotonic()

    def heard(self) -> None:
        """Note that something was read."""
        self._heard = self._clock.monotonic()

    @property
    def due(self) -> bool:
        """True if it is time for a sign of life."""
        return bool(self._write) and self._clock.monotonic() - self._wrote >= self._write / 2

    @property
    def dead(self) -> bool:
        """True if the broker was silent for too long."""
        return bool(self._read) and self._clock.monotonic() - self._heard > self._read
