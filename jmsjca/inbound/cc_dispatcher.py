"""Dispatching in mode cc: one consumer prefetches messages for a pool of handler threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar, cast

from jmsjca import spi
from jmsjca.errors import JMSError, ResourceAllocationError
from jmsjca.inbound.concurrency import Pace
from jmsjca.inbound.dispatcher import ConcurrentDelivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.listener_context import inside
from jmsjca.inbound.redelivery import Arrivals

__all__ = ["CCDelivery", "Stock", "Workers"]

_AHEAD = 2  # messages for each handler: while it is at work on one, its next one is there


class CCDelivery(ConcurrentDelivery):
    """The thread of `run` takes messages ahead; workers on an executor take them from there, as long as there are any.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        executor: What workers run on; None for a pool of its own.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, executor: Executor | None = None) -> None:
        super().__init__(endpoint, link)
        terms = endpoint.terms
        self._workers = 0
        self._pace = Pace()
        self._coming = False  # one of the workers is started, and has not begun yet
        self._stock = Stock(endpoint)
        self._arrivals = Arrivals(endpoint, link, self.outstanding)
        self._consumer = link.consumer(terms.source, selector=terms.selector, order=spi.Order.ANY)
        self._starved = False  # there was something to deliver, but too much was outstanding
        self._own = Workers(terms.pool_size, f"jmsjca {endpoint.name}") if executor is None else None
        self._executor = executor or cast("Executor", self._own)

    def _run(self) -> None:
        while not self._stopping:
            self._offer(self._arrivals.due())
            room = self._wait_for_room()
            if room:
                chunk = self._consumer.receive(room, self._arrivals.patience(None))
                self._offer(self._arrivals.admit(chunk))
            elif not self._pace.calm:
                self._start_worker()
        with self._lock:
            self._changed.wait_for(lambda: not self._workers or self._error is not None)

    def _close(self) -> None:
        self._give_back()
        if self._own is not None:
            self._own.shutdown(wait=self._error is None)

    def _wait_for_room(self) -> int:
        """Tell how many messages may be taken ahead; 0 if there is something else to do first."""
        with self._lock:
            self._pace.calm_down()
            room = 0 if self._is_full() else self._stock.room(calm=self._pace.calm)
            if not room and not self._stopping:
                self._pace.wait(self._changed, self._arrivals.patience(None), something_waits=bool(self._stock))
            return 0 if self._stopping else room

    def _is_full(self) -> bool:
        """True if nothing more may be in flight, also of what waits for the end of a delay."""
        if not self.outstanding.full:
            return False
        self._starved = True  # from now on a place that becomes free is told
        return self.outstanding.full  # it may have become free just before

    def _offer(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Let workers have these."""
        offered = list(deliveries)
        if offered:
            with self._lock:
                urgent = not self._stock or not self._pace.calm
                self._stock.add(offered)
            if urgent:
                self._start_worker()

    def _start_worker(self) -> None:
        """Start another worker if there is something for it. Only one is on its way at a time; it starts the next.

        So quick handlers get by with a few, and no message waits for a slow one.
        """
        most = max(self.endpoint.terms.pool_size - self.endpoint.busy_elsewhere, 1)
        with self._lock:
            if not self._stock or self._coming or self._workers >= most:
                return
            self._coming = True
            self._workers += 1
        self._submit()

    def _submit(self) -> None:
        try:
            future = self._executor.submit(inside(self._work))
        except Exception as error:  # noqa: BLE001  # the executor may be the application's
            self._refused(error)
        else:
            future.add_done_callback(self._check_done)

    def _check_done(self, future: "Future[None]") -> None:
        """Notice an executor that took work and dropped it."""
        error = CancelledError("it was cancelled") if future.cancelled() else future.exception()
        if error is not None:
            self._refused(error)

    def _refused(self, error: BaseException) -> None:
        refusal = ResourceAllocationError(f"The executor of {self.endpoint.name} does no work: {error!r:.200}")
        refusal.__cause__ = error
        self.stop(refusal)
        self._leave()

    def _work(self) -> None:
        with self._lock:
            self._coming = False
            self._pace.began()
        with self.endpoint.statistics.endpoint():
            try:
                while batch := self._take():
                    if not self._pace.calm:
                        self._start_worker()
                    self._deliver(batch)
            except Exception as error:  # noqa: BLE001  # raised by `run`
                self.stop(error)
                self._leave()

    def _take(self) -> list[spi.Delivery]:
        """Take what one unit is to hold, in a place that is reserved for it; nothing if the worker is to end."""
        with self._lock:
            if self._stopping or not self._stock or self._pace.overtaken or not self._reserve():
                self._leave()
                return []
            batch = self._stock.take()
            self._pace.took(len(batch))
            if self._stock.room(calm=self._pace.calm):
                self._changed.notify_all()
        return batch

    def _reserve(self) -> bool:
        if self.outstanding.reserve(0):
            return True
        self._starved = True  # from now on a place that becomes free is told
        return self.outstanding.reserve(0)  # it may have become free just before

    def _leave(self) -> None:
        with self._lock:
            self._workers -= 1
            self._changed.notify_all()

    def _deliver(self, batch: list[spi.Delivery]) -> None:
        hand = self.take_in_hand()
        rest = iter(batch)
        try:
            hand.deliver(self._until_stopped(rest))
        finally:
            self.put_down(hand)
            self._put_back(list(rest))

    def _until_stopped(self, batch: Iterator[spi.Delivery]) -> Iterator[spi.Delivery]:
        for delivery in batch:
            yield delivery
            if self._stopping:
                return

    def _put_back(self, rest: list[spi.Delivery]) -> None:
        """Let others have what was to be in a unit that failed before."""
        if rest:
            with self._lock:
                self._stock.put_back(rest)
                self._pace.hurry()  # nobody may be watching

    def _place_is_free(self) -> None:
        if self._starved:
            self._starved = False
            self._start_worker()
            with self._lock:
                self._changed.notify_all()

    def _give_back(self) -> None:
        with self._lock:
            rest = [*self._stock.clear(), *self._arrivals.clear()]
        with suppress(JMSError):  # on a lost connection they come again by themselves
            self._arrivals.give_back(self._consumer, rest)

    def _wake(self) -> None:
        self._consumer.wake()


class Stock:
    """Messages in the order in which they came. Used under one lock.

    Args:
        endpoint: Whose messages.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        terms = endpoint.terms
        self._endpoint = endpoint
        self._size = terms.batch_size or 1
        self._capacity = max(self._size, endpoint.limits.prefetch_messages, _AHEAD * terms.pool_size)
        self._ready: deque[spi.Delivery] = deque()

    def __len__(self) -> int:
        return len(self._ready)

    def room(self, *, calm: bool) -> int:
        """Tell how many more may be taken ahead; 0 while there are enough.

        A few at a time cost nearly as much as many, so there are until half is gone. Where one thread is enough, until
        all are: it need not wait for whoever receives more at the same time.
        """
        there = len(self._ready)
        enough = there > 0 if calm else 2 * there > self._capacity
        return 0 if enough else self._capacity - there

    def add(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Put in what came."""
        self._ready.extend(deliveries)

    def put_back(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Put in what came before all that is there."""
        self._ready.extendleft(reversed(deliveries))

    def take(self) -> list[spi.Delivery]:
        """Take out what one unit is to hold; there must be something."""
        batch = [self._ready.popleft()]
        if not self._endpoint.comes_alone(batch[0]):
            while self._ready and len(batch) < self._size and not self._endpoint.comes_alone(self._ready[0]):
                batch.append(self._ready.popleft())
        return batch

    def clear(self) -> list[spi.Delivery]:
        """Take out all."""
        rest = list(self._ready)
        self._ready.clear()
        return rest


P = ParamSpec("P")
T = TypeVar("T")


class Workers(Executor):
    """A pool of daemon threads, made when they are needed.

    The pool of the standard library waits for its threads when the interpreter ends, also for those of a handler that
    never returns.

    Args:
        most: How many threads there are at most.
        name: The beginning of their names.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Let a thread call something.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"The threads of {self._name} are shut down.")
            self._tasks.put(lambda: _fulfil(future, lambda: fn(*args, **kwargs)))
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._most:
                self._start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end when all is done that was submitted; the one who calls may be one of them."""
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
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # and all that it holds on to
            with self._lock:
                self._idle += 1


def _fulfil(future: "Future[Any]", act: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(act())
    except BaseException as error:  # noqa: BLE001  # whoever holds the future learns of it
        future.set_exception(error)
