"""Dispatching in mode sync: several receivers, each with its own consumer and thread."""

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.inbound.concurrency import InFlightLimit, LeaderFollowers
from jmsjca.inbound.dispatcher import ConcurrentDispatcher, batch_of, may_prefetch
from jmsjca.inbound.endpoint import Endpoint, Stall
from jmsjca.inbound.listener_log import as_listener
from jmsjca.inbound.redelivery_processor import RedeliveryProcessor, SuspectIsolation

__all__ = ["PrefetchGroup", "SyncDispatcher"]

_NEXT_OF_BATCH = 0.1  # seconds that a batch waits for its next message

_LOOK_AGAIN = 1.0  # seconds between checks for handlers of a lost connection


class _Receiver:
    """Receives, calls the handler and settles in a loop. Runs on one thread.

    Args:
        dispatcher: The dispatcher of the listener.
    """

    def __init__(self, group: "SyncDispatcher") -> None:
        self._group = group
        self._endpoint = group.endpoint
        self._in_flight = group.in_flight
        self._stopping = False
        self._size = group.endpoint.settings.batch_size or 1
        self._prefetch_group = group.prefetch_group
        self._prefetch = group.prefetch_group.add()

    def run(self) -> None:
        """Deliver until stopped, then release the prefetched messages.

        Raises:
            JMSError: The connection broke, or the broker refused something.
        """
        try:
            with self._endpoint.statistics.endpoint():
                while not self._stopping:
                    self._deliver_next()
        finally:
            self._prefetch.release_all()

    def stop(self) -> None:
        """Make `run` return after the current unit."""
        self._stopping = True
        self._prefetch.stop()

    def discard(self) -> None:
        """Close the consumer of a receiver that does not run."""
        self._prefetch_group.remove(self._prefetch)
        with suppress(JMSError):  # closing the connection also releases its messages
            self._prefetch.close_consumer()

    def _deliver_next(self) -> None:
        pause = self._endpoint.rate.pause()
        if pause:
            self._group.wait_until_stopped(pause)
            return
        if not self._prefetch.ready:  # a receiver delivers what it has prefetched first
            self._prefetch_group.wait_for_turn()
        with self._prefetch_group.isolating(self._prefetch) as isolated:
            delivery = self._first_of_unit(self._endpoint.settings.receive_timeout)
            if delivery is None:
                return
            if self._endpoint.is_suspect(delivery):
                if isolated():
                    self._deliver_within_limit(delivery)
                else:
                    self._prefetch.push_front(delivery)
                    self._prefetch.release_all()
                return
        self._deliver_within_limit(delivery)

    def _deliver_within_limit(self, delivery: spi.Delivery) -> None:
        """Deliver once the in-flight limit allows another unit. A slot is only acquired for an existing message."""
        if self._in_flight.acquire(self._prefetch.wait_limit(self._endpoint.settings.receive_timeout)):
            self._deliver(delivery)
        else:
            self._prefetch.push_front(delivery)
            self._prefetch.add_due()

    def _deliver(self, delivery: spi.Delivery) -> None:
        """Deliver one unit in an acquired slot."""
        attempt = self._group.begin_attempt(self._prefetch.consumer)
        self._endpoint.rate.record(1)
        try:
            attempt.deliver(batch_of(self._endpoint, delivery, self._next_of_batch, self._put_back))
        finally:
            self._group.end_attempt(attempt)
            self._prefetch.end_batch()

    def _next_of_batch(self, wanted: int) -> spi.Delivery | None:
        following = None if self._stopping else self._prefetch.next_of_batch(wanted)
        self._endpoint.rate.record(0 if following is None else 1)
        return following

    def _put_back(self, delivery: spi.Delivery) -> None:
        """Put back the message that ends a batch. A suspect must not stay here while the batch is delivered."""
        self._prefetch.push_front(delivery)
        if self._endpoint.is_suspect(delivery):
            self._prefetch.release()

    def _first_of_unit(self, timeout: float) -> spi.Delivery | None:
        """Return the first message of a unit. Nothing is received while the in-flight limit is reached."""
        self._prefetch.add_due()
        if not self._prefetch.ready and self._in_flight.full:
            self._in_flight.wait_until_free(self._prefetch.wait_limit(timeout))
            return None
        return self._prefetch.next(self._size, timeout)


