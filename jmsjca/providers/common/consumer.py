"""The base of consumers: buffered deliveries, unsettled deliveries, and waiting for more."""

import threading
from collections import deque
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.spi import Delivery, Order

__all__ = ["BaseConsumer", "BufferedDelivery", "DeliveryBuffer"]


class BufferedDelivery(Delivery, Protocol):
    """A delivery of a `DeliveryBuffer`.

    Attributes:
        unit: The unit that took it; None as long as none did.
    """

    unit: Any

    @property
    def sequence(self) -> int:
        """The position in the order of arrival; unique within its consumer."""
        ...

    def for_redelivery(self, *, counted: bool) -> Self:
        """Return a new delivery of the same message; the old one can no longer be settled."""
        ...


D = TypeVar("D", bound=BufferedDelivery)


class DeliveryBuffer(Generic[D]):
    """Deliveries of a consumer: buffered until they are received, then unsettled. The consumer guards it with a lock.

    Args:
        order: The order in which deliveries are settled.

    Attributes:
        ready: Buffered deliveries, not received yet, in order.
        size: The size of `ready` in bytes.
        unsettled: Received and unsettled deliveries by their sequence numbers, in order of receipt.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self.ready: deque[D] = deque()
        self.size = 0
        self.unsettled: dict[int, D] = {}

    def append(self, deliveries: Sequence[D]) -> None:
        """Append deliveries that have arrived."""
        self.ready.extend(deliveries)
        self.size += sum([d.size for d in deliveries])

    def take(self, limit: int) -> list[D]:
        """Move up to `limit` ready deliveries to the unsettled ones and return them."""
        chunk = list(islice(self.ready, limit))
        for delivery in chunk:
            self.ready.popleft()
            self.size -= delivery.size
            self.unsettled[delivery.sequence] = delivery
        return chunk

    def owned(self, deliveries: Sequence[Delivery]) -> list[D]:
        """Return deliveries after `check` of each."""
        ours = cast("Sequence[D]", deliveries)
        for delivery in ours:
            self.check(delivery)
        return list(ours)

    def check(self, delivery: D) -> None:
        """Raise an error unless a delivery belongs to this consumer and is unsettled.

        Raises:
            IllegalStateError: The delivery was settled, returned, or received by another consumer.
        """
        if self.unsettled.get(delivery.sequence) is not delivery:
            raise IllegalStateError(
                "This delivery was already settled or released. Unless it was acknowledged, its message is redelivered."
            )

    def assign_to_unit(self, deliveries: Sequence[D], unit: Any) -> None:
        """Assign deliveries to a unit, all or none.

        Raises:
            IllegalStateError: As `check`, or a delivery is assigned to another unit.
        """
        for number, delivery in enumerate(deliveries):
            if delivery.unit is not None or self.unsettled.get(delivery.sequence) is not delivery:
                for assigned in deliveries[:number]:
                    assigned.unit = None
                self.check(delivery)
                raise IllegalStateError("This delivery already belongs to another unit.")
            delivery.unit = unit

    def unassigned(self) -> list[D]:
        """Return unsettled deliveries that no unit took."""
        return [d for d in self.unsettled.values() if d.unit is None]

    def with_later(self, deliveries: Sequence[D]) -> list[D]:
        """Return deliveries, sorted, with all that must be returned together with them to keep the order.

        Later ones are removed from `ready`.
        """
        returned = {d.sequence: d for d in deliveries}
        if returned and self._order is not Order.ANY:
            first = min(returned)
            held = [*self.unsettled.values(), *self.ready]
            returned |= {d.sequence: d for d in held if d.unit is None and d.sequence > first}
            self._set_ready([d for d in self.ready if d.sequence < first])
        return [returned[sequence] for sequence in sorted(returned)]

    def requeue(self, deliveries: Sequence[D], counted: Collection[int] = ()) -> None:
        """Put deliveries back into `ready` for another attempt; `counted` has the sequence numbers of failed ones."""
        self.forget(deliveries)
        renewed = [d.for_redelivery(counted=d.sequence in counted) for d in deliveries]
        self._set_ready(sorted([*renewed, *self.ready], key=lambda d: d.sequence))

    def forget(self, deliveries: Sequence[D]) -> None:
        """Remove deliveries that are settled or returned."""
        for delivery in deliveries:
            self.unsettled.pop(delivery.sequence, None)

    def clear(self) -> None:
        """Discard the ready deliveries; the broker redelivers them to other consumers."""
        self._set_ready(())

    def _set_ready(self, deliveries: Sequence[D]) -> None:
        self.ready = deque(deliveries)
        self.size = sum([d.size for d in deliveries])


class BaseConsumer(Generic[D]):
    """A consumer with a buffer of deliveries; implements the part that its units use.

    Args:
        order: The order in which its deliveries are settled.

    Attributes:
        order: The same.
        closed: True once the consumer is closed.
    """

    def __init__(self, order: Order) -> None:
        self._lock = threading.RLock()  # the condition's; entering it directly is cheaper than entering the condition
        self._changed = threading.Condition(self._lock)
        self._buffer: DeliveryBuffer[D] = DeliveryBuffer(order)
        self._woken = False
        self._error: JMSError | None = None
        self.order = order
        self.closed = False

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def hand_over(self, deliveries: Sequence[Delivery]) -> None:
        """Do nothing: the broker counts deliveries to this process."""

    def assign_to_unit(self, deliveries: Sequence[D], unit: Any) -> None:
        """Assign deliveries to a unit, all or none.

        Raises:
            IllegalStateError: A delivery is settled, returned or assigned to a unit.
            ConnectionLostError: The connection is lost.
        """
        with self._lock:
            self._check_connected()
            self._buffer.assign_to_unit(deliveries, unit)

    def forget(self, deliveries: Sequence[D]) -> None:
        """Remove deliveries that are settled or returned."""
        with self._lock:
            self._buffer.forget(deliveries)

    def on_connection_lost(self, error: JMSError) -> None:
        """Discard the ready deliveries; waiting and later calls raise an error with this reason."""
        with self._changed:
            self._error = error
            self._buffer.clear()
            self._changed.notify_all()

    @property
    def is_finished(self) -> bool:
        """True if the consumer is closed and no unit holds a delivery of it."""
        return self.closed and not self._buffer.unsettled

    def _owned(self, deliveries: Sequence[Delivery]) -> list[D]:
        self._check_connected()
        return self._buffer.owned(deliveries)

    def _check_connected(self) -> None:
        if self._error is not None:
            raise ConnectionLostError(str(self._error)) from self._error
