"""Limits of concurrency: units in flight, handlers needed at a time, and receivers that wait for their turn."""

import math
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Condition, Lock, get_ident

__all__ = ["Outstanding", "Pace", "Turns"]

_LOOK_AGAIN = 0.1

_WATCH = 15  # ticks of the pace in which it is seen that messages are not taken fast enough
_TURN = 100  # messages until another one may go on instead


class Outstanding:
    """Counts what is in flight; for any number of threads.

    Args:
        most: The bound.
        released: Told when a place is free again.
    """

    def __init__(self, most: int, released: Callable[[], None] | None = None) -> None:
        self._most = most
        self._released = released
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()
        # One is told of each place that becomes free: all of them would hinder each other. First who has a message.
        self._for_place = threading.Condition(self._lock)
        self._for_later = threading.Condition(self._lock)
        self._waiting = 0  # for a place

    def reserve(self, timeout: float | None) -> bool:
        """Take one place; False if there was none after so many seconds, and once this is closed."""
        with self._lock:
            if not self._is_free() and timeout != 0:
                self._wait_for_place(timeout)
            if self._closed or self.full:
                return False
            self._count += 1
            return True

    def wait(self, timeout: float | None) -> None:
        """Wait until a place is free, or this is closed, or so many seconds are over, or some are; take none.

        Who was told of a free place may find no message for it, while one who was not told has some.
        """
        with self._lock:
            self._for_later.wait_for(self._is_free, _LOOK_AGAIN if timeout is None else min(timeout, _LOOK_AGAIN))

    def add(self) -> None:
        """Take one place, also over the bound: what has come already must be somewhere."""
        with self._lock:
            self._count += 1

    def release(self) -> None:
        """Give one place back."""
        with self._lock:
            self._count -= 1
            (self._for_place if self._waiting else self._for_later).notify()
        if self._released is not None:
            self._released()

    @property
    def full(self) -> bool:
        """True if no place is free."""
        return self._count >= self._most

    def close(self) -> None:
        """Give no more places: whoever waits for one returns, and who comes later too."""
        with self._lock:
            self._closed = True
            self._for_place.notify_all()
            self._for_later.notify_all()

    def _is_free(self) -> bool:
        return self._closed or self._count < self._most

    def _wait_for_place(self, timeout: float | None) -> None:
        self._waiting += 1
        try:
            self._for_place.wait_for(self._is_free, timeout)
        finally:
            self._waiting -= 1
            if self._is_free():  # more were told than waited for a place
                self._for_later.notify(self._most - self._count)


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
