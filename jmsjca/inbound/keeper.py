"""Keeps the units that wait for an acknowledgement, and settles them."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

from jmsjca.config import Clock
from jmsjca.inbound.held import HeldInHand
from jmsjca.inbound.inside import inside
from jmsjca.inbound.waiting import Waiting

__all__ = ["Keeper"]

logger = logging.getLogger("jmsjca.inbound")

_LATE_ENTRIES = 1000
_PAUSE = 0.001  # seconds in which it leaves to the threads that deliver what they settle anyway


class Keeper:
    """One thread that settles what is acknowledged, and rolls back what nobody acknowledged in time.

    Threads that deliver help it when they come by: two that take turns at one interpreter and one broker for each
    message cost more than one that does it all.

    Args:
        name: The endpoint's display name.
        clock: Where time comes from.
        failed: Told when a unit could not be settled.
    """

    def __init__(self, name: str, clock: Clock, failed: Callable[[Exception], None]) -> None:
        self._name = name
        self._failed = failed
        self._lock = threading.Lock()
        self._kept: set[HeldInHand] = set()
        self._timeouts: Waiting[HeldInHand] = Waiting(clock)  # for the thread alone
        self._acknowledged: deque[HeldInHand] = deque()
        self._told = self._helped = False
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, unit: HeldInHand) -> None:
        """Keep a unit until it is acknowledged."""
        with self._lock:
            self._kept.add(unit)
        if unit.claimed:  # by the last acknowledgement, just before
            self._forget(unit)
        elif unit.timeout is not None:
            self._do(partial(self._limit, unit, unit.timeout))
        elif self._closed:
            self._give_up(unit)

    def settle_soon(self, unit: HeldInHand) -> None:
        """Settle a unit that is acknowledged; not on the thread of whoever acknowledged it."""
        with self._lock:
            if not self._closed:
                self._acknowledged.append(unit)
                self._tell()
                return
        self._settle(unit)  # the thread is gone, or about to

    def help(self) -> None:
        """Settle what is acknowledged by now."""
        if self._acknowledged:
            self._helped = True
            self._settle_all()

    def close(self) -> None:
        """Settle what is acknowledged, roll back what is not, and end the thread."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._tasks.put(None)
            thread.join()
        for unit in list(self._kept):
            self._give_up(unit)

    def _do(self, task: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed:
                self._start()
                self._tasks.put(task)
                return
        task()  # the thread is gone, or about to

    def _tell(self) -> None:
        """Let the thread look at what is acknowledged, once for all that it finds then."""
        if not self._told:
            self._told = True
            self._start()
            self._tasks.put(self._look)

    def _look(self) -> None:
        self._told = False  # before it looks: what comes later is told again
        self._settle_all()

    def _settle_all(self) -> None:
        while self._acknowledged:
            try:
                unit = self._acknowledged.popleft()
            except IndexError:  # somebody else was faster
                return
            self._settle(unit)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=inside(self._run), name=f"jmsjca {self._name} settler", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            if self._helped:
                self._helped = False
                time.sleep(_PAUSE)
            task = self._next_task()
            if task is None:
                return
            task()

    def _next_task(self) -> Callable[[], None] | None:
        """Wait for something to do; None at the end."""
        try:
            task = self._tasks.get(timeout=self._timeouts.patience(None))
        except Empty:
            task = _nothing
        for unit in self._timeouts.due():  # also when there is always something to do
            self._give_up(unit)
        return task

    def _limit(self, unit: HeldInHand, seconds: float) -> None:
        if self._closed:
            self._give_up(unit)
            return
        self._timeouts.put(unit, seconds)
        if len(self._timeouts) > 2 * len(self._kept) + _LATE_ENTRIES:  # what is settled need not be remembered
            self._timeouts.retain(self._kept.__contains__)

    def _give_up(self, unit: HeldInHand) -> None:
        if unit.give_up():
            self._settle(unit)

    def _forget(self, unit: HeldInHand) -> None:
        with self._lock:
            self._kept.discard(unit)

    def _settle(self, unit: HeldInHand) -> None:
        self._forget(unit)
        try:
            unit.settle()
        except Exception as error:  # noqa: BLE001  # raised by `run`
            self._failed(error)


def _nothing() -> None:
    """What there is to do when nothing is."""
