"""How many handlers are needed at a time: quick ones get by with one after the other, slow ones need all there are."""

import math
from threading import Condition, get_ident

__all__ = ["Pace"]

_TICK = 0.001  # seconds that a message waits at most before it is seen that handlers are slow
_QUICK = 10  # messages taken in that time, at least, where handlers are quick
_SOON, _LATE = 100, 10_000  # messages until it is tried again whether they are; each time in vain twice as many


class Pace:
    """Watches how fast messages are taken. Used under one lock.

    Threads that take turns at one interpreter hinder each other, so as long as messages are taken fast enough nobody
    but the thread that took the last one goes on: it is calm.

    Attributes:
        calm: True if one thread at a time is enough.
    """

    def __init__(self) -> None:
        self.calm = True
        self._taken = self._calm_from = 0
        self._until_calm = _SOON
        self._last: int | None = None

    def began(self) -> None:
        """Note that this thread is going to take messages."""
        self._last = get_ident()

    def took(self, messages: int) -> None:
        """Note that this thread took messages."""
        self._taken += messages
        self._last = get_ident()

    @property
    def overtaken(self) -> bool:
        """True if this thread is not needed: another one took messages since, and will come back soon."""
        return self.calm and self._last not in (None, get_ident())

    def wait(self, changed: Condition, timeout: float | None, *, something_waits: bool, ticks: int = 1) -> None:
        """Wait for a change, and watch meanwhile whether messages wait for slow handlers.

        Args:
            changed: What the lock belongs to.
            timeout: Seconds to wait at most; None to wait for ever.
            something_waits: True if there are messages to be taken.
            ticks: How long it is watched, in milliseconds.
        """
        if not (self.calm and something_waits):
            changed.wait(timeout)
            return
        before = self._taken
        if changed.wait(min(ticks * _TICK, math.inf if timeout is None else timeout)):
            return
        if self._taken < before + ticks * _QUICK:
            self.hurry()
        else:
            self._until_calm = _SOON

    def hurry(self) -> None:
        """Let all take messages that can."""
        self.calm = False
        self._calm_from = self._taken + self._until_calm
        self._until_calm = min(2 * self._until_calm, _LATE)

    def calm_down(self) -> None:
        """Try again whether one thread is enough, if it is time. For who is going to watch."""
        self.calm = self._taken >= self._calm_from
