"""The current activity of an endpoint: handlers and settlements in progress, with the time since when they run."""

from dataclasses import dataclass
from typing import Literal

from jmsjca.config.settings import Clock

__all__ = ["Activity", "Stall", "Step"]

Step = Literal["handler", "settlement", "delay", "handler of a lost connection"]
"""What a unit is waiting for."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A reason why messages do not flow.

    Attributes:
        reason: The reason, as text.
        since: The time at which it began, of the monotonic clock.
    """

    reason: str
    since: float


class Activity:
    """Records what the units of an endpoint are doing. Thread-safe: each unit writes its own entry.

    It is written for each message, so it takes no lock: a dictionary's single operations are atomic.

    Args:
        clock: The source of time.

    Attributes:
        last_progress: The time of the monotonic clock at which a handler returned, or a unit was settled.
    """

    __slots__ = ("_clock", "_steps", "last_progress")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: dict[object, tuple[Step, float]] = {}
        self.last_progress = clock.monotonic()

    def begin(self, unit: object, step: Step) -> float:
        """Record that a unit begins a step, and return the time. It replaces an earlier step of the unit."""
        now = self._clock.monotonic()
        self._steps[unit] = (step, now)
        return now

    def end(self, unit: object) -> None:
        """Record that the unit's step has ended."""
        self._steps.pop(unit, None)
        self.last_progress = self._clock.monotonic()

    def now(self) -> float:
        """Return the time of the monotonic clock."""
        return self._clock.monotonic()

    @property
    def units(self) -> int:
        """The number of units with a step in progress."""
        return len(self._steps)

    def steps(self) -> list[tuple[Step, float]]:
        """Return the steps in progress, with the times at which they began."""
        return list(self._steps.values())