class SyncDispatcher(ConcurrentDispatcher):
    """Runs the receivers, each on its own thread.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.

    Attributes:
        prefetch_group: The prefetched messages of all receivers.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        super().__init__(endpoint, connection)
        self.prefetch_group = PrefetchGroup(endpoint, connection, self.in_flight)
        self._receivers = [_Receiver(self)]  # created here to detect at once that the source cannot be consumed from
        self._running = 0
        self._lost: Stall | None = None  # a receiver that ended without being stopped
        self._refused: Stall | None = None  # a receiver for which the system refused a thread

    def _run(self) -> None:
        self._start(self._receivers[0])
        while not self._ended():
            self._start_missing()
            with self._lock:
                self._changed.wait_for(self._ended, _LOOK_AGAIN if self._missing() else None)

    def _missing(self) -> int:
        """Return how many receivers are missing, including those whose place a handler that is still active takes."""
        return self.endpoint.settings.pool_size - len(self._receivers)

    def _start_missing(self) -> None:
        for _ in range(self._missing() - self.endpoint.abandoned_handlers):
            receiver = _Receiver(self)
            with self._lock:
                self._receivers.append(receiver)
                if self._stopping:
                    receiver.stop()
            try:
                self._start(receiver)
            except RuntimeError:  # the system refuses another thread for now: the existing receivers continue
                self._remove_unstarted(receiver)
                return
            self._refused = None

    def _remove_unstarted(self, receiver: _Receiver) -> None:
        """Remove a receiver without a thread, because the broker must not keep messages for it."""
        with self._lock:
            self._receivers.remove(receiver)
        receiver.discard()
        if self._refused is None:
            reason = f"the system refuses a thread for more than {len(self._receivers)} receivers"
            self._refused = Stall(reason, self.endpoint.clock.monotonic())

    def _start(self, receiver: _Receiver) -> None:
        name = f"jmsjca sync #{self._receivers.index(receiver)}({self.endpoint.settings.destination.name})"
        thread = threading.Thread(target=as_listener(partial(self._receive, receiver)), name=name, daemon=True)
        with self._lock:  # so that its end is not counted before its start
            thread.start()
            self._running += 1

    def close(self) -> None:
        """Close the consumers, after `run` has returned; the connection stays open."""
        self.prefetch_group.close_consumers()

    def find_stall(self) -> Stall | None:
        """Return the reason why no message is delivered, or why receivers are missing."""
        return self._lost or self._refused or super().find_stall()

    def _ended(self) -> bool:
        return not self._running or self._error is not None

    def _receive(self, receiver: _Receiver) -> None:
        try:
            receiver.run()
        except BaseException as error:  # noqa: BLE001  # raised by `run`
            self.stop(error)
        finally:
            with self._lock:
                self._running -= 1
                if not self._stopping and self._lost is None:
                    self._lost = Stall("a receiver has ended", self.endpoint.clock.monotonic())
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._lock:
            receivers = list(self._receivers)
        self.prefetch_group.turns.close()
        for receiver in receivers:
            receiver.stop()


class PrefetchGroup:
    """The prefetched messages of all receivers of a listener. Any receiver can get another receiver's messages.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        in_flight: Counts the messages that wait for the end of a delay.

    Attributes:
        turns: Decides which receivers continue when few are needed.
        prefetch_limit: The number of messages that one receiver may prefetch; 0 disables prefetching.
        isolation: Decides whether only one receiver receives at a time, and one message at a time.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection, in_flight: InFlightLimit) -> None:
        self._endpoint, self._connection, self._in_flight = endpoint, connection, in_flight
        self._all: list[_ReceiverPrefetch] = []
        exact = connection.capabilities.exact_credit
        self.turns = LeaderFollowers(shared=exact)
        prefetches = exact and not endpoint.settings.batch_size and endpoint.settings.rate_limit is None
        self.prefetch_limit = endpoint.limits.prefetch_messages if prefetches else 0
        self.isolation = SuspectIsolation(endpoint, connection)
        self._isolating = threading.Lock()  # held by the only receiver that receives, or delivers a suspect

    @contextmanager
    def isolating(self, prefetch: "_ReceiverPrefetch") -> Generator[Callable[[], bool]]:
        """Allow only one receiver at a time to receive, and to deliver suspects, while suspects arrive.

        Yields:
            A function that releases all prefetched messages before the delivery of a suspect. It returns False if
            another receiver is delivering a suspect.
        """
        held = False

        def isolate() -> bool:
            """Release all prefetched messages, unless another receiver is delivering a suspect."""
            nonlocal held
            held = held or self._isolating.acquire(blocking=False)
            if held:
                for each in self._all:
                    each.release_all()
                    if each is not prefetch:
                        each.wake()
            return held

        if self.isolation.active:
            prefetch.release_arrived()
            held = self._wait_for_isolation()
        try:
            yield isolate
        finally:
            if held:
                self._isolating.release()

    def _wait_for_isolation(self) -> bool:
        """Wait until no other receiver isolates. Return False if isolation is no longer needed."""
        self._isolating.acquire()
        if self.isolation.active:
            return True
        self._isolating.release()
        return False

    def add(self) -> "_ReceiverPrefetch":
        """Add a receiver, and return the store of its prefetched messages."""
        prefetch = _ReceiverPrefetch(self._endpoint, self._connection, self._in_flight, self)
        self._all.append(prefetch)
        return prefetch

    def remove(self, prefetch: "_ReceiverPrefetch") -> None:
        """Remove a receiver that does not run."""
        self._all = [each for each in self._all if each is not prefetch]

    def wait_for_turn(self) -> None:
        """Wait while this thread is not needed. After a wait, release all prefetched messages before receiving."""
        self.turns.wait_for_turn()
        self.release_all()

    def release_all(self) -> None:
        """Release the prefetched messages of all receivers. Batches are not prefetched, so they stay together."""
        if self.prefetch_limit:
            for prefetch in self._all:
                if prefetch.ready or (prefetch.delayed.entries and prefetch.wait_limit(1) == 0):
                    prefetch.release()

    def close_consumers(self) -> None:
        """Close the consumers of all receivers."""
        for prefetch in self._all:
            prefetch.close_consumer()

    def wait_limit(self, limit: float) -> float:
        """Return the maximum time to wait for a message, because a delay of another receiver may end earlier."""
        for prefetch in self._all if self.prefetch_limit else ():
            if prefetch.delayed.entries:
                limit = prefetch.wait_limit(limit)
        return limit

    def notify_delay(self, by: "_ReceiverPrefetch") -> None:
        """Wake the other receivers, because they may wait for a message longer than a new delay lasts."""
        for prefetch in self._all if self.prefetch_limit else ():
            if prefetch is not by:
                prefetch.wake()


