"""Receivers that are not needed rest: as long as messages are taken fast enough, they would hinder each other."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Condition, Lock

from jmsjca.inbound.pace import Pace

__all__ = ["Turns"]

_WATCH = 15  # ticks of the pace in which it is seen that messages are not taken fast enough
_TURN = 100  # messages until another one may go on instead


class Turns:
    """The receivers of one listener. One of those that rest watches the others.

    Args:
        shared: True if what is not taken by one can be taken by another; else some messages are for one alone, and
            nobody rests long.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._pace = Pace()
        self._taken = self._waiting = 0
        self._closed = False
        self.watched = False

    @property
    def hurried(self) -> bool:
        """True if nobody rests: messages are not taken fast enough."""
        return not self._pace.calm

    def may_take_ahead(self) -> bool:
        """Tell whether somebody would soon see that who takes ahead is slow, and nobody waits for messages."""
        return self.watched and not self._waiting

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Wait for a message meanwhile."""
        with self._lock:
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def took(self, messages: int) -> None:
        """Note that this thread received messages."""
        with self._lock:
            self._pace.took(messages)
            self._taken += messages
            if self._taken >= _TURN and not self._shared:
                self._taken = 0
                self._changed.notify()

    def rest(self) -> None:
        """Wait if another thread took messages since this one did, and takes them fast enough."""
        with self._lock:
            self._pace.calm_down()
            if self._may_rest():
                self._rest()
            while self._shared and self._may_rest():
                self._rest()

    def close(self) -> None:
        """Let nobody rest any more."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def _may_rest(self) -> bool:
        return self._pace.overtaken and not self._closed

    def _rest(self) -> None:
        if self._shared and self.watched:
            self._changed.wait()
        else:
            self._watch()

    def _watch(self) -> None:
        self.watched = self._shared
        self._pace.wait(self._changed, None, something_waits=True, ticks=_WATCH)
        self.watched = False
        if self.hurried:
            self._changed.notify_all()
