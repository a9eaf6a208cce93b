"""Hold until acknowledge: units that are settled later, once all of their messages are acknowledged."""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.config.clock import Clock
from jmsjca.errors import IllegalStateError, MessageFormatError
from jmsjca.inbound.delay_queue import DelayQueue
from jmsjca.inbound.delivery_attempt import DeliveryAttempt, EndpointDeliveryContext
from jmsjca.inbound.handler import failure_of
from jmsjca.inbound.listener_log import as_listener
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import Settlement
from jmsjca.messages.message import Message, may_contain_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jmsjca.inbound.concurrency import InFlightLimit
    from jmsjca.inbound.endpoint import Endpoint

__all__ = ["HeldDeliveryAttempt", "HeldDeliveryContext", "HeldUnitSettler", "requested_timeout"]

logger = get_logger("jmsjca.inbound")

_STALE_TIMEOUTS = 1000
_LONGEST_WAIT = 86_400.0  # seconds; a queue cannot wait for the longest timeouts, which are thousands of years
_PAUSE = 0.001  # seconds to pause while delivering threads settle units themselves

_PROPERTY = "JBXAcknowledgmentTimeout"


def requested_timeout(message: Message, limit: float) -> float | None:
    """Return the acknowledgement timeout in seconds that a message requests, or None.

    Args:
        message: The received message.
        limit: Upper bound in seconds.
    """
    if not may_contain_property(message, _PROPERTY):  # the usual case
        return None
    try:
        seconds = _number(message.properties.get(_PROPERTY))
    except MessageFormatError:  # the properties of the message are damaged
        return None
    return min(seconds, limit) if seconds > 0 else None


def _readable_id(message: Message) -> str | None:
    try:
        return message.message_id
    except MessageFormatError:
        return None


