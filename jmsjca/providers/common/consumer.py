"""The base of consumers: buffered deliveries, unsettled deliveries, and waiting for more."""

import threading
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.forking import ForkGuard
from jmsjca.spi import Delivery, Order

__all__ = ["BaseConsumer", "BufferedDelivery", "DeliveryBuffer"]


class BufferedDelivery(Delivery, Protocol):
    """A delivery, as a shelf sees it.

    Attributes:
        unit: Which unit took it; None as long as none did.
    """

    unit: Any

    @property
    def sequence(self) -> int:
        """Names it; later ones have higher handles."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        ...

    def for_redelivery(self, *, counted: bool) -> Self:
        """The same message for another attempt; whoever has this delivery can do nothing with it any more."""
        ...


D = TypeVar("D", bound=BufferedDelivery)


class DeliveryBuffer(Generic[D]):
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
        self.ready: deque[D] = deque()
        self.size = 0
        self.unsettled: dict[int, D] = {}

    def append(self, deliveries: Sequence[D]) -> None:
        """Add what arrived."""
        self.ready.extend(deliveries)
        self.size += sum([d.size for d in deliveries])

    def take(self, limit: int) -> list[D]:
        """Let so many at most be received."""
        chunk = [self.ready.popleft() for _ in range(min(limit, len(self.ready)))]
        self.size -= sum([d.size for d in chunk])
        self.unsettled.update([(d.sequence, d) for d in chunk])
        return chunk

    def owned(self, deliveries: Sequence[Delivery]) -> list[D]:
        """Check that deliveries are ours and not settled. Raises as `check`."""
        ours = cast("Sequence[D]", deliveries)
        for delivery in ours:
            self.check(delivery)
        return list(ours)

    def check(self, delivery: D) -> None:
        """Check that a delivery is ours and not settled.

        Raises:
            IllegalStateError: It was settled, given back, or received by somebody else.
        """
        if self.unsettled.get(delivery.sequence) is not delivery:
            raise IllegalStateError("This delivery was settled or given back already; it will come again if it must.")

    def assign_to_unit(self, deliveries: Sequence[D], unit: Any) -> None:
        """Let a unit have deliveries, all or none.

        Raises:
            IllegalStateError: As `check`, or one is a unit's already.
        """
        for number, delivery in enumerate(deliveries):
            if delivery.unit is not None or self.unsettled.get(delivery.sequence) is not delivery:
                for claimed in deliveries[:number]:
                    claimed.unit = None
                self.check(delivery)
                raise IllegalStateError("This delivery is another unit's already.")
            delivery.unit = unit

    def unassigned(self) -> list[D]:
        """What was received and no unit took."""
        return [d for d in self.unsettled.values() if d.unit is None]

    def with_later(self, deliveries: Sequence[D]) -> list[D]:
        """Deliveries together with all that must go back with them to keep the order, in that order."""
        back = {d.sequence: d for d in deliveries}
        if back and self._order is not Order.ANY:
            first = min(back)
            held = [*self.unsettled.values(), *self.ready]
            back |= {d.sequence: d for d in held if d.unit is None and d.sequence > first}
            self._set_ready([d for d in self.ready if d.sequence < first])
        return [back[handle] for handle in sorted(back)]

    def requeue(self, deliveries: Sequence[D], counted: Collection[int] = ()) -> None:
        """Let deliveries wait again, for another attempt; those whose handles are counted have failed."""
        self.forget(deliveries)
        again = [d.for_redelivery(counted=d.sequence in counted) for d in deliveries]
        self._set_ready(sorted([*again, *self.ready], key=lambda d: d.sequence))

    def forget(self, deliveries: Sequence[D]) -> None:
        """Forget deliveries that are settled or given back."""
        for delivery in deliveries:
            self.unsettled.pop(delivery.sequence, None)

    def clear(self) -> None:
        """Forget what waits: it comes again to somebody else."""
        self._set_ready(())

    def _set_ready(self, deliveries: Sequence[D]) -> None:
        self.ready = deque(deliveries)
        self.size = sum([d.size for d in deliveries])


class BaseConsumer(Generic[D]):
    """A consumer as its units see it.

    Args:
        order: How its deliveries are settled.

    Attributes:
        order: The same.
        closed: True once nobody receives from it any more.
    """

    def __init__(self, order: Order) -> None:
        self._lock = threading.RLock()  # that of the condition: it costs less where nobody waits or is told
        self._changed = threading.Condition(self._lock)
        self._buffer: DeliveryBuffer[D] = DeliveryBuffer(order)
        self._woken = False
        self._error: JMSError | None = None
        self._home = ForkGuard()
        self.order = order
        self.closed = False

    def wake(self) -> None:
        """Let a waiting `receive` return."""
        if self._home.in_child:
            return  # a forked child: nobody waits here
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def assign_to_unit(self, deliveries: Sequence[D], unit: Any) -> None:
        """Let a unit have deliveries, all or none.

        Raises:
            IllegalStateError: One is settled, given back or a unit's already.
            ConnectionLostError: The connection is gone.
        """
        with self._lock:
            self._check_connected()
            self._buffer.assign_to_unit(deliveries, unit)

    def forget(self, deliveries: Sequence[D]) -> None:
        """Forget deliveries that are settled or given back."""
        with self._lock:
            self._buffer.forget(deliveries)

    def on_connection_lost(self, error: JMSError) -> None:
        """Nothing more will come: waiting and later calls learn why."""
        with self._changed:
            self._error = error
            self._buffer.clear()
            self._changed.notify_all()

    @property
    def is_finished(self) -> bool:
        """True if it is closed and no unit holds anything of it."""
        return self.closed and not self._buffer.unsettled

    def _owned(self, deliveries: Sequence[Delivery]) -> list[D]:
        self._check_connected()
        return self._buffer.owned(deliveries)

    def _check_connected(self) -> None:
        if self._error is not None:
            raise ConnectionLostError(str(self._error)) from self._error
