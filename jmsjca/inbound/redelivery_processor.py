"""Applies redelivery decisions before a handler sees a message: delays, deletes or moves it."""

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from jmsjca import spi
from jmsjca.errors import MessageFormatError
from jmsjca.inbound.concurrency import InFlightLimit
from jmsjca.inbound.delay_queue import DelayQueue
from jmsjca.inbound.delivery_attempt import log_unread_inbox
from jmsjca.inbound.endpoint import Endpoint, message_identity, readable_message_id
from jmsjca.inbound.message_mover import MessageMover
from jmsjca.messages.delivery import Outcome
from jmsjca.redelivery.policy import Delay, Delete, Move

__all__ = ["IsolatingReceiver", "RedeliveryProcessor", "SuspectIsolation"]

_RETRY_DELAY = 0.2
_UNPROVEN = 1  # redeliveries in a count that includes prefetched messages; messages with more are delivered alone
_MOST_UNSUSPECTED = 1000  # after many suspects, the number of other messages until messages are prefetched again
_UNMOVABLE_DELAY = 1.0  # seconds; leaves time for other messages if no target accepts a message


class RedeliveryProcessor:
    """Makes and executes the redelivery decision for each received message. For one thread.

    Any thread may take the delayed messages.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        in_flight: Counts the delayed messages.

    Attributes:
        delayed: The messages that are waiting for the end of a delay.

    Raises:
        InvalidDestinationError: Messages cannot be moved to the target of the redelivery handling.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection, in_flight: InFlightLimit) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._in_flight = in_flight
        self._mover = MessageMover(endpoint, connection)
        last = endpoint.settings.redelivery.last_action
        if isinstance(last, Move) and connection.capabilities.checks:
            connection.check(last.destination)
        can = connection.capabilities
        self._unproven = 0 if can.counts_handovers else _UNPROVEN if can.delivery_count else None
        self._lock = Lock()
        self.delayed: DelayQueue[spi.Delivery] = DelayQueue(endpoint.clock)

    def filter(self, deliveries: Iterable[spi.Delivery]) -> Iterator[spi.Delivery]:
        """Yield the messages that the handler should get now. The others are delayed, moved or deleted."""
        for delivery in deliveries:
            result = self.process(delivery)
            if isinstance(result, Outcome):
                continue
            if self._endpoint.is_still_running(delivery):
                result = max(result, _RETRY_DELAY)
            if result > 0:
                self._delay(delivery, result)
            else:
                yield delivery

    def pop_due(self) -> Iterator[spi.Delivery]:
        """Remove and yield the messages that are due."""
        if not self.delayed.entries:  # the usual case, checked per message
            return
        with self._lock:
            due = list(self.delayed.pop_due())
        for delivery in due:
            if self._endpoint.is_still_running(delivery):
                self._put(delivery, _RETRY_DELAY)
            else:
                self._in_flight.release()
                yield delivery

    def time_to_next(self, limit: float | None) -> float | None:
        """Return the seconds until the next delay ends; or ``limit`` if that is less, or there is no delay."""
        if not self.delayed.entries:
            return limit
        with self._lock:
            return self.delayed.time_to_next(limit)

    def drain(self) -> list[spi.Delivery]:
        """Remove and return all delayed messages."""
        with self._lock:
            rest = self.delayed.drain()
        for _ in rest:
            self._in_flight.release()
        return rest

    def release(self, consumer: spi.Consumer, deliveries: Sequence[spi.Delivery], *, waited: bool = False) -> None:
        """Release messages that were decided about but not handed to a handler. This does not count as a delivery.

        Args:
            consumer: The consumer that they were received from.
            deliveries: The messages to release.
            waited: True if they must not be delayed again when they are redelivered.

        Raises:
            JMSError: They cannot be released. On a lost connection the broker redelivers them anyway.
        """
        uncounted = self._connection.capabilities.give_back == "uncounted"
        self._endpoint.mark_returned(deliveries, waited=waited, uncounted=uncounted)
        try:
            consumer.release(deliveries)
        except Exception:
            self._endpoint.mark_return_failed(deliveries)
            raise
        self._endpoint.statistics.record_return(len(deliveries))

    def process(self, delivery: spi.Delivery) -> float | Outcome:
        """Return the delay in seconds before the handler gets a message, or the outcome of its move or deletion."""
        count, redelivered = delivery.count, delivery.redelivered
        if not redelivered and (count or 0) <= 1:
            if not self._endpoint.has_seen(delivery):
                return 0.0
            redelivered = True
        if self._endpoint.untried.known:
            self._endpoint.untried.discard([message_identity(delivery)])
        shared = self._connection.capabilities.delivery_count and not readable_message_id(delivery)
        decision = self._endpoint.redelivery.decide(
            message_identity(delivery),
            redelivered=redelivered,
            delivery_count=count,
            shared=shared,
            unproven=self._unproven,
        )
        self._endpoint.statistics.record_redelivery(new=decision.new)
        is_suspect = self._endpoint.is_suspect(delivery)
        if is_suspect:  # until its hand-over is recorded: a higher count comes from a connection that was lost before
            self._endpoint.mark_returned([delivery])
        match decision.action:
            case Delay(milliseconds):
                result: float | Outcome = milliseconds / 1000
            case Delete() | Move() as action:
                result = self._move_or_delete(action, delivery, decision.count)
            case _:
                result = 0.0
        # A suspect must not wait here while other messages are delivered.
        return result if isinstance(result, Outcome) or not is_suspect else 0.0

    def _move_or_delete(self, action: Delete | Move, delivery: spi.Delivery, count: int) -> float | Outcome:
        try:
            is_done = self._is_done(delivery)
        except Exception as error:  # noqa: BLE001  # the database is unreachable; drivers raise their own errors
            what_follows = f"%s is not moved or deleted, but delivered in {_UNMOVABLE_DELAY:g} s"
            log_unread_inbox(self._endpoint, delivery, what_follows, error)
            return _UNMOVABLE_DELAY
        return 0.0 if is_done else self._mover.execute(action, delivery, count) or _UNMOVABLE_DELAY

    def _is_done(self, delivery: spi.Delivery) -> bool:
        """Return True if the inbox has the message. Its work is committed: it must be settled, and not moved."""
        inbox, message_id = self._endpoint.inbox, readable_message_id(delivery)
        if inbox is None or message_id is None:
            return False
        try:
            message = delivery.message
        except MessageFormatError:  # no handler has seen the message
            return False
        return inbox.is_known(message, message_id)

    def _delay(self, delivery: spi.Delivery, seconds: float) -> None:
        if self._connection.capabilities.redelivery_delay:
            self._mover.delay_at_broker(delivery, seconds)
            return
        self._in_flight.acquire_over_limit()
        self._put(delivery, seconds)

    def _put(self, delivery: spi.Delivery, seconds: float) -> None:
        with self._lock:
            self.delayed.put(delivery, seconds)


class SuspectIsolation:
    """Decides when messages are prefetched: only after a connection has delivered a message that is not suspect.

    Not thread-safe.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.

    Attributes:
        active: True while messages are received one by one.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        can, last = connection.capabilities, endpoint.settings.redelivery.last_action
        self._endpoint = endpoint
        self.active = endpoint.isolates_suspects = (
            can.delivery_count and can.exact_credit and not can.counts_handovers and isinstance(last, Delete | Move)
        )
        self._left = self._needed = 1  # number of messages without suspicion until the isolation ends

    def split(self, chunk: Sequence[spi.Delivery]) -> tuple[Sequence[spi.Delivery], Sequence[spi.Delivery]]:
        """Divide received messages into messages to deliver now and messages to release. Record whether any is suspect.

        Returns:
            The first messages without suspicion, or one suspect; and all later messages.
        """
        if not self._endpoint.isolates_suspects:
            return chunk, ()
        suspects = (place for place, delivery in enumerate(chunk) if self._endpoint.is_suspect(delivery))
        first = next(suspects, None)
        if first is None:
            self._left -= len(chunk)
            self.active = self.active and self._left > 0
            return chunk, ()
        if not self.active:
            self._needed = min(2 * self._needed, _MOST_UNSUSPECTED)
        self.active, self._left = True, self._needed
        return chunk[: max(first, 1)], chunk[max(first, 1) :]


