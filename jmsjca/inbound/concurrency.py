"""Limits of listeners: units in flight, messages a second, concurrent deliveries, and receivers that take turns."""

import math
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Condition, Lock, get_ident

from jmsjca.arguments import MAX_INT
from jmsjca.config.clock import SYSTEM_CLOCK, Clock

__all__ = ["AdaptiveConcurrency", "InFlightLimit", "LeaderFollowers", "RateLimit"]

_LOOK_AGAIN = 0.1

_SUPERVISED_TICKS = 15  # ticks for which a waiting receiver observes the others
_MESSAGES_PER_TURN = 100  # messages after which the next receiver gets its turn


class InFlightLimit:
    """Counts the units in flight up to a limit. Thread-safe.

    Args:
        limit: The maximum number of units.
        on_release: Called after each release of a slot; None for no call.
        clock: The source of time.

    Attributes:
        full_since: The time when the last slot was acquired, of the monotonic clock; None while a slot is free.
    """

    def __init__(self, limit: int, on_release: Callable[[], None] | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.full_since: float | None = None
        self._limit = limit
        self._on_release = on_release
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()
        # Each free slot wakes one thread, because waking all makes them contend. Threads that have a message for the
        # slot are woken first.
        self._acquirers = threading.Condition(self._lock)
        self._observers = threading.Condition(self._lock)
        self._waiting = 0  # threads in `acquire`

    def acquire(self, timeout: float | None) -> bool:
        """Acquire a slot.

        Args:
            timeout: Maximum time to wait in seconds; None waits until a slot is free or the limit is closed.

        Returns:
            False if no slot became free in time, or the limit is closed.
        """
        with self._lock:
            if not self._is_free() and timeout != 0:
                self._wait_for_slot(timeout)
            if self._closed or self.full:
                return False
            self._add()
            return True

    def wait_until_free(self, timeout: float | None) -> None:
        """Wait until a slot is free, the limit is closed, or the timeout (at most 0.1 s) expires. Acquires no slot.

        The wait is bounded: a thread that was notified of a free slot may find no message for it, while another thread
        that was not notified has a message.
        """
        with self._lock:
            self._observers.wait_for(self._is_free, _LOOK_AGAIN if timeout is None else min(timeout, _LOOK_AGAIN))

    def acquire_over_limit(self) -> None:
        """Acquire a slot, even above the limit: a message that was already received must be counted."""
        with self._lock:
            self._add()

    def release(self) -> None:
        """Release a slot."""
        with self._lock:
            self._count -= 1
            if self._count < self._limit:
                self.full_since = None
            (self._acquirers if self._waiting else self._observers).notify()
        if self._on_release is not None:
            self._on_release()

    @property
    def count(self) -> int:
        """The number of slots in use."""
        return self._count

    @property
    def full(self) -> bool:
        """True if no slot is free."""
        return self._count >= self._limit

    def close(self) -> None:
        """Refuse all further slots and wake all waiting threads."""
        with self._lock:
            self._closed = True
            self._acquirers.notify_all()
            self._observers.notify_all()

    def _add(self) -> None:
        self._count += 1
        if self._count == self._limit:
            self.full_since = self._clock.monotonic()

    def _is_free(self) -> bool:
        return self._closed or self._count < self._limit

    def _wait_for_slot(self, timeout: float | None) -> None:
        self._waiting += 1
        try:
            self._acquirers.wait_for(self._is_free, timeout)
        finally:
            self._waiting -= 1
            if self._is_free():  # there are more free slots than threads that wait in `acquire`
                self._observers.notify(self._limit - self._count)


_TICK = 0.001  # maximum seconds that a ready message waits until slow handlers are noticed
_FAST = 10  # messages that fast handlers take per tick, at least
_RETRY_AFTER, _MAX_RETRY_AFTER = (
    100,
    10_000,
)  # messages until a single thread is tried again; doubled after each failure


class RateLimit:
    """Spreads the messages of a listener over time. Thread-safe.

    A receiver waits for `pause`, receives at most `burst` messages, and records them: later messages wait for them.

    Args:
        rate: Messages a second, on average; None for no limit.
        clock: The source of time.

    Attributes:
        burst: The maximum number of messages of one receive: those of a tenth of a second.
    """

    def __init__(self, rate: float | None, clock: Clock) -> None:
        self._interval = 0.0 if rate is None else 1 / rate
        self._clock = clock
        self._lock = Lock()
        self._next = -math.inf  # the time of the monotonic clock from which on the next message may be received
        self.burst = MAX_INT if rate is None else max(int(rate / 10), 1)

    def pause(self) -> float:
        """Return the seconds until the next message may be received."""
        return max(self._next - self._clock.monotonic(), 0.0) if self._interval else 0.0

    def record(self, messages: int) -> None:
        """Record messages that were received."""
        if self._interval and messages:
            with self._lock:
                self._next = max(self._next, self._clock.monotonic()) + messages * self._interval


class AdaptiveConcurrency:
    """Decides from the rate of consumption whether one thread is enough. Not thread-safe: callers hold one lock.

    Because of the GIL, extra threads slow down short handlers. While messages are consumed fast enough, only the thread
    that took the last message continues: `single_threaded` is True.

    Attributes:
        single_threaded: True if one thread at a time is enough.
    """

    def __init__(self) -> None:
        self.single_threaded = True
        self._taken = self._single_from = 0
        self._retry_after = _RETRY_AFTER
        self._last: int | None = None

    def record_start(self) -> None:
        """Record that the calling thread begins to take messages."""
        self._last = get_ident()

    def record_taken(self, messages: int) -> None:
        """Record that the calling thread took messages."""
        self._taken += messages
        self._last = get_ident()

    @property
    def is_superseded(self) -> bool:
        """True if this thread is not needed: another thread has taken messages since then, and will return soon."""
        return self.single_threaded and self._last not in (None, get_ident())

    def wait(self, changed: Condition, timeout: float | None, *, something_waits: bool, ticks: int = 1) -> None:
        """Wait for a change. Scale up if, during the wait, messages are kept waiting by slow handlers.

        Args:
            changed: The condition that belongs to the callers' lock.
            timeout: Maximum time to wait in seconds; None waits forever.
            something_waits: True if messages are ready to be taken.
            ticks: Length of the observation in milliseconds.
        """
        if not (self.single_threaded and something_waits):
            changed.wait(timeout)
            return
        before = self._taken
        if changed.wait(min(ticks * _TICK, math.inf if timeout is None else timeout)):
            return
        if self._taken < before + ticks * _FAST:
            self.scale_up()
        else:
            self._retry_after = _RETRY_AFTER

    def scale_up(self) -> None:
        """Allow all threads to take messages."""
        self.single_threaded = False
        self._single_from = self._taken + self._retry_after
        self._retry_after = min(2 * self._retry_after, _MAX_RETRY_AFTER)

    def try_scale_down(self) -> None:
        """Return to one thread if it is time for the next try. The caller must then observe the rate."""
        self.single_threaded = self._taken >= self._single_from


class LeaderFollowers:
    """Makes the receivers of one listener take turns (leader/followers). One waiting receiver supervises the others.

    Args:
        shared: True if any receiver can take a message that another one leaves. If False, some messages can only be
            taken by one receiver, so no receiver waits for long.

    Attributes:
        supervised: True while a waiting receiver observes the rate of the others.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._concurrency = AdaptiveConcurrency()
        self._taken = self._waiting = 0
        self._closed = False
        self.supervised = False

    @property
    def scaled_up(self) -> bool:
        """True if all receivers are needed: messages are not consumed fast enough."""
        return not self._concurrency.single_threaded

    def may_prefetch(self) -> bool:
        """Return True if no receiver lacks a message, and a supervisor would notice a slow prefetching receiver."""
        return self.supervised and not self._waiting

    @contextmanager
    def waiting_for_message(self) -> Generator[None]:
        """Count this receiver as waiting for a message during the block."""
        with self._lock:
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def record_taken(self, messages: int) -> None:
        """Record that this thread received messages."""
        with self._lock:
            self._concurrency.record_taken(messages)
            self._taken += messages
            if self._taken >= _MESSAGES_PER_TURN and not self._shared:
                self._taken = 0
                self._changed.notify()

    def wait_for_turn(self) -> None:
        """Wait if another thread took messages since this thread did, and takes them fast enough."""
        with self._lock:
            self._concurrency.try_scale_down()
            if self._may_wait():
                self._wait()
            while self._shared and self._may_wait():
                self._wait()

    def close(self) -> None:
        """Wake all waiting receivers. From now on receivers do not wait."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def _may_wait(self) -> bool:
        return self._concurrency.is_superseded and not self._closed

    def _wait(self) -> None:
        if self._shared and self.supervised:
            self._changed.wait()
        else:
            self._supervise()

    def _supervise(self) -> None:
        self.supervised = self._shared
        self._concurrency.wait(self._changed, None, something_waits=True, ticks=_SUPERVISED_TICKS)
        self.supervised = False
        if self.scaled_up:
            self._changed.notify_all()
