"""A STOMP consumer: buffers prefetched messages, and redelivers released ones itself."""

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, count, islice

from jmsjca.config import Clock
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.providers.common.consumer import BaseConsumer
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.delivery import STOMPDelivery
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.subscription import SubscriptionSet
from jmsjca.spi import Delivery, Order

__all__ = ["STOMPConsumer"]


class STOMPConsumer(BaseConsumer[STOMPDelivery]):
    """A consumer that redelivers rolled-back and released messages itself: over STOMP none can be returned alone.

    Args:
        source: The destination that the messages come from.
        dialect: The dialect of the broker.
        supply: Opens the subscriptions, given the callback for their frames.
        order: The order in which deliveries are settled.
        max_bytes: The largest size of one chunk, in bytes on the wire.
        clock: Source of time.
    """

    def __init__(
        self,
        source: Destination,
        dialect: Dialect,
        supply: Callable[[Callable[[Sequence[Frame]], None]], SubscriptionSet],
        *,
        order: Order,
        max_bytes: int,
        clock: Clock,
    ) -> None:
        super().__init__(order)
        self._max_bytes = max_bytes
        self._clock = clock
        self._sequence = count()
        self._unsubscribed = False
        self.source = source
        self.dialect = dialect
        self._subscriptions = supply(self._on_frames)

    def receive(self, limit: int, timeout: float | None) -> Sequence[STOMPDelivery]:
        """Return received messages up to a limit; wait for the first one.

        Args:
            limit: The largest number of messages.
            timeout: Seconds to wait; None waits forever, 0 does not wait.
        """
        self._fork_guard.check()
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            with self._changed:
                chunk = self._wait(limit, deadline)
            if chunk is not None:
                return chunk
            self._subscriptions.add_subscription(limit)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Requeue deliveries that no unit took, without counting an attempt."""
        self._fork_guard.check()
        with self._changed:
            self._requeue([d for d in self._owned(deliveries) if d.unit is None])

    def drain(self) -> Sequence[STOMPDelivery]:
        """Return the messages that were in flight. The broker sends more after each settlement: STOMP has no drain."""
        self._fork_guard.check()
        self._subscriptions.barrier()
        with self._changed:
            self._check_connected()
            return self._buffer.take(len(self._buffer.ready))

    def close(self) -> None:
        """Requeue everything that no unit took; it returns to the broker when the last unit has ended."""
        if self._fork_guard.in_child:
            return
        try:
            with self._changed:
                if self.closed:
                    return
                self.closed = True
                self._requeue(self._buffer.unassigned())
            self._unsubscribe_if_finished()
        except JMSError:
            raise
        except BaseException:  # of a signal handler: a second call would return nothing to the broker
            self._subscriptions.abort("The close of a consumer was interrupted.")
            raise

    def frames_to_acknowledge(self, deliveries: Sequence[STOMPDelivery]) -> Sequence[Frame]:
        """Return the frames to acknowledge in order to settle exactly these deliveries.

        Raises:
            IllegalStateError: The broker would also settle earlier messages that are not settled yet.
        """
        if not (self.order is Order.PREFIX and self.dialect.acks_cumulatively):
            return [d.frame for d in deliveries]
        with self._changed:
            self._check_prefix(deliveries)
        in_order = sorted(deliveries, key=lambda d: d.sequence)
        return list({d.frame.headers["subscription"]: d.frame for d in in_order}.values())

    def settle(self, deliveries: Sequence[STOMPDelivery]) -> None:
        """Forget deliveries that a unit settled, or lost with the connection."""
        self.forget(deliveries)
        self._unsubscribe_if_finished()

    def requeue(self, failed: Sequence[STOMPDelivery], unused: Sequence[STOMPDelivery]) -> None:
        """Requeue deliveries of a unit, the failed ones counted, and later ones with them where order must hold."""
        with self._changed:
            self._requeue(self._buffer.with_later([*failed, *unused]), {d.sequence for d in failed})
        self._unsubscribe_if_finished()

    def _on_frames(self, frames: Sequence[Frame]) -> None:
        deliveries = [STOMPDelivery(frame, place, self) for frame, place in zip(frames, self._sequence, strict=False)]
        with self._changed:
            self._buffer.append(deliveries)
            self._changed.notify_all()

    def _wait(self, limit: int, deadline: float | None) -> Sequence[STOMPDelivery] | None:
        """Return a chunk, or None if the broker sends nothing more on the present subscriptions."""
        while True:
            if self._woken or self.closed:
                self._woken = False
                return []
            self._check_connected()
            remaining = None if deadline is None else deadline - self._clock.monotonic()
            chunk = self._buffer.take(self._messages_that_fit(limit))
            if chunk or (remaining is not None and remaining <= 0):
                return chunk
            if self._needs_subscription():
                return None
            self._changed.wait(self._subscriptions.wait_time(remaining))

    def _messages_that_fit(self, limit: int) -> int:
        """Return how many buffered messages make a chunk: at least one, whatever its size."""
        sizes = accumulate(d.size for d in islice(self._buffer.ready, limit))
        return min(limit, max(1, sum(size <= self._max_bytes for size in sizes)))

    def _needs_subscription(self) -> bool:
        held = self._buffer.unsettled
        if not held:
            return self._subscriptions.needs_renewal()
        return self._subscriptions.is_exhausted(len(held), sum(d.size for d in held.values()))

    def _requeue(self, deliveries: Sequence[STOMPDelivery], counted: Collection[int] = ()) -> None:
        self._buffer.requeue(deliveries, counted)
        self._changed.notify_all()

    def _check_prefix(self, deliveries: Sequence[STOMPDelivery]) -> None:
        ours = {d.sequence for d in deliveries}
        left = (*self._buffer.unsettled, *(d.sequence for d in islice(self._buffer.ready, 1)))
        if min((handle for handle in left if handle not in ours), default=max(ours)) < max(ours):
            raise IllegalStateError(
                "A message that came earlier is not settled yet, and this consumer settles in the order of receipt:"
                " commit that one's unit first, or make the consumer with Order.ANY or MIXED."
            )

    def _unsubscribe_if_finished(self) -> None:
        with self._changed:
            stop = self.is_finished and not self._unsubscribed
            self._unsubscribed = self._unsubscribed or stop
        if stop:
            self._subscriptions.unsubscribe(self._buffered_frames)

    def _buffered_frames(self) -> list[Frame]:
        with self._changed:
            return [d.frame for d in self._buffer.ready]
