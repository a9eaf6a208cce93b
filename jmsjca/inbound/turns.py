"""Receivers that are not needed rest: as long as messages are taken fast enough, they would hinder each other."""

from threading import Condition, Lock

from jmsjca.inbound.pace import Pace

__all__ = ["Turns"]

_REST = 15  # ticks of the pace that a receiver rests at most: only it may have some messages
_TURN = 100  # messages until another one may go on instead


class Turns:
    """The receivers of one listener. The one that rests longest is the next."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._pace = Pace()
        self._taken = 0
        self._closed = False

    @property
    def hurried(self) -> bool:
        """True if nobody rests: messages are not taken fast enough."""
        return not self._pace.calm

    def took(self) -> None:
        """Note that this thread received a message."""
        with self._lock:
            self._pace.took(1)
            self._taken += 1
            if self._taken % _TURN == 0:
                self._changed.notify()

    def rest(self) -> None:
        """Wait a little if another thread took messages since this one did, and takes them fast enough."""
        with self._lock:
            self._pace.calm_down()
            if self._pace.overtaken and not self._closed:
                self._pace.wait(self._changed, None, something_waits=True, ticks=_REST)
                if self.hurried:
                    self._changed.notify_all()

    def close(self) -> None:
        """Let nobody rest any more."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
