"""A consumer of one mailbox: claims messages, keeps note of what it holds."""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import dropwhile
from typing import cast

from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.providers.embedded.claiming import next_due
from jmsjca.providers.embedded.claims import Claims, Position
from jmsjca.providers.embedded.consumers import unregister
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, Row
from jmsjca.providers.embedded.rows import Hold, release
from jmsjca.providers.embedded.store import Store
from jmsjca.spi import Delivery, Order

__all__ = ["EmbeddedConsumer"]

# A waiter looks by itself this often, in seconds, should a ring get lost or a process die.
_SAFETY_POLL = 0.5


class EmbeddedConsumer:
    """Claims exactly what is asked for, so there is no prefetch that another consumer would miss.

    Args:
        store: The broker's database.
        position: Whose messages, under which number.
        selector: Which of them; None for all.
        order: How they are settled.
        max_bytes: The largest size of one chunk.
    """

    def __init__(self, store: Store, position: Position, selector: str | None, order: Order, max_bytes: int) -> None:
        self._store = store
        self._position = position
        self._claims = Claims(store, position, selector, max_bytes, self._keep)
        self._woken = False
        self.order = order
        self.closed = False
        # In order of receipt. Other threads settle meanwhile: each use of it is one step, and never a loop over it.
        self.outstanding: dict[EmbeddedDelivery, None] = {}

    def receive(self, limit: int, timeout: float | None) -> Sequence[EmbeddedDelivery]:
        """Claim the next messages, up to a limit; wait for the first one.

        Args:
            limit: How many at most.
            timeout: Seconds to wait; None waits for ever, 0 does not wait.
        """
        try:
            return self._wait_and_claim(limit, timeout)
        except ConnectionLostError:
            if self.closed:  # meanwhile, by another thread
                return []
            raise

    def _wait_and_claim(self, limit: int, timeout: float | None) -> Sequence[EmbeddedDelivery]:
        clock = self._store.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        while True:
            rings = self._store.bell.rings  # before anything is looked at, so that no ring in between is missed
            if self._take_wake():
                break
            self._store.reap()  # also under load: what the dead held must not wait until the queue is empty
            chunk = self._claims.claim(limit)
            if chunk:
                return chunk
            remaining = _SAFETY_POLL if deadline is None else deadline - clock.monotonic()
            if remaining <= 0:
                break
            self._store.listen()
            self._store.bell.wait(rings, self._patience(remaining))
        return []

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Return deliveries that no unit took; their count is as if they had never been received."""
        ours = cast("Sequence[EmbeddedDelivery]", deliveries)
        for delivery in ours:
            self.check_held(delivery)
        unused = [d for d in ours if d.unit is None]
        doorbells = self._store.submit(lambda cursor: self._release(cursor, unused))
        self.let_go(unused)
        self._store.ring(doorbells)

    def drain(self) -> Sequence[EmbeddedDelivery]:
        """Nothing is ever on its way: `receive` claims exactly what it returns."""
        return []

    def wake(self) -> None:
        """Let a waiting `receive` return."""
        self._woken = True
        self._store.bell.ring()

    def close(self) -> None:
        """Give back what no unit took; what a unit took stays with the unit."""
        if self.closed:
            return
        self.closed = True
        self.wake()
        with self._store.write() as cursor:
            self._claims.closed = True
            unused = [d for d in list(self.outstanding) if d.unit is None]
            release(cursor, unused, uncount=1)
            unregister(cursor, self._position.number)
            doorbells = self._store.other_doorbells(cursor)
        self.let_go(unused)
        self._store.ring(doorbells)

    def later_than(self, delivery: EmbeddedDelivery) -> list[EmbeddedDelivery]:
        """What was received after a delivery and no unit took."""
        if self.order is Order.ANY:
            return []
        later = dropwhile(lambda d: d is not delivery, list(self.outstanding))
        return [d for d in later if d.unit is None]

    def let_go(self, deliveries: Iterable[EmbeddedDelivery]) -> None:
        """Forget deliveries that are settled or given back."""
        for delivery in deliveries:
            self.outstanding.pop(delivery, None)

    def check_held(self, delivery: EmbeddedDelivery) -> None:
        """Check that a delivery is ours and not settled.

        Raises:
            IllegalStateError: It was settled, given back, or received by somebody else.
        """
        if delivery not in self.outstanding:
            raise IllegalStateError("This delivery was settled or given back already; it will come again if it must.")

    def _take_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken or self.closed

    def _keep(self, rows: Sequence[Row], hold: Hold) -> Sequence[EmbeddedDelivery]:
        deliveries = [EmbeddedDelivery(row, hold, self) for row in rows]
        self.outstanding.update(dict.fromkeys(deliveries))
        return deliveries

    def _release(self, cursor: sqlite3.Cursor, unused: Sequence[EmbeddedDelivery]) -> list[str]:
        release(cursor, unused, uncount=1)
        return self._store.other_doorbells(cursor)

    def _patience(self, remaining: float) -> float:
        with self._store.read() as cursor:
            due = next_due(cursor, self._position.mailbox)
        until_due = _SAFETY_POLL if due is None else (due - self._store.now()) / 1000
        return max(min(remaining, _SAFETY_POLL, until_due), 0.001)