def _number(value: object) -> float:
    """Return a number, also from text (over STOMP all values are text); 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        return float(value)
    except ValueError:
        return 0.0


class HeldDeliveryContext(EndpointDeliveryContext):
    """The state of a message that has to be acknowledged.

    Attributes:
        acknowledged: True once the message is acknowledged.
        message_id: The message id; None if the message has none. The end of a batch has its own id.
    """

    __slots__ = ("_held_attempt", "acknowledged", "message_id")

    def __init__(
        self, message: Message, attempt: "HeldDeliveryAttempt", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        super().__init__(message, attempt, batch_index, end_of_batch=end_of_batch)
        self._held_attempt = attempt
        self.acknowledged = False
        self.message_id = _readable_id(message)

    def acknowledge(self) -> Settlement:
        """Acknowledge the message. The last message of a unit settles the unit. Never blocks; idempotent."""
        self._held_attempt.record_acknowledgement(self)
        return self._held_attempt.settlement

    def set_rollback_only(self) -> None:
        """Mark the unit for rollback once all messages are acknowledged.

        Raises:
            IllegalStateError: The message is acknowledged, or the unit is settled.
        """
        if self.acknowledged:
            raise IllegalStateError("The message is acknowledged already; set_rollback_only() comes before that.")
        super().set_rollback_only()


class HeldDeliveryAttempt(DeliveryAttempt):
    """A unit that is settled when all of its messages, and the end of its batch, are acknowledged.

    The delivering thread continues as soon as the handler has returned. The last acknowledgement does not block
    either, because the settler settles the unit.

    Args:
        endpoint: The endpoint to deliver for.
        connection: The provider connection that the messages came from.
        consumer: The consumer that received them.
        in_flight: The limit that counts the unit.
        settler: Holds the unit until it is acknowledged, and settles it.

    Attributes:
        settling: True once a thread settles the unit, or is about to.
        timeout: Seconds after which the unit is rolled back; None means never.
    """

    def __init__(
        self,
        endpoint: "Endpoint",
        connection: spi.Connection,
        consumer: spi.Consumer,
        in_flight: "InFlightLimit",
        settler: "HeldUnitSettler",
    ) -> None:
        super().__init__(endpoint, connection, consumer, in_flight)
        self._settler = settler
        self._lock = Lock()
        self._contexts: list[HeldDeliveryContext] = []
        self._contexts_before_call = 0  # the number of contexts before the last call of the handler
        self._acknowledged = 0
        self._all_delivered = self._is_held = self.settling = False
        self.timeout = endpoint.settings.acknowledgement_timeout

    def finish(self) -> None:
        """Deliver the end of the batch, and settle if all messages are acknowledged; else hold the unit."""
        if self.endpoint.settings.batch_size:
            self.deliver_end_of_batch()
        with self._lock:
            self._all_delivered = True
            settle_now = self._try_claim()
        if settle_now:
            self.settle()
        else:
            self.endpoint.activity.end(self)
            self._settler.hold(self)
            self._is_held = True
        self._settler.settle_pending()

    def record_acknowledgement(self, context: HeldDeliveryContext) -> None:
        """Record the acknowledgement of a message. A second one for the same message has no effect."""
        with self._lock:
            if context.acknowledged:
                return
            context.acknowledged = True
            self._acknowledged += 1
            settle_now = self._all_delivered and self._try_claim()
        if settle_now:
            self._settler.schedule(self)

    def expire(self) -> bool:
        """Mark the unit for rollback instead of waiting longer. Return False if the unit is already being settled."""
        with self._lock:
            if self.settling:
                return False
            self.settling = True
        self.unit.set_rollback_only()
        return True

    def settle(self) -> None:
        """Commit or roll back, and remove the messages from the registry."""
        try:
            super().settle()
        finally:
            self.endpoint.held.unregister(self._contexts, self.unit.outcome)
            self._contexts = []

    def end(self) -> None:
        """End everything that the unit began, unless the settler still holds the unit."""
        if self.settling or not self._is_held:
            super().end()

    def _try_claim(self) -> bool:
        """Return True to the one caller that must settle. Only called once all messages have been delivered."""
        if self.settling or self._acknowledged < len(self._contexts):
            return False
        self.settling = True
        return True

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> HeldDeliveryContext:
        if end_of_batch:  # for `Activation.settle`; without held acknowledgement it has no id
            message.message_id = f"ID:end-of-batch-{uuid.uuid4().hex}"
        batch_index = index if self.endpoint.settings.batch_size else None
        context = HeldDeliveryContext(message, self, batch_index, end_of_batch=end_of_batch)
        self._contexts.append(context)
        self.endpoint.held.register(context)
        if not end_of_batch:
            self._limit_wait(requested_timeout(message, self.endpoint.limits.acknowledgement_timeout))
        return context

    def _limit_wait(self, requested: float | None) -> None:
        """Use the timeout that a message requests, instead of the listener's. In a batch the shortest applies."""
        seconds = self.endpoint.settings.acknowledgement_timeout if requested is None else requested
        if len(self._contexts) == 1 or self.timeout is None:
            self.timeout = seconds
        elif seconds is not None:
            self.timeout = min(seconds, self.timeout)

    def _run_guarded(
        self, deliveries: "Sequence[spi.Delivery]", call: "Callable[[Sequence[spi.Delivery]], None]"
    ) -> None:
        self._contexts_before_call = len(self._contexts)
        super()._run_guarded(deliveries, call)

    def _recorded(
        self, error: BaseException, deliveries: "Sequence[spi.Delivery]", began: float, *, sent: bool
    ) -> bool:
        """Acknowledge the messages of a failed call: the unit is rolled back anyway, or the handler rejected them."""
        for context in self._contexts[self._contexts_before_call :]:
            self.record_acknowledgement(context)
        return super()._recorded(error, deliveries, began, sent=sent)


