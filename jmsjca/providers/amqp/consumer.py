"""Consumers and browsers over AMQP: prefetch, credit, receive, release and settle."""

import itertools
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jmsjca.config import Limits
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.delivery import AMQPDelivery, FailureCounts, ReceivedMessage, ReturnOrder
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import Disposition, accept, modify_failed, release
from jmsjca.providers.amqp.links.credit import ByteBudget, PrefetchWindow
from jmsjca.providers.amqp.links.receiver import ReceiverLink
from jmsjca.providers.amqp.links.source import Source
from jmsjca.providers.brokers.profile import CreditStyle
from jmsjca.providers.common.consumer import BaseConsumer
from jmsjca.spi import Delivery, Order

__all__ = ["AMQPConsumer", "browse"]

_YIELD_SECONDS = 3e-5

_CHUNK_SIZE = 100


class AMQPConsumer(BaseConsumer[AMQPDelivery]):
    """Prefetches messages within its window, and returns them in chunks. It is the listener of its link.

    Args:
        engine: The engine of the connection.
        source: The source terminus of the link.
        origin: The source as messages name it, and properties of its broker.
        order: The order in which deliveries are settled.
        window: The number of messages to prefetch; 0 disables prefetching.
        limits: The limits of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
        credit: How the broker revokes credit.
        failure_counts: Failures on this connection that the broker does not count.
        redelivers_locally: True if released messages stay in this consumer until it is closed.
        drops_returned: True if the broker drops a message that was returned some times, whether it was handled or not.
            Then nothing is prefetched, whatever the window is, in order each chunk is one message, and what was not
            handled stays in this consumer until it is closed.
        selects: Returns True for messages to deliver; the others are acknowledged when they arrive. None for all.

    Attributes:
        origin: The source as messages name it, and properties of its broker.
        drops_returned: As above.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        origin: ReceiveContext,
        *,
        order: Order,
        window: int,
        limits: Limits,
        reply_timeout: float,
        credit: CreditStyle = "drain",
        failure_counts: FailureCounts,
        redelivers_locally: bool,
        drops_returned: bool = False,
        selects: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(order)
        self._engine = engine
        self._link = ReceiverLink(
            engine,
            source,
            self,
            limits.message_bytes,
            reply_timeout,
            credit=credit,
        )
        self._prefetch = PrefetchWindow(0, limits.prefetch_bytes)
        self.drops_returned = drops_returned
        self.resize(window)
        self._waiting = 0  # number of threads that wait for a message
        self._draining = 0  # number of threads that wait for the end of a drain
        self._accepted: deque[AMQPDelivery] = deque()  # acknowledged, but not written yet
        self._accept_scheduled = False  # whether the engine thread is going to write these
        self._keeps_order_returned = credit == "rabbitmq4"
        self._failure_counts = failure_counts
        self._redelivers_locally = redelivers_locally
        self._selects = selects
        self._return_order: ReturnOrder | None = None
        self._newest = 0  # the number of the newest delivery
        self.origin = origin

    @property
    def units(self) -> list[Any]:
        """The units that hold deliveries of this consumer, one entry for each delivery."""
        with self._lock:
            return [d.unit for d in self._buffer.unsettled.values() if d.unit is not None]

    def open(self) -> None:
        """Attach the link.

        Raises:
            JMSError: The broker refuses the link.
        """
        self._link.attach()
        with self._changed:
            self._grant_credit()

    def receive(self, limit: int, timeout: float | None) -> Sequence[AMQPDelivery]:
        """Return the next deliveries; wait for the first one.

        Args:
            limit: The maximum number of deliveries.
            timeout: Seconds to wait; None waits forever, 0 does not wait.
        """
        limit = 1 if self.drops_returned and self.order is not Order.ANY else limit
        with self._changed:
            if self._error is not None:
                raise self._error
            if self.closed:
                raise IllegalStateError("This consumer is closed.")
            self._prefetch.limit = limit
            self._grant_credit()
            woken = self._wait(timeout)
            must_drain = timeout == 0 and not self._buffer.ready
        if must_drain:
            self._drain_until_empty()
        elif not self._prefetch.window:
            self._drain_link()  # without prefetching, messages that have not arrived are left to other consumers
        chunk: list[AMQPDelivery] = []
        with self._changed:
            if not woken:
                if self._error is not None:  # lost since the wait: the messages that it found are gone
                    raise self._error
                chunk = self._buffer.take(limit)
            granted = self._prefetch.window > 0 and self._grant_credit()
        if granted and len(chunk) > 1:
            self._yield_to_engine()
        expected = self._return_order and self._out_of_order(chunk)
        if expected is None:
            return chunk
        self._requeue_in_order(chunk, (), expected)
        return self.receive(limit, timeout)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release deliveries that no unit took; to keep the order, later ones are released with them."""
        self.requeue([], [d for d in self._owned(deliveries) if d.unit is None])

    def drain(self) -> Sequence[AMQPDelivery]:
        """Revoke the credit, and return the deliveries that were in flight."""
        self._drain_link()
        with self._changed:
            self.check_link()  # a link lost during the drain has no messages in flight any more
            return self._buffer.take(len(self._buffer.ready))

    def resize(self, window: int) -> None:
        """Change the number of messages to prefetch, from the next `receive` on; 0 disables prefetching.

        Nothing is prefetched in any case if the broker drops returned messages.
        """
        with self._lock:
            self._prefetch.window, self._prefetch.limit = 0 if self.drops_returned else window, 0

    def revoke_credit(self) -> None:
        """Revoke the credit, so that released messages do not return to this consumer."""
        self._engine.submit(self._link.revoke_credit)

    def close(self) -> None:
        """Release deliveries that no unit took. Deliveries of units stay with them."""
        with self._changed:
            if self.closed:
                return
            self._mark_closed()
        if self._error is not None:
            self.forget(self._buffer.unassigned())  # the broker has requeued them
            return
        self._drain_link()
        self._release_unassigned()
        if self._keeps_order_returned:
            self._restore_order()
        self.close_if_finished()

    def close_nowait(self) -> None:
        """Release deliveries without waiting. The connection closes, which returns messages in flight."""
        with self._changed:
            self._mark_closed()
        self._release_unassigned(wait=False)

    def detach(self) -> None:
        """Close the link, and wait until the broker has: it returns what units of this consumer hold."""
        self._link.close()

    def close_if_finished(self) -> None:
        """Close the link of a closed consumer once no unit holds a delivery."""
        if self.closed and not self._buffer.unsettled and self._error is None:
            self._link.close()

    def accept_nowait(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Acknowledge without waiting. Acknowledgements until the engine thread runs are written together.

        Raises:
            ConnectionLostError: The connection is lost.
        """
        self._engine.check_open()
        with self._lock:  # a scheduled write includes everything that is appended before it starts
            self._accepted.extend(deliveries)
            if not self._accept_scheduled:
                self._accept_scheduled = True
                self._engine.submit_nowait(self._write_accepted, urgent=False)

    def settle(self, deliveries: Sequence[AMQPDelivery], update: Disposition) -> None:
        """Settle deliveries with an outcome. On the engine thread."""
        self._link.settle([d.sequence for d in deliveries], update)

    def reject_nowait(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Return deliveries of a unit without waiting, with an incremented delivery count."""
        self._settle(deliveries, {d.sequence for d in deliveries}, wait=False)

    def requeue(self, failed: Sequence[AMQPDelivery], unused: Sequence[AMQPDelivery]) -> None:
        """Return deliveries to the broker: the failed ones with an incremented delivery count, the unused ones without.

        To keep the order, all deliveries after the first of them that no unit took are released with them.
        """
        self._requeue_in_order([*failed, *unused], {d.sequence for d in failed})

    def check_link(self) -> None:
        """Raise the error that ended the link, if any; the broker has then requeued its messages."""
        if self._error is not None:
            raise self._error

    def round_trip(self) -> "Future[bool]":
        """Return a future that completes once the broker has processed earlier settlements. On the engine thread."""
        return self._link.round_trip()

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Buffer complete messages. On the engine thread."""
        now, failures = time.time(), self._failure_counts.counts_for(messages)
        numbered = zip(itertools.count(first), messages, failures, strict=False)
        deliveries = [AMQPDelivery(encoded, sequence, self, now, failed) for sequence, encoded, failed in numbered]
        if self._selects is not None:
            deliveries = self._selected(deliveries, self._selects)
        with self._changed:
            self._newest = first + len(messages) - 1
            self._buffer.append(deliveries)
            self._prefetch.on_messages(list(map(len, messages)))
            self._grant_on_arrival()
            self._changed.notify_all()

    def on_credit_changed(self, more: int) -> None:
        """Record that credit was revoked, or had to be increased. On the engine thread."""
        with self._changed:
            self._prefetch.credit += more

    def on_credit_lost(self) -> None:
        """Grant credit again. On the engine thread."""
        with self._changed:
            self._grant_credit()

    def on_link_failed(self, error: JMSError) -> None:
        """Discard all deliveries that the broker requeues. On the engine thread."""
        self.on_connection_lost(error)
        self._accepted.clear()

    def _selected(self, deliveries: Sequence[AMQPDelivery], selects: Callable[[bytes], bool]) -> list[AMQPDelivery]:
        """Return the deliveries to buffer, and acknowledge the others. On the engine thread."""
        selected = [delivery for delivery in deliveries if selects(delivery.encoded)]
        kept = {delivery.sequence for delivery in selected}
        self.settle([delivery for delivery in deliveries if delivery.sequence not in kept], accept)
        return selected

    def _wait(self, timeout: float | None) -> bool:
        """Wait for a message; return True if `wake` was called."""
        self._waiting += 1
        try:
            self._changed.wait_for(
                lambda: self._buffer.ready or self._woken or self.closed or self._error is not None, timeout
            )
        finally:
            self._waiting -= 1
        if self._error is not None:
            raise self._error
        woken, self._woken = self._woken or self.closed, False  # the close wakes all waiting threads
        return woken

    def _mark_closed(self) -> None:
        self.closed = True
        self._woken = True
        self._changed.notify_all()

    def _grant_on_arrival(self) -> None:
        """Grant credit for the free part of the prefetch window, unless a drain is running."""
        if self._prefetch.window and not self._draining:
            self._grant_credit()

    def _grant_to_waiting(self) -> None:
        """Grant credit again to waiting threads: a drain for requeued deliveries has revoked theirs."""
        with self._changed:
            if self._waiting and not self._draining:
                self._grant_credit()

    def _grant_credit(self) -> bool:
        """Grant missing credit; return True if credit was missing."""
        if self._error is not None or self.closed:
            return False
        missing = self._prefetch.credit_to_grant(len(self._buffer.ready), self._buffer.size)
        if missing:
            self._engine.submit_nowait(partial(self._link.grant, missing))
        return missing > 0

    def _yield_to_engine(self) -> None:
        """Wait until the engine thread writes the granted credit: messages arrive while the caller handles this chunk.

        Python switches threads every 5 ms (`sys.setswitchinterval`); a short chunk may be finished earlier.
        """
        time.sleep(_YIELD_SECONDS)

    def _drain_until_empty(self) -> None:
        """Drain until a message has arrived or the broker confirms that it has none; do not wait for new messages."""
        while not self._drain_link():
            with self._changed:
                if self._buffer.ready or self._error is not None or self.closed:
                    return
                self._grant_credit()

    def _drain_link(self) -> bool:
        """Revoke the credit and wait until messages in flight have arrived; return True if the broker has no more."""
        with self._changed:
            self._draining += 1
        try:
            return self._link.drain()
        finally:
            with self._changed:
                self._draining -= 1

    def _write_accepted(self) -> None:
        """Write recorded acknowledgements. On the engine thread."""
        self._accept_scheduled = False  # first: deliveries appended from now on are written now or scheduled again
        accepted = [self._accepted.popleft() for _ in range(len(self._accepted))]
        with suppress(JMSError):  # a failed link must not affect others; `check_link` reports its error
            self.settle(accepted, accept)

    def _release_unassigned(self, *, wait: bool = True) -> None:
        """Release all deliveries that no unit took."""
        with self._changed:
            self._buffer.take(len(self._buffer.ready))
            unassigned = self._buffer.unassigned()
            self._buffer.forget(unassigned)  # from now on no unit can take them
        self._settle(unassigned, (), wait=wait)

    def _settle(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], *, wait: bool = True) -> None:
        # A broker that does not count deliveries may not support the outcome "modified" (AMQP 1.0 section 3.4.5).
        failed = modify_failed if self.origin.counts_deliveries else release
        if (
            self.origin.counts_deliveries and wait
        ):  # without waiting: the connection closes, and no message returns over it
            self._failure_counts.record(d for d in deliveries if d.sequence in counted)
        states = [(d.sequence, failed if d.sequence in counted else release) for d in deliveries]
        (self._engine.call if wait else self._engine.submit)(partial(self._link.settle_each, states))
        self.forget(deliveries)

    def _requeue_in_order(
        self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], expected: ReturnOrder | None = None
    ) -> None:
        if self._redelivers_locally and not self.closed:  # the broker would requeue them after newer messages
            self._requeue_here(deliveries, counted)
            return
        if self.drops_returned and not self.closed and (self.order is Order.ANY or not counted):
            self._requeue_here([each for each in deliveries if each.sequence not in counted])
            deliveries = [each for each in deliveries if each.sequence in counted]
        if self.order is not Order.ANY and deliveries:
            self._drain_link()
        with self._changed:
            ready = list(self._buffer.ready)
            returned = self._buffer.with_later(deliveries)
            if self.order is not Order.ANY and returned and not self.drops_returned:
                unreceived = [each for each in ready if each.sequence >= returned[0].sequence]
                own = ReturnOrder.of(returned, self._newest)
                self._return_order = expected or own.merged_with(self._return_order, unreceived)
            self._buffer.forget([each for each in returned if each.unit is None])  # from now on no unit can take them
        for step in expected.in_settlement_order(returned) if expected else [returned]:
            self._settle(step, counted)
        self._grant_to_waiting()
        self.close_if_finished()

    def _requeue_here(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int] = ()) -> None:
        with self._changed:
            self._buffer.requeue(self._buffer.with_later(deliveries), counted)
            self._changed.notify_all()

    def _restore_order(self) -> None:
        """Return messages once more that were returned in several steps: RabbitMQ 4 keeps them in that order."""
        expected = self._return_order
        if expected is None or not expected.in_steps:
            return
        self._engine.submit_nowait(partial(self._link.grant, len(expected.hashes)))
        self._drain_link()
        with self._changed:
            chunk = self._buffer.take(len(self._buffer.ready))
            self._buffer.forget(chunk)
        for step in expected.in_settlement_order(chunk):
            self._settle(step, ())

    def _out_of_order(self, chunk: Sequence[AMQPDelivery]) -> ReturnOrder | None:
        """Return the expected order if a chunk violates it, else None."""
        if self._return_order is None or self._return_order.is_kept_by(chunk):
            self._return_order = self._return_order and self._return_order.after(chunk)
            return None
        return self._return_order.retry()


class _ChunkListener:
    """Collects the messages of one chunk."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.encoded: list[bytes] = []

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Collect messages."""
        self.sequences += range(first, first + len(messages))
        self.encoded += messages

    def on_credit_changed(self, more: int) -> None:
        """Ignore it: each chunk is requested with a fixed credit."""

    def on_credit_lost(self) -> None:
        """Ignore it: the chunk is smaller."""

    def on_link_failed(self, error: JMSError) -> None:
        """Ignore it: the thread that waits for the chunk gets the error from the link."""


def browse(
    engine: Engine,
    source: Source,
    origin: ReceiveContext,
    limits: Limits,
    reply_timeout: float,
    *,
    limit: int | None,
) -> Iterator[Sequence[ReceivedMessage]]:
    """Yield the messages of a queue, in chunks.

    Args:
        engine: The engine of the connection.
        source: The source terminus of the link.
        origin: The source as messages name it, and properties of its broker.
        limits: The limits of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
        limit: The maximum number of messages; None for all.

    Yields:
        Chunks of messages, in order.
    """
    listener = _ChunkListener()
    link = ReceiverLink(engine, source, listener, limits.message_bytes, reply_timeout)
    budget = ByteBudget(limits.prefetch_bytes)
    link.attach()
    end, may_have_more = link.close, True
    try:
        while limit is None or limit > 0:
            chunk = _receive_chunk(
                engine, link, listener, min(limit or _CHUNK_SIZE, _CHUNK_SIZE, budget.messages_that_fit(0))
            )
            if chunk is None:
                if not may_have_more:
                    return
                may_have_more = False  # a busy Artemis ended a queue too early, once in thousands of browsers
                continue
            may_have_more = may_have_more or bool(chunk)
            budget.on_messages([len(encoded) for encoded in chunk])
            found = [ReceivedMessage(encoded, origin) for encoded in chunk]
            yield [message for message in found if not _is_expired(message, origin.source)]
            limit = None if limit is None else limit - len(chunk)
    except GeneratorExit:  # raised by the garbage collector, too, perhaps on the engine thread: do not wait
        end = link.close_nowait
        raise
    finally:
        end()


def _is_expired(found: ReceivedMessage, source: Destination | None) -> bool:
    """Return True for an expired message. Browsers see those until the broker removes them.

    A message that was sent to another destination is shown: ActiveMQ moves expired ones to its dead-letter queue, as
    they are, where consumers get them.
    """
    try:
        expiration, sent_to = found.message.expiration, found.message.destination
    except MessageFormatError:
        return False
    return expiration is not None and expiration <= datetime.now(UTC) and sent_to == source


def _receive_chunk(engine: Engine, link: ReceiverLink, listener: _ChunkListener, size: int) -> list[bytes] | None:
    """Return up to `size` messages; None if the broker has no more."""
    engine.call(partial(link.grant, size))
    no_more = link.drain()
    chunk, sequences = listener.encoded, listener.sequences
    listener.encoded, listener.sequences = [], []
    engine.call(partial(link.settle, sequences, accept))
    return chunk if chunk or not no_more else None
