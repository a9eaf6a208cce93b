"""What handlers of the inbound cases do now and then, and what hooks hear of it."""

from __future__ import annotations

import queue
import random
from collections import Counter
from threading import Event, Lock

from jmsjca import Hooks, Outcome
from jmsjca.testing.contract.harness import PATIENCE

__all__ = ["Chance", "Failed", "Heard"]


class Failed(Exception):  # noqa: N818  # what a handler raises on purpose
    """A handler fails, as the case wants it."""


class Heard(Hooks):
    """Hooks that keep what they hear, until a case asks for it.

    Attributes:
        stopping: Set once an activation stops.
    """

    def __init__(self) -> None:
        self.stopping = Event()
        self._statuses: queue.Queue[str] = queue.Queue()
        self._outcomes: queue.Queue[tuple[Outcome, int]] = queue.Queue()

    def status_changed(self, endpoint: str, status: str) -> None:
        """Keep a status."""
        del endpoint
        self._statuses.put(status)
        if status == "Disconnecting":
            self.stopping.set()

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Keep how a unit ended."""
        del endpoint
        self._outcomes.put((outcome, messages))

    def await_status(self, expected: str) -> None:
        """Wait until an activation has this status."""
        while self._statuses.get(timeout=PATIENCE) != expected:
            pass

    def await_outcome(self, expected: Outcome, messages: int = 1) -> None:
        """Wait until units with so many messages in all have ended so; other outcomes are passed over."""
        while messages > 0:
            outcome, count = self._outcomes.get(timeout=PATIENCE)
            messages -= count if outcome is expected else 0


class Chance:
    """Says yes now and then, in every run to the same attempts, whatever the threads do.

    Args:
        share: How often, from 0 to 1.
        seed: Which attempts.
    """

    def __init__(self, share: float, seed: int = 1) -> None:
        self._share = share
        self._seed = seed
        self._lock = Lock()
        self._attempts: Counter[object] = Counter()

    def __call__(self, what: object) -> bool:
        """Say yes or no to one more attempt of something."""
        with self._lock:
            self._attempts[what] += 1
            attempt = self._attempts[what]
        return random.Random(f"{self._seed} {what} {attempt}").random() < self._share  # noqa: S311  # no secret
