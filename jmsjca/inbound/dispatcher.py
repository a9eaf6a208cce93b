"""Dispatchers: their base, mode serial (one message at a time), and mode cc (a pool of handler threads)."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from queue import SimpleQueue
from typing import ParamSpec, Protocol, TypeVar, cast

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.inbound.concurrency import AdaptiveConcurrency, InFlightLimit
from jmsjca.inbound.delivery_attempt import DeliveryAttempt
from jmsjca.inbound.endpoint import Endpoint, Stall
from jmsjca.inbound.handler import failure_of, fulfil
from jmsjca.inbound.hold_until_ack import HeldDeliveryAttempt, HeldUnitSettler
from jmsjca.inbound.listener_log import as_listener
from jmsjca.inbound.redelivery_processor import IsolatingReceiver, RedeliveryProcessor
from jmsjca.messages.delivery import Outcome

__all__ = [
    "CCDispatcher",
    "ConcurrentDispatcher",
    "DaemonThreadPool",
    "Dispatcher",
    "SerialDispatcher",
    "batch_of",
    "may_prefetch",
]

_ABANDONED_HANDLER_INTERVAL = 0.2  # seconds between checks for the handler of a lost connection
_LOOK_AGAIN = 1.0  # seconds until the next attempt to start a thread that the system refused
_PREFETCH_PER_HANDLER = 2  # messages per handler: the one that it processes, and the next one


class ConcurrentDispatcher(ABC):
    """Base of the modes in which several units are open at the same time, and are settled in any order.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.

    Attributes:
        endpoint: The endpoint, as given.
        connection: The provider connection, as given.
        in_flight: Limits the units in flight.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self.in_flight = InFlightLimit(endpoint.settings.max_outstanding, self._on_slot_free, endpoint.clock)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # `with self._lock` costs less than `with self._changed`
        self._stopping = self._abandoned = False
        self._error: BaseException | None = None
        self._attempts: set[DeliveryAttempt] = set()  # with active handlers
        self._settler = (
            HeldUnitSettler(endpoint.name, endpoint.clock, self.stop) if endpoint.settings.hold_until_ack else None
        )

    def run(self) -> None:
        """Deliver until stopped; then wait for active handlers and settle held units.

        Raises:
            JMSError: The connection broke, or something else failed. Active handlers are not waited for then.
            Exception: A defect in the provider or in jmsjca. Active handlers are not waited for then.
        """
        try:
            failed = failure_of(self._run)
            if failed is not None:
                self.stop(failed)
            del failed  # its traceback refers to this frame: avoids a reference cycle
        finally:
            self._abandon_attempts()
            self._close()
            if self._settler is not None:
                self._settler.close()
        if self._error is not None:
            raise self._error

    def stop(self, error: BaseException | None = None) -> None:
        """Stop receiving. With an error `run` ends at once, even while handlers are active."""
        with self._lock:
            self._stopping = True
            self._error = error if self._error is None else self._error
            self._changed.notify_all()
        self._wake()
        self.in_flight.close()

    def wait_until_stopped(self, seconds: float) -> bool:
        """Return True if the dispatcher stops within so many seconds."""
        with self._lock:
            return self._changed.wait_for(lambda: self._stopping, seconds)

    @property
    def units_in_flight(self) -> int:
        """The number of units with an active handler, or waiting for acknowledgement or for the end of a delay."""
        return self.in_flight.count

    def find_stall(self) -> Stall | None:
        """Return the reason why no message is delivered, as `Dispatcher.find_stall` does."""
        since = self.in_flight.full_since
        if since is None:
            return None
        limit = self.endpoint.settings.max_outstanding
        return Stall(f"max_outstanding={limit} is reached: as many units wait for acknowledgement or delay", since)

    @abstractmethod
    def close(self) -> None:
        """Close the consumers, after `run` has returned; the connection stays open."""

    def begin_attempt(self, consumer: spi.Consumer) -> DeliveryAttempt:
        """Open a unit in a slot of the in-flight limit that the caller has acquired.

        Args:
            consumer: The consumer that received the messages.

        Raises:
            ConnectionLostError: The connection is abandoned.
        """
        if self._settler is None:
            attempt = DeliveryAttempt(self.endpoint, self.connection, consumer, self.in_flight)
        else:
            attempt = HeldDeliveryAttempt(self.endpoint, self.connection, consumer, self.in_flight, self._settler)
        with self._lock:
            if self._abandoned:
                raise ConnectionLostError(
                    f"The connection of {self.endpoint.name} is abandoned; its messages are redelivered."
                )
            self._attempts.add(attempt)
        return attempt

    def end_attempt(self, attempt: DeliveryAttempt) -> None:
        """Remove a unit from the active units: its handler has returned."""
        with self._lock:
            self._attempts.discard(attempt)

    @abstractmethod
    def _run(self) -> None:
        """Deliver until stopped."""

    @abstractmethod
    def _wake(self) -> None:
        """Interrupt waits for messages."""

    def _close(self) -> None:  # noqa: B027  # optional
        """Release the resources of the mode."""

    def _on_slot_free(self) -> None:  # noqa: B027  # optional
        """React to a settled unit: a slot of the in-flight limit is free."""

    def _abandon_attempts(self) -> None:
        """Prevent further calls of handlers, and mark the active handlers as abandoned."""
        with self._lock:
            self._abandoned = True
            self.endpoint.abandon(self._attempts)


