"""Waits for the progress of a distributed subscription."""

import queue
import threading

from jmsjca import Hooks
from tests.unit.inbound.listeners import PATIENCE

__all__ = ["Watch"]


class Watch(Hooks):
    """Waits for what an endpoint does."""

    def __init__(self):
        self._changed = threading.Condition()
        self._seen = []
        self.sizes = queue.Queue()

    def status_changed(self, endpoint, status):
        self._note((endpoint, status))

    def settled(self, endpoint, outcome, messages):
        self.sizes.put(messages)
        self._note((endpoint, outcome))

    def until(self, activation, expected):
        with self._changed:
            assert self._changed.wait_for(lambda: (activation.name, expected) in self._seen, PATIENCE)

    def _note(self, what):
        with self._changed:
            self._seen.append(what)
            self._changed.notify_all()