class IsolatingReceiver:
    """Receives the messages of one consumer. Prefetches no messages while suspects arrive. For one thread.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
        redelivery: Releases messages.
        order: The order in which deliveries are settled.

    Attributes:
        consumer: The consumer.
    """

    def __init__(
        self, endpoint: Endpoint, connection: spi.Connection, redelivery: RedeliveryProcessor, order: spi.Order
    ) -> None:
        settings = endpoint.settings
        self._redelivery = redelivery
        self._window = endpoint.limits.prefetch_messages
        self._isolation = SuspectIsolation(endpoint, connection)
        self.consumer = connection.consumer(
            settings.source,
            selector=settings.selector,
            order=order,
            window=0 if self._isolation.active else None,
            **spi.together(connection, settings.batch_size or 1),
        )

    @property
    def isolates(self) -> bool:
        """True while messages are received one by one: a message must not wait here while a handler is active."""
        return self._isolation.active

    def receive(self, limit: int, timeout: float | None) -> Sequence[spi.Delivery]:
        """Receive as the consumer does: messages without suspicion, or one suspect with nothing prefetched after it."""
        before = self._isolation.active
        chunk = self.consumer.receive(1 if before else limit, timeout)
        now, later = self._isolation.split(chunk)
        if self._isolation.active is not before and isinstance(self.consumer, spi.ResizableConsumer):
            self.consumer.resize(self._window if before else 0)
        if self._isolation.active and not before:
            later = [*later, *self.consumer.drain()]
        if later:
            self._redelivery.release(self.consumer, later)
        return now
