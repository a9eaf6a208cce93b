"""A consumer of one mailbox: finds and claims messages, and keeps track of what it holds."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile
from typing import NamedTuple, cast

from jmsjca.config import DestinationSettings
from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.store.consumers import is_first, unregister
from jmsjca.providers.embedded.store.messages import (
    Hold,
    Row,
    bury,
    claim,
    expire,
    make_ready,
    next_due,
    of_ids,
    ready,
    release,
)
from jmsjca.providers.embedded.store.queues import Mailbox, read_mailbox
from jmsjca.providers.embedded.store.selector_scan import Found, Match, Scan
from jmsjca.providers.embedded.store.store import Store
from jmsjca.spi import Delivery, Order

__all__ = ["Claims", "EmbeddedConsumer", "Position"]

# A waiter looks by itself this often, in seconds, should a ring get lost or a process die.
_SAFETY_POLL = 0.5

_DEFAULTS = DestinationSettings()
_Candidates = Callable[[sqlite3.Cursor, int | None], Iterable[Row]]  # with how often a message is delivered at most


class Position(NamedTuple):
    """Where a consumer stands: its mailbox, and its number among all consumers."""

    mailbox: int
    number: int


class Claims:
    """Claims what a consumer may take.

    Args:
        store: The broker's database.
        position: Whose messages, under which number.
        selector: Which of them; None for all.
        max_bytes: The largest size of one chunk; one message always passes.
        keep: Makes deliveries of a claim, under the lock of the store: whoever closes the consumer there knows of all.

    Attributes:
        closed: Set under the lock of the store; then nothing is claimed any more.
    """

    def __init__(
        self,
        store: Store,
        position: Position,
        selector: str | None,
        max_bytes: int,
        keep: Callable[[Sequence[Row], Hold], Sequence[EmbeddedDelivery]],
    ) -> None:
        self._store = store
        self._mailbox, self._number = position
        self._max_bytes = max_bytes
        self._keep = keep
        self._scan = Scan(store, self._mailbox, Match(selector, self._number))
        self._choosy = selector is not None
        self._busy = False
        self.closed = False

    def claim(self, limit: int) -> Sequence[EmbeddedDelivery]:
        """Claim the next messages, if there are any; what had expired or failed does not hide what is behind it.

        Args:
            limit: How many at most.
        """
        claimed = None
        while claimed is None:
            claimed = self._claim_next(limit)
        return claimed

    def _claim_next(self, limit: int) -> Sequence[EmbeddedDelivery] | None:
        """None if all that was found is gone by now, so that there is reason to look again."""
        if self._choosy:
            found = self._find(limit)
            return self._claim_found(found) if found else []
        if self._busy or self._is_ready():  # a busy consumer need not look before it takes the lock
            return self._claim(lambda cursor, _: ready(cursor, self._mailbox, limit))
        return []

    def _is_ready(self) -> bool:
        with self._store.read() as cursor:
            state = read_mailbox(cursor, self._mailbox, self._store.now())
            if state is None or not (state.ready or state.due or state.expired):  # what expired elsewhere may come here
                return False
            return self._may_claim(cursor, state)

    def _find(self, limit: int) -> list[Found]:
        with self._store.read() as cursor:
            state = read_mailbox(cursor, self._mailbox, self._store.now())
            if state is None or not self._may_claim(cursor, state):
                return []
        if state.due or state.expired:
            state = self._bring_up_to_date()
        return [] if state is None else self._scan.find(state.returns, limit)

    def _bring_up_to_date(self) -> Mailbox | None:
        """Let what is due by now be ready, and what has expired go where it belongs: that may be here."""
        store, now = self._store, self._store.now()
        with store.write(durable=False) as cursor:
            make_ready(cursor, self._mailbox, now)
            moved = expire(cursor, now)
            doorbells = store.other_doorbells(cursor) if moved else []
            state = read_mailbox(cursor, self._mailbox, now)
        if moved:
            store.ring(doorbells)
        return state

    def _claim_found(self, found: Sequence[Found]) -> Sequence[EmbeddedDelivery] | None:
        ids = [candidate.id for candidate in found]
        used = 0
        try:
            claimed = self._claim(lambda cursor, most: of_ids(cursor, self._mailbox, self._number, ids, most))
            used = ids.index(claimed[-1].id) + 1 if claimed else len(ids)
        finally:
            self._scan.put_back(found[used:])
        return claimed or None

    def _claim(self, candidates: _Candidates) -> Sequence[EmbeddedDelivery] | None:
        store = self._store
        hold = Hold(self._mailbox, store.owner, store.next_token())
        with store.lock:  # until the claim is kept
            with store.write(durable=False) as cursor:
                store.check_owner(cursor)
                rows, moved = self._take(cursor, hold, candidates)
                doorbells = store.other_doorbells(cursor) if moved else []
            self._busy = bool(rows)
            claimed = self._keep(rows, hold)
        if moved:
            store.ring(doorbells)
        return claimed or (None if moved else [])

    def _take(self, cursor: sqlite3.Cursor, hold: Hold, candidates: _Candidates) -> tuple[Sequence[Row], bool]:
        """Claim what is there by now; tell whether there is reason to look again, here or elsewhere."""
        now = self._store.now()
        state = read_mailbox(cursor, self._mailbox, now)
        if state is None or not self._may_claim(cursor, state):
            return [], False
        moved = state.expired and expire(cursor, now)
        if state.due:
            make_ready(cursor, self._mailbox, now)
        if state.grouped and not self._choosy:
            self._choosy = True
            return [], True
        settings = state.settings or _DEFAULTS
        most = settings.max_deliveries
        rows, failed = claim(cursor, hold, candidates(cursor, most), self._max_bytes, most)
        bury(cursor, failed, settings.dead_letter)
        return rows, moved or bool(failed)

    def _may_claim(self, cursor: sqlite3.Cursor, state: Mailbox) -> bool:
        if self.closed:
            return False
        exclusive = state.settings is not None and state.settings.exclusive
        return not exclusive or is_first(cursor, self._mailbox, self._number)


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

    def release(self, deliveries: Sequence[Delivery]) -> None:
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
