"""The deliveries of a consumer: those that wait to be received, and those that are out."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import cast

from jmsjca.errors import IllegalStateError
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.spi import Delivery, Order

__all__ = ["Shelf"]


class Shelf:
    """Its consumer guards it with a lock.

    Args:
        order: How the deliveries are settled.

    Attributes:
        ready: Not received yet, in order.
        size: How many bytes those are.
        outstanding: Received and not settled, by their handles, in order of receipt.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self.ready: deque[AMQPDelivery] = deque()
        self.size = 0
        self.outstanding: dict[int, AMQPDelivery] = {}

    def put(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Add what arrived."""
        self.ready.extend(deliveries)
        self.size += sum([len(d.encoded) for d in deliveries])

    def hand_out(self, limit: int) -> list[AMQPDelivery]:
        """Let so many at most be received."""
        chunk = [self.ready.popleft() for _ in range(min(limit, len(self.ready)))]
        self.size -= sum(len(d.encoded) for d in chunk)
        self.outstanding.update((d.handle, d) for d in chunk)
        return chunk

    def own(self, deliveries: Sequence[Delivery]) -> list[AMQPDelivery]:
        """Check that deliveries are ours and not settled.

        Raises:
            IllegalStateError: One was settled, given back, or received by somebody else.
        """
        ours = cast("Sequence[AMQPDelivery]", deliveries)
        for delivery in ours:
            if self.outstanding.get(delivery.handle) is not delivery:
                raise IllegalStateError(
                    "This delivery was settled or given back already; it will come again if it must."
                )
        return list(ours)

    def unclaimed(self) -> list[AMQPDelivery]:
        """Everything that no unit took; nothing waits any more."""
        self.hand_out(len(self.ready))
        return [d for d in self.outstanding.values() if d.unit is None]

    def with_later(self, deliveries: Sequence[AMQPDelivery]) -> list[AMQPDelivery]:
        """Deliveries together with all that must go back with them to keep the order, in that order."""
        back = {d.handle: d for d in deliveries}
        if back and self._order is not Order.ANY:
            first = min(back)
            held = [*self.outstanding.values(), *self.ready]
            back |= {d.handle: d for d in held if d.unit is None and d.handle > first}
            self._wait_again([d for d in self.ready if d.handle < first])
        return [back[handle] for handle in sorted(back)]

    def take_in(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int]) -> None:
        """Let deliveries wait again, for another attempt; those that were failures are counted."""
        back = self.with_later(deliveries)
        self.let_go(back)
        again = [d.again(counted=d.handle in counted) for d in back]
        self._wait_again(sorted([*again, *self.ready], key=lambda d: d.handle))

    def let_go(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Forget deliveries that are settled or given back."""
        for delivery in deliveries:
            self.outstanding.pop(delivery.handle, None)

    def clear(self) -> None:
        """Forget what waits: it comes again to somebody else."""
        self._wait_again(())

    def _wait_again(self, deliveries: Sequence[AMQPDelivery]) -> None:
        self.ready = deque(deliveries)
        self.size = sum(len(d.encoded) for d in deliveries)