def may_prefetch(consumer: spi.Consumer) -> bool:
    """Return False if the broker may drop messages that are prefetched and returned a few times."""
    return not (isinstance(consumer, spi.LimitedReturns) and consumer.drops_returned)


class Dispatcher(Protocol):
    """Delivers the messages of one connection to the handler."""

    def run(self) -> None:
        """Deliver until stopped.

        Raises:
            JMSError: The connection broke, or something else failed.
            Exception: A defect in the provider or in jmsjca.
        """
        ...

    def stop(self, error: BaseException | None = None) -> None:
        """Make `run` return when the active handlers have returned. With an error `run` raises that error at once."""
        ...

    def close(self) -> None:
        """Close the consumers, after `run` has returned; the connection stays open."""
        ...

    @property
    def units_in_flight(self) -> int:
        """The number of units with an active handler, or waiting for acknowledgement or for the end of a delay."""
        ...

    def find_stall(self) -> Stall | None:
        """Return the reason why messages are not delivered although the connection is up; None for no reason."""
        ...


def batch_of(
    endpoint: Endpoint,
    first: spi.Delivery,
    take_next: Callable[[int], spi.Delivery | None],
    put_back: Callable[[spi.Delivery], object],
) -> Iterator[spi.Delivery]:
    """Yield the messages of one unit, at most ``batch_size``. In every mode, this function ends a batch.

    Args:
        endpoint: The endpoint to deliver for.
        first: The first message of the unit.
        take_next: Returns the next message. Its argument is the number of messages that still fit; None ends the unit.
        put_back: Takes a message that must be delivered alone, which therefore ends the unit before it.
    """
    yield first
    if endpoint.must_be_delivered_alone(first):
        return
    for wanted in range((endpoint.settings.batch_size or 1) - 1, 0, -1):
        delivery = take_next(wanted)
        if delivery is None:
            return
        if endpoint.must_be_delivered_alone(delivery):
            put_back(delivery)
            return
        yield delivery


