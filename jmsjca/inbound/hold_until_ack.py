"""Held acknowledgement: units that are settled later, when all of their messages are acknowledged."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.config import Clock
from jmsjca.errors import IllegalStateError
from jmsjca.inbound.delay_queue import Waiting
from jmsjca.inbound.delivery_attempt import Delivered, InHand
from jmsjca.inbound.listener_context import inside
from jmsjca.messages import Message, Settlement
from jmsjca.messages.message import may_contain_property
from jmsjca.messages.settlement import forbid_waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jmsjca.inbound.concurrency import Outstanding
    from jmsjca.inbound.endpoint import Endpoint

__all__ = ["Held", "HeldInHand", "Keeper", "asked_timeout"]

logger = logging.getLogger("jmsjca.inbound")

_LATE_ENTRIES = 1000
_PAUSE = 0.001  # seconds in which it leaves to the threads that deliver what they settle anyway

_PROPERTY = "JBXAcknowledgmentTimeout"


def asked_timeout(message: Message, most: float) -> float | None:
    """Tell how long, in seconds; None if it does not ask.

    Args:
        message: What was received.
        most: More than this does not count.
    """
    if not may_contain_property(message, _PROPERTY):  # as nearly always
        return None
    seconds = _number(message.properties.get(_PROPERTY))
    return min(seconds, most) if seconds > 0 else None


def _number(value: object) -> float:
    """Read a number, also one that came as text, as all do over STOMP; 0 if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        return float(value)
    except ValueError:
        return 0.0


class Held(Delivered):
    """That of a message which somebody has to acknowledge.

    Attributes:
        acknowledged: True once somebody did.
        message_id: Which message it is.
    """

    __slots__ = ("_held", "acknowledged", "message_id")

    def __init__(
        self, message: Message, hand: "HeldInHand", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        super().__init__(message, hand, batch_index, end_of_batch=end_of_batch)
        self._held = hand
        self.acknowledged = False
        self.message_id = None if end_of_batch else message.message_id

    def acknowledge(self) -> Settlement:
        """Acknowledge; the last one of a unit settles it. Never blocks, and twice is as once."""
        self._held.acknowledged(self)
        return self._held.settlement

    def set_rollback_only(self) -> None:
        """Let the unit end in a rollback, once all is acknowledged.

        Raises:
            IllegalStateError: The message is acknowledged, or the unit settled.
        """
        if self.acknowledged:
            raise IllegalStateError("The message is acknowledged already; set_rollback_only() comes before that.")
        super().set_rollback_only()


class HeldInHand(InHand):
    """Settled when every message of it is acknowledged, and the end of its batch too.

    The delivering thread goes on as soon as the handler has returned. Whoever acknowledges last does not wait either:
    the keeper settles.

    Args:
        endpoint: Whose messages.
        link: Where they came from.
        outstanding: Where a place is reserved for it.
        keeper: Keeps the unit until it is acknowledged.

    Attributes:
        claimed: True once somebody settles it, or is about to.
        timeout: Seconds after which it is rolled back; None for never.
    """

    def __init__(
        self, endpoint: "Endpoint", link: spi.Connection, outstanding: "Outstanding", keeper: "Keeper"
    ) -> None:
        super().__init__(endpoint, link, outstanding)
        self._keeper = keeper
        self._lock = Lock()
        self._contexts: list[Held] = []
        self._before = 0  # how many there were before the handler was called last
        self._acknowledged = 0
        self._complete = self.claimed = False
        self._settlement: Settlement | None = None
        self.timeout = endpoint.terms.acknowledgement_timeout

    def finish(self) -> None:
        """Tell the handler that the batch is over, and leave the rest to whoever acknowledges."""
        self.end_batch()
        with self._lock:
            self._complete = True
            settle_now = self._claim_if_acknowledged()
        if settle_now:
            self.settle()
        else:
            self._keeper.keep(self)
        self._keeper.help()

    def acknowledged(self, context: Held) -> None:
        """Note that a message is acknowledged; it is not the last time that the unit hears of that message."""
        with self._lock:
            if context.acknowledged:
                return
            context.acknowledged = True
            self._acknowledged += 1
            settle_now = self._complete and self._claim_if_acknowledged()
        if settle_now:
            self._keeper.settle_soon(self)

    @property
    def settlement(self) -> Settlement:
        """Tells how it ended; the same for all of its messages, and whoever asks at the same time makes the same."""
        if self._settlement is None:
            settlement = self.work.settlement
            forbid_waiting(settlement, self.is_asked_by_handler)
            self._settlement = settlement
        return self._settlement

    def give_up(self) -> bool:
        """Roll back instead of waiting any longer; False if it is being settled already."""
        with self._lock:
            if self.claimed:
                return False
            self.claimed = True
        self.work.set_rollback_only()
        return True

    def settle(self) -> None:
        """Commit or roll back, and let the messages be unknown to the registry."""
        try:
            super().settle()
        finally:
            self.endpoint.held.forget(self._contexts, self.work.outcome)
            self._contexts = []

    def _claim_if_acknowledged(self) -> bool:
        """True for the one who has to settle; asked when all is handed over."""
        if self.claimed or self._acknowledged < len(self._contexts):
            return False
        self.claimed = True
        return True

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> Held:
        context = Held(message, self, self._batch_index(index), end_of_batch=end_of_batch)
        self._contexts.append(context)
        if not end_of_batch:
            asked = asked_timeout(message, self.endpoint.limits.acknowledgement_timeout)
            if asked is not None:
                self.timeout = asked if self.timeout is None else min(asked, self.timeout)
            self.endpoint.held.note(context)
        return context

    def _guarded(self, deliveries: "Sequence[spi.Delivery]", act: "Callable[[], None]") -> None:
        self._before = len(self._contexts)
        super()._guarded(deliveries, act)

    def _failed(self, error: BaseException, deliveries: "Sequence[spi.Delivery]") -> None:
        """A message whose handler failed needs no acknowledgement: the unit is rolled back."""
        super()._failed(error, deliveries)
        for context in self._contexts[self._before :]:
            self.acknowledged(context)


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
