"""A transaction that is declared together with the end of the one before: then each costs one answer, not two."""

import threading
from concurrent.futures import Future
from typing import Any, NamedTuple

__all__ = ["IDLE_SECONDS", "Declared", "DeclaredAhead"]

#: How long a transaction waits for its use. Brokers end those that take long; this one ends unused.
IDLE_SECONDS = 1.0


class Declared(NamedTuple):
    """A transaction that nobody uses yet.

    Args:
        reply: Gets the broker's answer.
        until: When it has waited long enough.
    """

    reply: "Future[Any]"
    until: float


class DeclaredAhead:
    """At most one transaction; who takes it out has it alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Declared | None = None
        self._ended = float("-inf")

    def is_busy(self, now: float) -> bool:
        """True if a transaction ended shortly before this one: then another one will follow."""
        before, self._ended = self._ended, now
        return now - before < IDLE_SECONDS

    def put(self, reply: "Future[Any]", now: float) -> None:
        """Keep one that is being declared."""
        with self._lock:
            self._waiting = Declared(reply, now + IDLE_SECONDS)

    def take(self) -> "Future[Any] | None":
        """Use it, if there is one."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        return waiting.reply if waiting else None

    def take_if_idle(self, now: float) -> "Future[Any] | None":
        """Take it to end it, if nobody has used it for long enough."""
        with self._lock:
            if self._waiting is None or now < self._waiting.until:
                return None
        return self.take()

    def due(self) -> float | None:
        """When it will have waited long enough; None if there is none."""
        waiting = self._waiting
        return waiting.until if waiting else None