class SerialDispatcher:
    """Delivers in order. The handler's return commits; its exception rolls back, and its message is redelivered first.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._attempt: DeliveryAttempt | None = None
        self._redelivery = RedeliveryProcessor(endpoint, connection, InFlightLimit(1))
        self._receiver = IsolatingReceiver(endpoint, connection, self._redelivery, spi.Order.PREFIX)
        self._consumer = self._receiver.consumer

    def run(self) -> None:
        """Deliver until stopped.

        Raises:
            ConnectionLostError: The connection broke.
            JMSError: The broker refused a request; it may succeed on a new connection.
        """
        self._wait_for_abandoned_handler()
        with self._endpoint.statistics.endpoint():
            rate = self._endpoint.rate
            while not self._stopping.is_set():
                if (pause := rate.pause()) and self._stopping.wait(pause):
                    break
                chunk = self._receiver.receive(min(self._endpoint.limits.chunk, rate.burst), None)
                rate.record(len(chunk))
                self._deliver_chunk(chunk)
        if self._error is not None:
            raise self._error

    def stop(self, error: BaseException | None = None) -> None:
        """Make `run` return after the current message. With an error that message is redelivered."""
        attempt = self._attempt
        if error is not None and attempt is not None:
            self._endpoint.abandon([attempt])
        self._error = error if self._error is None else self._error
        self._stopping.set()
        self._consumer.wake()

    def close(self) -> None:
        """Close the consumer, after `run` has returned; the connection stays open."""
        self._consumer.close()

    @property
    def units_in_flight(self) -> int:
        """1 while a handler is active or a message is delayed."""
        return self._endpoint.activity.units

    def find_stall(self) -> Stall | None:
        """Return None: every possible stall is recorded as the activity of the endpoint."""

    def _wait_for_abandoned_handler(self) -> None:
        """Wait while a handler of an abandoned connection is active: handlers run one at a time."""
        if not self._endpoint.abandoned_handlers:
            return
        self._endpoint.activity.begin(self, "handler of a lost connection")
        while self._endpoint.abandoned_handlers and not self._stopping.wait(_ABANDONED_HANDLER_INTERVAL):
            pass
        self._endpoint.activity.end(self)

    def _deliver_chunk(self, chunk: Sequence[spi.Delivery]) -> None:
        for position, delivery in enumerate(chunk):
            if self._stopping.is_set():
                self._consumer.release(chunk[position:])
                self._endpoint.statistics.record_return(len(chunk) - position)
                return
            result = self._redelivery.process(delivery)
            outcome = result if isinstance(result, Outcome) else self._deliver(delivery, result)
            if outcome is not Outcome.COMMITTED:
                return  # to keep the order, the other messages of the chunk were returned with this one

    def _deliver(self, delivery: spi.Delivery, delay: float) -> Outcome | None:
        if delay and self._wait_for_delay(delay):
            self._redelivery.release(self._consumer, [delivery])
            return None
        attempt = self._attempt = DeliveryAttempt(self._endpoint, self._connection, self._consumer)
        try:
            attempt.deliver([delivery])
        finally:
            self._attempt = None
        return attempt.unit.outcome

    def _wait_for_delay(self, seconds: float) -> bool:
        """Wait on this thread, because all later messages must also wait. Return True if stopped during the wait."""
        self._endpoint.activity.begin(self, "delay")
        try:
            return _wait(self._stopping, seconds)
        finally:
            self._endpoint.activity.end(self)


def _wait(stopping: threading.Event, seconds: float) -> bool:
    """Wait for the end of a delay. Return True if stopped during the wait. Tests with another clock replace it."""
    return stopping.wait(seconds)


class CCDispatcher(ConcurrentDispatcher):
    """Prefetches messages on the thread of `run`. Workers on an executor take them while there are any.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        executor: Runs the workers; None for a thread pool of the dispatcher.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection, executor: Executor | None = None) -> None:
        super().__init__(endpoint, connection)
        settings = endpoint.settings
        self._workers = 0
        self._concurrency = AdaptiveConcurrency()
        self._starting = False  # a worker is submitted but has not begun
        self._refused = False  # the system has refused the last thread
        self._submitted: Future[None] | None = None  # the latest worker
        self._queue = _PrefetchQueue(endpoint, one_batch=connection.capabilities.units == "receive")
        self._redelivery = RedeliveryProcessor(endpoint, connection, self.in_flight)
        self._receiver = IsolatingReceiver(endpoint, connection, self._redelivery, spi.Order.ANY)
        self._consumer = self._receiver.consumer
        self._alone: spi.Delivery | None = None  # a suspect: nothing is received until its handler has returned
        self._may_prefetch = may_prefetch(self._consumer)
        self._limit_reached = False  # a message was ready, but the in-flight limit was reached
        self._own_pool = DaemonThreadPool(settings.pool_size, f"jmsjca {endpoint.name}") if executor is None else None
        self._executor = executor or cast("Executor", self._own_pool)

    def _run(self) -> None:
        while not self._stopping:
            self._enqueue(self._redelivery.pop_due())
            free_slots = self._wait_for_free_slots()
            if free_slots:
                chunk = self._receiver.receive(min(free_slots, self.endpoint.rate.burst), self._longest_wait())
                self.endpoint.rate.record(len(chunk))
                self._admit(chunk)
                if self._refused:
                    self._start_worker()
            elif not self._concurrency.single_threaded:
                self._start_worker()
        self._cancel_submitted()
        with self._lock:
            self._changed.wait_for(lambda: not self._workers or self._error is not None)

    def _close(self) -> None:
        self._release_all()
        if self._own_pool is not None:
            self._own_pool.shutdown(wait=self._error is None)

    def close(self) -> None:
        """Close the consumer, after `run` has returned; the connection stays open."""
        self._consumer.close()

    def find_stall(self) -> Stall | None:
        """Return the reason why no message is delivered, including an executor that does not run the workers."""
        with self._lock:
            waiting, since = len(self._queue.ready), self._queue.waiting_since
        if waiting and not self.endpoint.activity.units:
            since = max(since, self.endpoint.activity.last_progress)
            return Stall(f"the executor runs no handler for {waiting} prefetched messages", since)
        return super().find_stall()

    def _wait_for_free_slots(self) -> int:
        """Return how many messages may be prefetched; 0 if this thread first has other work."""
        with self._lock:
            self._concurrency.try_scale_down()
            pause = self.endpoint.rate.pause()
            free_slots = (
                0
                if pause or self._alone is not None or self._is_full()
                else self._queue.free_slots(single_threaded=self._concurrency.single_threaded)
            )
            if self._receiver.isolates or not self._may_prefetch:
                idle = self.endpoint.settings.pool_size - self._workers
                free_slots = max(min(free_slots, self._queue.messages_for(idle)), 0)
            if not free_slots and not self._stopping:
                longest = self._longest_wait(pause)
                self._concurrency.wait(self._changed, longest, something_waits=bool(self._queue.ready))
            return 0 if self._stopping else free_slots

    def _longest_wait(self, pause: float = 0.0) -> float | None:
        longest = _LOOK_AGAIN if self._refused else None
        return self._redelivery.time_to_next(min(pause, longest or pause) if pause else longest)

    def _is_full(self) -> bool:
        """Return True if the in-flight limit is reached. Delayed messages also count."""
        if not self.in_flight.full:
            return False
        self._limit_reached = True  # from now on a free slot is reported
        return self.in_flight.full  # a slot may have become free just before

    def _admit(self, chunk: Sequence[spi.Delivery]) -> None:
        """Decide about received messages, and enqueue the messages to deliver now."""
        suspect = chunk[0] if chunk and self.endpoint.is_suspect(chunk[0]) else None
        if suspect is not None:
            self._release_all()
        ready = list(self._redelivery.filter(chunk))
        self._alone = suspect if ready else None
        self._enqueue(ready)

    def _enqueue(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Add messages to the prefetch queue, and start a worker for them if necessary."""
        enqueued = list(deliveries)
        if enqueued:
            with self._lock:
                urgent = not self._queue.ready or not self._concurrency.single_threaded
                self._queue.add(enqueued)
            if urgent:
                self._start_worker()

    def _start_worker(self) -> None:
        """Start another worker if there is a message for it. Only one starts at a time, and it starts the next one.

        So short handlers need few workers, and no message waits for a slow handler.
        """
        max_workers = max(self.endpoint.settings.pool_size - self.endpoint.abandoned_handlers, 1)
        with self._lock:
            if not self._queue.ready or self._starting or self._workers >= max_workers:
                return
            self._starting = True
            self._workers += 1
        self._submit()

    def _submit(self) -> None:
        try:
            future = self._executor.submit(as_listener(self._run_worker))
        except Exception as error:  # noqa: BLE001  # the executor may be the application's
            if not self._go_on_without():
                self._executor_failed(error)
        else:
            future.add_done_callback(self._worker_done)
            self._submitted, self._refused = future, False
            if self._stopping:
                self._cancel_submitted()

    def _go_on_without(self) -> bool:
        """Return True if the system refuses a thread and other workers continue. The thread of `run` tries again."""
        with self._lock:
            if self._own_pool is None or self._workers == 1:
                return False
            was_refused, self._refused, self._starting = self._refused, True, False
            self._workers -= 1
        if not was_refused:
            self._consumer.wake()  # it may wait without a timeout
        return True

    def _cancel_submitted(self) -> None:
        """Cancel a worker that has not begun: other jobs may occupy the executor's threads for any time."""
        if self._submitted is not None:
            self._submitted.cancel()

    def _worker_done(self, future: "Future[None]") -> None:
        """Detect an executor that accepts work and drops it."""
        if future.cancelled() and self._stopping:
            self._worker_ended()
            return
        error = CancelledError("it was cancelled") if future.cancelled() else future.exception()
        if error is not None:
            self._executor_failed(error)

    def _executor_failed(self, error: BaseException) -> None:
        refusal = ResourceAllocationError(f"The executor of {self.endpoint.name} does no work: {error!r:.200}")
        refusal.__cause__ = error
        self.stop(refusal)
        self._worker_ended()

    def _run_worker(self) -> None:
        with self._lock:
            self._starting = False
            self._concurrency.record_start()
        with self.endpoint.statistics.endpoint():
            failed = failure_of(self._deliver_batches)
        try:
            if isinstance(failed, Exception):
                self.stop(failed)  # raised by `run`
                self._worker_ended()
            elif failed is not None:
                raise failed
        finally:
            del failed  # its traceback refers to this frame: avoids a reference cycle

    def _deliver_batches(self) -> None:
        while batch := self._next_batch():
            # A worker that starts, or adds messages, checks for itself whether another worker is needed.
            if not self._concurrency.single_threaded and self._queue.ready and not self._starting:
                self._start_worker()
            self._deliver(batch)

    def _next_batch(self) -> list[spi.Delivery]:
        """Take the messages of one unit, in a slot acquired for the unit. An empty list ends the worker."""
        with self._lock:
            if self._stopping or not self._queue.ready or self._concurrency.is_superseded or not self._acquire_slot():
                self._worker_ended()
                return []
            batch = self._queue.pop_batch()
            self._concurrency.record_taken(len(batch))
            if self._queue.free_slots(single_threaded=self._concurrency.single_threaded):
                self._changed.notify_all()
        return batch

    def _acquire_slot(self) -> bool:
        if self.in_flight.acquire(0):
            return True
        self._limit_reached = True  # from now on a free slot is reported
        return self.in_flight.acquire(0)  # a slot may have become free just before

    def _worker_ended(self) -> None:
        with self._lock:
            self._workers -= 1
            self._changed.notify_all()

    def _deliver(self, batch: list[spi.Delivery]) -> None:
        attempt = self.begin_attempt(self._consumer)
        rest = iter(batch)
        try:
            attempt.deliver(rest if len(batch) == 1 else self._until_stopped(rest))
        finally:
            self.end_attempt(attempt)
            if (left := list(rest)) and self._queue.one_batch:
                with suppress(JMSError):  # they ended with the others
                    self._redelivery.release(self._consumer, left)
            elif left:
                self._requeue(left)
            if batch[0] is self._alone:
                with self._lock:
                    self._alone = None
                    self._changed.notify_all()

    def _until_stopped(self, batch: Iterator[spi.Delivery]) -> Iterator[spi.Delivery]:
        for delivery in batch:
            yield delivery
            if self._stopping:
                return

    def _requeue(self, rest: list[spi.Delivery]) -> None:
        """Put back the remaining messages of a failed unit, for other workers."""
        with self._lock:
            self._queue.push_front(rest)
            self._concurrency.scale_up()  # the thread of `run` may not be observing the rate

    def _on_slot_free(self) -> None:
        if self._limit_reached:
            self._limit_reached = False
            self._start_worker()
            with self._lock:
                self._changed.notify_all()

    def _release_all(self) -> None:
        with self._lock:
            rest = [*self._queue.drain(), *self._redelivery.drain()]
        with suppress(JMSError):  # on a lost connection the broker redelivers them anyway
            self._redelivery.release(self._consumer, rest)

    def _wake(self) -> None:
        self._consumer.wake()


class _PrefetchQueue:
    """Prefetched messages in the order of arrival. Not thread-safe: callers hold one lock.

    Args:
        endpoint: The endpoint to dispatch for.
        one_batch: True if a batch must not mix the messages of two calls of receive(): then a batch is all it holds.

    Attributes:
        ready: The messages.
        waiting_since: The time of the monotonic clock at which a message was added to the empty queue.
        one_batch: True as given, for a listener with batches.
    """

    def __init__(self, endpoint: Endpoint, *, one_batch: bool) -> None:
        settings = endpoint.settings
        self._endpoint = endpoint
        self.one_batch = one_batch and settings.batch_size > 0
        self._capacity = max(
            settings.batch_size or 1, endpoint.limits.prefetch_messages, _PREFETCH_PER_HANDLER * settings.pool_size
        )
        self.ready: deque[spi.Delivery] = deque()
        self.waiting_since = 0.0

    def free_slots(self, *, single_threaded: bool) -> int:
        """Return how many messages may be prefetched now; 0 while enough messages are queued.

        Receiving a few messages costs nearly as much as receiving many, so nothing is prefetched until half of the
        queue is consumed. With a single thread the queue is emptied first, so that this thread does not have to wait
        for the receiving thread.
        """
        there = len(self.ready)
        if self.one_batch:
            return 0 if there else self._endpoint.settings.batch_size
        enough = there > 0 if single_threaded else 2 * there > self._capacity
        return 0 if enough else self._capacity - there

    def messages_for(self, handlers: int) -> int:
        """Return how many messages idle handlers could process at once, in addition to the queued messages."""
        return handlers * (self._endpoint.settings.batch_size or 1) - len(self.ready)

    def add(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Append received messages."""
        if not self.ready:
            self.waiting_since = self._endpoint.clock.monotonic()
        self.ready.extend(deliveries)

    def push_front(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Put messages at the head of the queue."""
        self.ready.extendleft(reversed(deliveries))

    def pop_batch(self) -> list[spi.Delivery]:
        """Remove and return the messages of one unit. The queue must not be empty."""
        if not self._endpoint.settings.batch_size:
            return [self.ready.popleft()]
        return list(batch_of(self._endpoint, self.ready.popleft(), self._next, self.ready.appendleft))

    def _next(self, wanted: int) -> spi.Delivery | None:
        del wanted  # the queue returns one message at a time
        return self.ready.popleft() if self.ready else None

    def drain(self) -> list[spi.Delivery]:
        """Remove and return all messages."""
        rest = list(self.ready)
        self.ready.clear()
        return rest


P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreadPool(Executor):
    """A pool of daemon threads, started on demand.

    The standard library's pool waits for its threads when the interpreter exits, even if a handler never returns.

    Args:
        max_workers: The maximum number of threads.
        name: The prefix of the threads' names.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers = max_workers
        self._name = name
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Call ``fn`` on a thread of the pool.

        Raises:
            RuntimeError: The pool is shut down, or the system refuses another thread.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"The threads of {self._name} are shut down.")
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._max_workers:
                self._start()
            self._tasks.put(lambda: _run_task(future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads when all submitted tasks are done. May be called on one of these threads."""
        del cancel_futures
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._tasks.put(None)
        for thread in threads if wait else ():
            if thread is not threading.current_thread():
                thread.join()

    def _start(self) -> None:
        name = f"{self._name} #{len(self._threads)}"
        thread = threading.Thread(target=self._run_worker, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run_worker(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # releases the objects that the task refers to
            with self._lock:
                self._idle += 1


def _run_task(future: "Future[T]", act: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        fulfil(future, act)
