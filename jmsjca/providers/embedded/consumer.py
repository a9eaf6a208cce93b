"""A consumer of one mailbox: claims messages, keeps note of what it holds."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.providers.embedded.claiming import (
    Claimant,
    claim,
    has_due,
    is_ready,
    make_ready,
    next_due,
    of_ids,
    ready,
)
from jmsjca.providers.embedded.consumers import is_first, unregister
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, Row
from jmsjca.providers.embedded.failures import bury, expire
from jmsjca.providers.embedded.mailboxes import Mailbox, read_mailbox
from jmsjca.providers.embedded.matching import Match
from jmsjca.providers.embedded.rows import Hold, release
from jmsjca.providers.embedded.scan import Scan
from jmsjca.providers.embedded.store import Store
from jmsjca.spi import Delivery, Order

__all__ = ["EmbeddedConsumer", "Position"]

# A waiter looks by itself this often, in seconds, should a ring get lost or a process die.
_SAFETY_POLL = 0.5


class Position(NamedTuple):
    """Where a consumer stands: its mailbox, and its number among all consumers."""

    mailbox: int
    number: int


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
        self._mailbox, self._number = position
        self._max_bytes = max_bytes
        self._selective = selector is not None
        self._scan = Scan(store, self._mailbox, Match(selector, self._number))
        self._woken = False
        self.order = order
        self.closed = False
        self.outstanding: dict[int, EmbeddedDelivery] = {}  # in order of receipt

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
            chunk = self._claim(limit)
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
        self.let_go(unused)
        self._store.ring(self._store.submit(lambda cursor: self._release(cursor, unused)))

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
            unused = [d for d in self.outstanding.values() if d.unit is None]
            self.let_go(unused)
            release(cursor, unused, uncount=1)
            unregister(cursor, self._number)
            doorbells = self._store.other_doorbells(cursor)
        self._store.ring(doorbells)

    def later_than(self, delivery: EmbeddedDelivery) -> list[EmbeddedDelivery]:
        """What was received after a delivery and no unit took."""
        if self.order is Order.ANY:
            return []
        deliveries = list(self.outstanding.values())
        return [d for d in deliveries[deliveries.index(delivery) + 1 :] if d.unit is None]

    def let_go(self, deliveries: Iterable[EmbeddedDelivery]) -> None:
        """Forget deliveries that are settled or given back."""
        for delivery in deliveries:
            self.outstanding.pop(delivery.id, None)

    def check_held(self, delivery: EmbeddedDelivery) -> None:
        """Check that a delivery is ours and not settled.

        Raises:
            IllegalStateError: It was settled, given back, or received by somebody else.
        """
        if self.outstanding.get(delivery.id) is not delivery:
            raise IllegalStateError("This delivery was settled or given back already; it will come again if it must.")

    def _take_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken or self.closed

    def _claim(self, limit: int) -> Sequence[EmbeddedDelivery]:
        state = self._look()
        if state is None:
            return []
        if self._selective or state.grouped:
            return self._claim_found(state, limit)
        return self._claim_next(state, limit)

    def _look(self) -> Mailbox | None:
        """Read the mailbox; None if there is nothing for this consumer. Takes no lock unless messages became due."""
        store, now = self._store, self._store.now()
        with store.read() as cursor:
            state = read_mailbox(cursor, self._mailbox)
            if state is None or not self._may_claim(cursor, state):
                return None
            due = has_due(cursor, self._mailbox, now)
            if not due:
                return state if is_ready(cursor, self._mailbox) else None
        with store.write(durable=False) as cursor:
            make_ready(cursor, self._mailbox, now)
            return read_mailbox(cursor, self._mailbox)

    def _may_claim(self, cursor: sqlite3.Cursor, state: Mailbox) -> bool:
        exclusive = state.settings is not None and state.settings.exclusive
        return not exclusive or is_first(cursor, self._mailbox, self._number)

    def _claim_next(self, state: Mailbox, limit: int) -> Sequence[EmbeddedDelivery]:
        return self._hold(state, lambda cursor, _: ready(cursor, self._mailbox, limit))

    def _claim_found(self, state: Mailbox, limit: int) -> Sequence[EmbeddedDelivery]:
        found = self._scan.find(state, limit)
        if not found:
            return []
        ids = [candidate.id for candidate in found]
        left = 0
        try:
            deliveries = self._hold(state, lambda cursor, by: of_ids(cursor, by, ids))
            left = ids.index(deliveries[-1].id) + 1 if deliveries else len(ids)
        finally:
            self._scan.put_back(found[left:])
        return deliveries

    def _hold(
        self, state: Mailbox, rows: Callable[[sqlite3.Cursor, Claimant], Iterable[Row]]
    ) -> Sequence[EmbeddedDelivery]:
        store = self._store
        settings = state.settings
        most = settings.max_deliveries if settings else None
        hold = Hold(self._mailbox, store.owner, store.next_token())
        by = Claimant(hold, self._number, self._max_bytes)
        with store.read():  # held until the claims are noted: whoever closes this consumer gives all of them back
            with store.write(durable=False) as cursor:
                store.check_owner(cursor)
                moved = expire(cursor, store.now())
                claimed, failed = ([], []) if self.closed else claim(cursor, by, rows(cursor, by), most)
                bury(cursor, failed, settings.dead_letter if settings else None)
                doorbells = store.other_doorbells(cursor) if moved or failed else []
            deliveries = [EmbeddedDelivery(row, hold, self) for row in claimed]
            self.outstanding.update([(d.id, d) for d in deliveries])
        if moved or failed:
            store.ring(doorbells)  # also lets us look again, should all that was found have failed
        return deliveries

    def _release(self, cursor: sqlite3.Cursor, unused: Sequence[EmbeddedDelivery]) -> list[str]:
        release(cursor, unused, uncount=1)
        return self._store.other_doorbells(cursor)

    def _patience(self, remaining: float) -> float:
        with self._store.read() as cursor:
            due = next_due(cursor, self._mailbox)
        until_due = _SAFETY_POLL if due is None else (due - self._store.now()) / 1000
        return max(min(remaining, _SAFETY_POLL, until_due), 0.001)