class HeldUnitSettler:
    """Settles acknowledged units, and rolls back units that are not acknowledged in time, on its own thread.

    Delivering threads also settle pending units: because of the GIL, settling a unit at once is cheaper than handing it
    to another thread.

    Args:
        name: The endpoint's display name.
        clock: The source of time.
        on_failure: Called with the error of a unit that could not be settled.
    """

    def __init__(self, name: str, clock: Clock, failed: Callable[[BaseException], None]) -> None:
        self._name = name
        self._record_failure = failed
        self._lock = threading.Lock()
        self._held_units: set[HeldDeliveryAttempt] = set()
        self._timeouts: DelayQueue[HeldDeliveryAttempt] = DelayQueue(clock)  # only used by the thread
        self._acknowledged: deque[HeldDeliveryAttempt] = deque()
        self._scheduled = self._settled_elsewhere = False
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def hold(self, unit: HeldDeliveryAttempt) -> None:
        """Hold a unit until it is acknowledged."""
        with self._lock:
            self._held_units.add(unit)
        if unit.settling:  # the last acknowledgement came before this call
            self._remove(unit)
        elif unit.timeout is not None:
            self._run_on_thread(partial(self._set_timeout, unit, unit.timeout))
        elif self._closed:
            self._expire(unit)

    def schedule(self, unit: HeldDeliveryAttempt) -> None:
        """Settle an acknowledged unit on the settler's thread instead of the caller's."""
        with self._lock:
            if not self._closed:
                self._acknowledged.append(unit)
                self._wake()
                return
        self._settle(unit)  # the thread has ended or is ending

    def settle_pending(self) -> None:
        """Settle the units that are acknowledged now, on the calling thread."""
        if self._acknowledged:
            self._settled_elsewhere = True
            self._settle_all()

    def close(self) -> None:
        """Settle acknowledged units, roll back the others, and end the thread."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._tasks.put(None)
            thread.join()
        for unit in list(self._held_units):
            self._expire(unit)

    def _run_on_thread(self, task: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed:
                self._start()
                self._tasks.put(task)
                return
        task()  # the thread has ended or is ending

    def _wake(self) -> None:
        """Schedule one run of the thread. It settles all units that are acknowledged by then."""
        if not self._scheduled:
            self._scheduled = True
            self._start()
            self._tasks.put(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._scheduled = False  # reset first, so that a unit that is added later schedules another run
        self._settle_all()

    def _settle_all(self) -> None:
        while self._acknowledged:
            try:
                unit = self._acknowledged.popleft()
            except IndexError:  # another thread was faster
                return
            self._settle(unit)

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=as_listener(self._run), name=f"jmsjca {self._name} settler", daemon=True)
            thread.start()
            self._thread = thread  # set after the start, because `close` waits for the thread

    def _run(self) -> None:
        try:
            self._run_tasks()
        except BaseException as error:  # noqa: BLE001  # the dispatcher raises it: nothing would settle held units
            self._record_failure(error)

    def _run_tasks(self) -> None:
        while True:
            if self._settled_elsewhere:
                self._settled_elsewhere = False
                time.sleep(_PAUSE)
            task = self._next_task()
            if task is None:
                return
            task()

    def _next_task(self) -> Callable[[], None] | None:
        """Wait for a task. None ends the thread."""
        try:
            task = self._tasks.get(timeout=self._timeouts.time_to_next(_LONGEST_WAIT))
        except Empty:
            task = _no_op
        for unit in self._timeouts.pop_due():  # checked here, so that it also happens under constant load
            self._expire(unit)
        return task

    def _set_timeout(self, unit: HeldDeliveryAttempt, seconds: float) -> None:
        if self._closed:
            self._expire(unit)
            return
        self._timeouts.put(unit, seconds)
        if len(self._timeouts) > 2 * len(self._held_units) + _STALE_TIMEOUTS:  # drop the timeouts of settled units
            self._timeouts.retain(self._held_units.__contains__)

    def _expire(self, unit: HeldDeliveryAttempt) -> None:
        if unit.expire():
            self._settle(unit)

    def _remove(self, unit: HeldDeliveryAttempt) -> None:
        with self._lock:
            self._held_units.discard(unit)

    def _settle(self, unit: HeldDeliveryAttempt) -> None:
        self._remove(unit)
        failed = failure_of(unit.settle)
        if failed is not None:
            unit.end()
            self._record_failure(failed)  # the dispatcher raises it
        del failed  # its traceback refers to this frame: avoids a reference cycle


def _no_op() -> None:
    """Do nothing: the task that is returned when a timeout is due."""
