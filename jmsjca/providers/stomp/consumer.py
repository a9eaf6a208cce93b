"""A consumer: hands out what the broker sends ahead, and keeps what comes again."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Protocol, cast

from jmsjca.config import Clock
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.providers.stomp.delivery import Arrival, STOMPDelivery
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.frames import Frame
from jmsjca.spi import Delivery, Order

if TYPE_CHECKING:
    from jmsjca.providers.stomp.unit import STOMPUnit

__all__ = ["STOMPConsumer", "Supply"]


class Supply(Protocol):
    """The broker's side of a consumer: subscriptions that let so many messages be unsettled."""

    def short(self, held: int, size: int) -> bool:
        """True if the broker sends no more as long as so many messages, of so many bytes, are unsettled."""
        ...

    def extend(self, wanted: int) -> None:
        """Let more messages be unsettled, if the source allows it."""
        ...

    def barrier(self) -> None:
        """Wait until what was on its way is here."""
        ...

    def stop(self, unsettled: Callable[[], Sequence[Frame]]) -> None:
        """Give everything back to the broker: what is unsettled, and what still comes."""
        ...


class STOMPConsumer:
    """What is rolled back or given back stays here and comes again: over STOMP no message goes back by itself.

    Args:
        source: Where the messages come from.
        dialect: How the broker writes them.
        supply: Makes the subscriptions, told what takes their frames.
        order: How they are settled.
        max_bytes: The largest size of one chunk.
        clock: Where time comes from.
    """

    def __init__(
        self,
        source: Destination,
        dialect: Dialect,
        supply: Callable[[Callable[[Sequence[Frame]], None]], Supply],
        *,
        order: Order,
        max_bytes: int,
        clock: Clock,
    ) -> None:
        self._source = source
        self._dialect = dialect
        self._order = order
        self._max_bytes = max_bytes
        self._clock = clock
        self._changed = threading.Condition()
        self._places = count()
        self._ready: deque[Arrival] = deque()
        self._outstanding: dict[int, STOMPDelivery] = {}
        self._woken = False
        self._lost: JMSError | None = None
        self._closed = False
        self._stopped = False
        self._supply = supply(self._arrive)

    def receive(self, limit: int, timeout: float | None) -> Sequence[STOMPDelivery]:
        """Take what came, up to a limit; wait for the first one.

        Args:
            limit: How many at most.
            timeout: Seconds to wait; None waits for ever, 0 does not wait.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            with self._changed:
                chunk = self._wait(limit, deadline)
            if chunk is not None:
                return chunk
            self._supply.extend(limit)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Keep deliveries that no unit took, to be received again as if for the first time."""
        with self._changed:
            self._check_lost()
            unused = [d for d in self._own(deliveries) if d.unit is None]
            self._keep(d.arrival for d in unused)

    def drain(self) -> Sequence[STOMPDelivery]:
        """Give what was on its way. The broker goes on sending when something is settled: STOMP knows no stop."""
        self._supply.barrier()
        with self._changed:
            return self._hand_out(len(self._ready), max_bytes=None)

    def wake(self) -> None:
        """Let a waiting `receive` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Give everything back that no unit took; the broker gets it when the last unit has ended."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._keep(d.arrival for d in list(self._outstanding.values()) if d.unit is None)
        self._stop_if_done()

    def take(self, delivery: STOMPDelivery, unit: "STOMPUnit") -> None:
        """Let a unit have a delivery.

        Raises:
            IllegalStateError: It is settled, given back or another unit's.
        """
        with self._changed:
            self._own([delivery])
            if delivery.unit is not None:
                raise IllegalStateError("This delivery is another unit's already.")
            delivery.unit = unit

    def acknowledged_by(self, deliveries: Sequence[STOMPDelivery]) -> Sequence[Frame]:
        """The frames whose acknowledgement settles these deliveries, and no others.

        Raises:
            IllegalStateError: The broker would settle others too, which came before them and are not settled yet.
        """
        if not (self._order is Order.PREFIX and self._dialect.settles_up_to):
            return [d.arrival.frame for d in deliveries]
        with self._changed:
            self._check_prefix(deliveries)
        in_order = sorted((d.arrival for d in deliveries), key=_place)
        return list({arrival.frame.headers["subscription"]: arrival.frame for arrival in in_order}.values())

    def settle(self, deliveries: Iterable[STOMPDelivery]) -> None:
        """Forget deliveries that a unit settled, or lost."""
        with self._changed:
            for delivery in deliveries:
                self._outstanding.pop(delivery.arrival.place, None)
        self._stop_if_done()

    def roll_back(self, deliveries: Sequence[STOMPDelivery], spared: set[int]) -> None:
        """Let deliveries of a unit come again, counted but for the spared ones; `PREFIX` also what came later."""
        with self._changed:
            again = [d.arrival.again(counted=id(d) not in spared) for d in deliveries]
            if self._order is not Order.ANY:
                first = min(d.arrival.place for d in deliveries)
                later = [d for d in self._outstanding.values() if d.unit is None and d.arrival.place > first]
                again += [d.arrival for d in later]
            self._keep(again)
        self._stop_if_done()

    def fail(self, error: JMSError) -> None:
        """Let waiting and later calls know that the connection is lost."""
        with self._changed:
            self._lost = error
            self._changed.notify_all()

    @property
    def source(self) -> Destination:
        """Where the messages come from."""
        return self._source

    @property
    def done(self) -> bool:
        """True if it is closed and no unit holds anything of it."""
        return self._stopped

    def _arrive(self, frames: Sequence[Frame]) -> None:
        with self._changed:
            for frame in frames:
                before = frame.headers.get("redelivered") == "true"
                self._ready.append(Arrival(frame, next(self._places), 1 + before, before))
            self._changed.notify_all()

    def _wait(self, limit: int, deadline: float | None) -> Sequence[STOMPDelivery] | None:
        """A chunk; None if the broker will not send one by itself."""
        while True:
            if self._woken or self._closed:
                self._woken = False
                return []
            self._check_lost()
            chunk = self._hand_out(limit, self._max_bytes)
            remaining = None if deadline is None else deadline - self._clock.monotonic()
            if chunk or (remaining is not None and remaining <= 0):
                return chunk
            if self._short():
                return None
            self._changed.wait(remaining)

    def _short(self) -> bool:
        size = sum(d.arrival.frame.size for d in self._outstanding.values())
        return bool(self._outstanding) and self._supply.short(len(self._outstanding), size)

    def _hand_out(self, limit: int, max_bytes: int | None) -> list[STOMPDelivery]:
        chunk: list[STOMPDelivery] = []
        size = 0
        while self._ready and len(chunk) < limit:
            size += len(self._ready[0].frame.body)
            if chunk and max_bytes is not None and size > max_bytes:
                break
            chunk.append(STOMPDelivery(self._ready.popleft(), self._source, self._dialect, self))
        self._outstanding.update((d.arrival.place, d) for d in chunk)
        return chunk

    def _keep(self, arrivals: Iterable[Arrival]) -> None:
        again = list(arrivals)
        for arrival in again:
            self._outstanding.pop(arrival.place, None)
        self._ready = deque(sorted([*again, *self._ready], key=_place))
        self._changed.notify_all()

    def _own(self, deliveries: Sequence[Delivery]) -> list[STOMPDelivery]:
        ours = cast("Sequence[STOMPDelivery]", deliveries)
        for delivery in ours:
            if self._outstanding.get(delivery.arrival.place) is not delivery:
                raise IllegalStateError(
                    "This delivery was settled or given back already; it will come again if it must."
                )
        return list(ours)

    def _check_prefix(self, deliveries: Sequence[STOMPDelivery]) -> None:
        ours = {d.arrival.place for d in deliveries}
        first_left = min(
            (p for p in (*self._outstanding, *(a.place for a in self._ready)) if p not in ours), default=None
        )
        if first_left is not None and first_left < max(ours):
            raise IllegalStateError(
                "A message that came earlier is not settled yet, and this consumer settles in the order of receipt:"
                " commit that one's unit first, or make the consumer with Order.ANY or MIXED."
            )

    def _check_lost(self) -> None:
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost)) from self._lost

    def _stop_if_done(self) -> None:
        with self._changed:
            stop = self._closed and not self._outstanding and not self._stopped
            self._stopped = self._stopped or stop
        if stop:
            self._supply.stop(self._left)

    def _left(self) -> list[Frame]:
        with self._changed:
            return [arrival.frame for arrival in self._ready]


def _place(arrival: Arrival) -> int:
    return arrival.place