class _ReceiverPrefetch:
    """The prefetched messages of one receiver. One thread receives with it; any thread may release its messages.

    Receiving a few messages costs little more than receiving one, but a prefetched message must not wait for a slow
    handler while another handler is idle. Therefore messages are prefetched only while another receiver supervises: it
    notices a slow handler and releases them.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        in_flight: Counts the messages that wait for the end of a delay.
        group: The prefetched messages of all receivers.

    Attributes:
        consumer: The consumer of the receiver.
        ready: The messages that can be delivered now.
        delayed: The messages that wait for the end of a delay.
    """

    def __init__(
        self, endpoint: Endpoint, connection: spi.Connection, in_flight: InFlightLimit, others: PrefetchGroup
    ) -> None:
        self._group = others
        self._redelivery = RedeliveryProcessor(endpoint, connection, in_flight)
        self.delayed = self._redelivery.delayed
        self.ready: deque[spi.Delivery] = deque()
        self._releasing = threading.Lock()  # messages must be returned before later ones of their group are received
        self._stopping = False
        settings = endpoint.settings
        self._one_receive = connection.capabilities.units == "receive" and settings.batch_size > 0
        # A message that the broker has prefetched to one consumer is not available to other consumers.
        window = 0 if connection.capabilities.exact_credit else settings.batch_size or 1
        self.consumer = connection.consumer(
            settings.source,
            selector=settings.selector,
            order=spi.Order.ANY,
            window=window,
            **spi.together(connection, settings.batch_size or 1),
        )
        self._may_prefetch = may_prefetch(self.consumer)

    def stop(self) -> None:
        """Interrupt a wait for a message, and stop receiving."""
        self._stopping = True  # set before the wakeup, which may end only the first of two waits
        self.wake()

    def wake(self) -> None:
        """Interrupt a wait for a message."""
        self.consumer.wake()

    def wait_limit(self, limit: float) -> float:
        """Return the seconds until the next delay ends; or ``limit`` if that is less, or there is no delay."""
        return self._redelivery.time_to_next(limit) or 0

    def next(self, limit: int, timeout: float) -> spi.Delivery | None:
        """Return the next message; None if none arrived in time, or another thread released it.

        Args:
            limit: The maximum number of messages to receive.
            timeout: Maximum time to wait in seconds.
        """
        if not self.ready:
            self.add_due()
        if not self.ready:
            self._receive(limit, timeout)
        return self._pop()

    def next_of_batch(self, wanted: int) -> spi.Delivery | None:
        """Return another message for the same unit; None if none arrived soon, or a unit cannot take it with others."""
        return self._pop() if self._one_receive else self.next(wanted, _NEXT_OF_BATCH)

    def end_batch(self) -> None:
        """Release what a batch has left, where the messages of one receive end together."""
        if self._one_receive and self.ready:
            self.release()

    def add_due(self) -> None:
        """Add the delayed messages that are due."""
        if self.delayed.entries:
            self.ready.extend(self._redelivery.pop_due())

    def push_front(self, delivery: spi.Delivery) -> None:
        """Put a message back as the next one."""
        self.ready.appendleft(delivery)

    def release(self) -> None:
        """Release all messages that are ready. No handler saw them, and they are not delayed again.

        Raises:
            JMSError: They cannot be released, and stay with the consumer as long as the connection lives.
        """
        with self._releasing:
            ready = deque(self._redelivery.pop_due())
            while (delivery := self._pop_last()) is not None:  # the receiver may take the first one at the same time
                ready.appendleft(delivery)
            if ready:
                with suppress(ConnectionLostError):  # the broker redelivers them anyway
                    self._redelivery.release(self.consumer, ready, waited=True)

    def release_all(self) -> None:
        """Release all messages, including those that wait for the end of a delay."""
        delayed = self._redelivery.drain()
        with suppress(JMSError):  # closing the connection releases the rest
            self.release()
        if delayed:
            with suppress(JMSError):
                self._redelivery.release(self.consumer, delayed)

    def release_arrived(self) -> None:
        """Release messages that arrived after the wait for them was interrupted."""
        if arrived := self.consumer.drain():
            self._redelivery.release(self.consumer, arrived)

    def close_consumer(self) -> None:
        """Close the consumer, which releases what it still has."""
        self.consumer.close()

    def _receive(self, limit: int, timeout: float) -> None:
        with self._releasing:
            pass  # another receiver has put back what it was releasing
        if (
            self._group.prefetch_limit
            and not self._group.isolation.active
            and self._may_prefetch
            and self._group.turns.may_prefetch()
            and self._receive_chunk(self._group.prefetch_limit, 0)
        ):
            if not self._group.turns.may_prefetch():  # the answer may have changed while it received
                self._keep_one()
        elif not self._stopping:
            with self._group.turns.waiting_for_message():
                self._group.release_all()  # a receiver that waits for a message does not notice a slow handler
                self._receive_chunk(limit, self._group.wait_limit(self.wait_limit(timeout)))

    def _receive_chunk(self, limit: int, timeout: float) -> bool:
        chunk = self.consumer.receive(1 if self._group.isolation.active else limit, timeout)
        if chunk:
            self._group.turns.record_taken(len(chunk))
        now, later = self._group.isolation.split(chunk)
        if later:
            self._redelivery.release(self.consumer, later)
        admitted = 0
        for delivery in self._redelivery.filter(now):
            self.ready.append(delivery)
            admitted += 1
        if admitted < len(now):
            self._group.notify_delay(self)
        return bool(chunk)

    def _keep_one(self) -> None:
        first = self._pop()
        self.release()
        if first is not None:
            self.push_front(first)

    def _pop(self) -> spi.Delivery | None:
        try:
            return self.ready.popleft()
        except IndexError:
            return None

    def _pop_last(self) -> spi.Delivery | None:
        try:
            return self.ready.pop()
        except IndexError:
            return None
