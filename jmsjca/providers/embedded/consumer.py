"""Consumers and browsers of the embedded broker: they find messages, and consumers claim them."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import dropwhile
from typing import NamedTuple, TypeAlias, cast

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, StoredMessage
from jmsjca.providers.embedded.store.messages import (
    Lease,
    Row,
    candidates_by_id,
    claim,
    dead_letter,
    expire,
    has_due,
    make_due_ready,
    next_due,
    ready_messages,
    release,
    release_as_handed_over,
)
from jmsjca.providers.embedded.store.queues import QueueState, find_queue, is_oldest, read_queue, unregister_consumer
from jmsjca.providers.embedded.store.selector_scan import Candidate, CandidateQuery, QueueScan, condition_of
from jmsjca.providers.embedded.store.shared_file import UNRECORDED
from jmsjca.providers.embedded.store.store import Store
from jmsjca.spi import Delivery, Order

__all__ = ["ConsumerHandle", "EmbeddedConsumer", "browse"]

# A waiting consumer polls at this interval in seconds, in case a wakeup is lost or a process dies.
_SAFETY_POLL = 0.5

_DEFAULTS = DestinationSettings()
_Released: TypeAlias = tuple[Sequence[EmbeddedDelivery], list[str]]  # and the wakeup sockets of other processes
_Candidates = Callable[[sqlite3.Cursor, int | None], Iterable[Row]]  # takes the maximum number of deliveries


class ConsumerHandle(NamedTuple):
    """A registered consumer: the queue it consumes from, and its id."""

    queue_id: int
    consumer_id: int


class _Claimed(NamedTuple):
    """A claimed message that is not registered."""

    id: int
    lease: Lease


class _Claimer:
    """Claims the next messages of a queue that its consumer may receive.

    Args:
        store: The broker's database.
        handle: The queue and the consumer.
        selector: Only messages that match; None for all.
        max_bytes: Maximum size of one chunk in bytes; one message always passes.
        register: Creates and registers the deliveries of a claim. It is called under the lock of the store, so that
            `EmbeddedConsumer.close`, which takes the same lock, releases all of them.

    Attributes:
        closed: Set under the lock of the store; nothing is claimed after that.
    """

    def __init__(
        self,
        store: Store,
        handle: ConsumerHandle,
        selector: str | None,
        max_bytes: int,
        register: Callable[[Sequence[Row], Lease], Sequence[EmbeddedDelivery]],
    ) -> None:
        self._store = store
        self._queue_id, self._consumer_id = handle
        self._max_bytes = max_bytes
        self._register = register
        self._scan = QueueScan(store, self._queue_id, CandidateQuery(selector, self._consumer_id))
        self._selective = selector is not None
        self._busy = False
        self.closed = False

    def claim(self, limit: int) -> Sequence[EmbeddedDelivery]:
        """Claim the next messages, if there are any. Expired and failed ones do not hide those behind them.

        Args:
            limit: Maximum number of messages.

        Raises:
            JMSError: Messages of this queue cannot be released; others must not overtake them.
        """
        if self._store.postponed and not self._store.release_postponed(self._queue_id):
            return []
        claimed = None
        while claimed is None:
            claimed = self._claim_next(limit)
        return claimed

    def _claim_next(self, limit: int) -> Sequence[EmbeddedDelivery] | None:
        """Claim once; return None if all messages that were found are gone by now, so that the caller tries again."""
        if self._selective:
            found = self._find(limit)
            return self._claim_candidates(found) if found else []
        if self._busy or self._is_ready():  # a busy consumer takes the write lock without a check
            return self._claim(lambda cursor, _: ready_messages(cursor, self._queue_id, limit))
        return []

    def _is_ready(self) -> bool:
        with self._store.read() as cursor:
            state = read_queue(cursor, self._queue_id, self._store.now())
            # Messages that expired in other queues may be moved to this one.
            if state is None or not (state.ready or state.due or state.expired):
                return False
            return self._may_claim(cursor, state)

    def _find(self, limit: int) -> list[Candidate]:
        with self._store.read() as cursor:
            state = read_queue(cursor, self._queue_id, self._store.now())
            if state is None or not self._may_claim(cursor, state):
                return []
        if state.due or state.expired:
            state = self._process_due_and_expired()
        return [] if state is None else self._scan.find(state.returns, limit)

    def _process_due_and_expired(self) -> QueueState | None:
        """Make due messages ready, move or delete expired ones (some perhaps to this queue); return the new state."""
        store, now = self._store, self._store.now()
        with store.write(durable=False) as cursor:
            make_due_ready(cursor, self._queue_id, now)
            moved = expire(cursor, now)
            wakeup_paths = store.other_wakeup_paths(cursor) if moved else []
            state = read_queue(cursor, self._queue_id, now)
        if moved:
            store.wake_consumers(wakeup_paths)
        return state

    def _claim_candidates(self, found: Sequence[Candidate]) -> Sequence[EmbeddedDelivery] | None:
        ids = [candidate.id for candidate in found]
        used = 0
        try:
            claimed = self._claim(
                lambda cursor, max_deliveries: candidates_by_id(
                    cursor, self._queue_id, self._consumer_id, ids, max_deliveries
                )
            )
            used = ids.index(claimed[-1].id) + 1 if claimed else len(ids)
        finally:
            self._scan.put_back(found[used:])
        return claimed or None

    def _claim(self, candidates: _Candidates) -> Sequence[EmbeddedDelivery] | None:
        store = self._store
        lease = Lease(self._queue_id, store.owner, store.next_token())
        rows: Sequence[Row] = []
        with store.lock:  # until the deliveries are registered
            try:
                with store.write(durable=False) as cursor:
                    store.check_owner(cursor)
                    rows, moved = self._claim_in_transaction(cursor, lease, candidates)
                    wakeup_paths = store.other_wakeup_paths(cursor) if moved else []
                self._busy = bool(rows)
                claimed = self._register(rows, lease)
            except BaseException:  # of a signal handler: the claim may be committed
                self._give_back(rows, lease)
                raise
        if moved:
            store.wake_consumers(wakeup_paths)
        return claimed or (None if moved else [])

    def _give_back(self, rows: Sequence[Row], lease: Lease) -> None:
        """Release the messages of a claim whose caller was interrupted. The claim may or may not be committed."""
        store = self._store

        def job(cursor: sqlite3.Cursor) -> list[str]:
            """Release the messages, uncounted; return the paths to wake."""
            release(cursor, [_Claimed(row[0], lease) for row in rows], uncount=1)
            return store.other_wakeup_paths(cursor)

        if not rows:
            return
        try:
            with store.write() as cursor:
                wakeup_paths = job(cursor)
        except ConnectionLostError:
            return
        except JMSError as error:
            store.postpone(job, store.wake_consumers, [self._queue_id], error)
        else:
            store.wake_consumers(wakeup_paths)

    def _claim_in_transaction(
        self, cursor: sqlite3.Cursor, lease: Lease, candidates: _Candidates
    ) -> tuple[Sequence[Row], bool]:
        """Claim candidates; return them, and True if messages moved, so that consumers should look again."""
        now = self._store.now()
        state = read_queue(cursor, self._queue_id, now)
        if state is None or not self._may_claim(cursor, state):
            return [], False
        moved = state.expired and expire(cursor, now)
        if state.due:
            make_due_ready(cursor, self._queue_id, now)
        if state.grouped and not self._selective:
            self._selective = True
            return [], True
        settings = state.settings or _DEFAULTS
        max_deliveries = settings.max_deliveries
        rows, failed = claim(cursor, lease, candidates(cursor, max_deliveries), self._max_bytes, max_deliveries)
        dead_letter(cursor, failed, settings.dead_letter)
        return rows, moved or bool(failed)

    def _may_claim(self, cursor: sqlite3.Cursor, state: QueueState) -> bool:
        if self.closed:
            return False
        exclusive = state.settings is not None and state.settings.exclusive
        return not exclusive or is_oldest(cursor, self._queue_id, self._consumer_id)


class EmbeddedConsumer:
    """A consumer without prefetch: it claims exactly the messages that `receive` returns.

    Args:
        store: The broker's database.
        handle: The queue and the registered consumer.
        selector: Only messages that match; None for all.
        order: The order in which deliveries are settled.
        max_bytes: Maximum size of one chunk in bytes.
    """

    def __init__(
        self, store: Store, handle: ConsumerHandle, selector: str | None, order: Order, max_bytes: int
    ) -> None:
        self._store = store
        self._handle = handle
        self.queue_id = handle.queue_id
        self._claimer = _Claimer(store, handle, selector, max_bytes, self._register)
        self._woken = False
        self.order = order
        self.closed = self._released = False
        # In order of receipt. Other threads settle meanwhile, so each use is one atomic step, never a loop over it.
        self.unsettled: dict[EmbeddedDelivery, None] = {}

    def receive(self, limit: int, timeout: float | None) -> Sequence[EmbeddedDelivery]:
        """Claim the next messages, up to a limit; wait for the first one.

        Args:
            limit: Maximum number of messages.
            timeout: Seconds to wait; None waits forever, 0 does not wait.

        Raises:
            ConnectionLostError: The connection is closed, the file was removed, or another process took this one for
                dead.
        """
        try:
            return self._wait_and_claim(limit, timeout)
        except ConnectionLostError:
            if self.closed:  # another thread closed the consumer meanwhile
                return []
            raise

    def _wait_and_claim(self, limit: int, timeout: float | None) -> Sequence[EmbeddedDelivery]:
        clock = self._store.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        while True:
            seen = self._store.wakeups.value  # read before the check for messages: no wakeup in between is missed
            if self._consume_wake():
                break
            self._store.release_dead_owners()  # also under load, not only once the queue is empty
            chunk = self._claimer.claim(limit)
            if chunk:
                return chunk
            self._store.check_connected()  # otherwise nothing ever arrives, and that is no empty queue
            remaining = _SAFETY_POLL if deadline is None else deadline - clock.monotonic()
            if remaining <= 0:
                break
            self._store.listen_for_wakeups()
            self._store.wakeups.wait(seen, self._wait_seconds(remaining))
        return []

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release deliveries that belong to no unit, uncounted: as if they had never been received.

        If the file cannot be written, the release is repeated as `EmbeddedUnit.rollback` does.

        Raises:
            IllegalStateError: A delivery is settled or released already, or another consumer received it.
            ConnectionLostError: The connection is closed, or the file was removed.
        """
        ours = cast("Sequence[EmbeddedDelivery]", deliveries)
        for delivery in ours:
            self.check_held(delivery)
        unused = [d for d in ours if d.unit is None]
        job = partial(self._release, unused=unused)
        self._store.release_or_postpone(job, self._forget_released, [self.queue_id])

    def hand_over(self, deliveries: Sequence[Delivery]) -> None:
        """Record that the application gets deliveries now, so that they are counted however this process ends.

        In a file that is one store to mapped memory for each delivery. Settled deliveries are ignored.
        """
        record = self._store.hand_overs
        for delivery in cast("Sequence[EmbeddedDelivery]", deliveries):
            if delivery.slot is None and delivery in self.unsettled:
                delivery.slot = UNRECORDED if record is None else record.add(delivery.id, delivery.lease.token)

    def drain(self) -> Sequence[EmbeddedDelivery]:
        """Return an empty list: without prefetch no message is in flight."""
        return []

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        self._woken = True
        self._store.wakeups.notify()

    def close(self) -> None:
        """Release the deliveries that belong to no unit, uncounted; those of a unit stay with the unit.

        Raises:
            JMSError: The file cannot be written. The release is repeated.
        """
        if self._released:  # a signal handler may have interrupted an earlier call
            return
        try:
            self.discard()
        except ConnectionLostError:
            raise
        except JMSError as error:
            self._claimer.closed = True
            self._store.postpone(self._release_unused, self._forget_released, [self.queue_id], error)
            raise

    def discard(self) -> None:
        """Close this consumer as `close` does, but without repeating what fails.

        A registration that was rolled back leaves its id to the next consumer, which must not be removed later.
        """
        self.closed = True
        self.wake()
        with self._store.write() as cursor:
            released = self._release_unused(cursor)
        self._forget_released(released)
        self._released = True

    def release_all(self, cursor: sqlite3.Cursor) -> None:
        """Release all deliveries when the connection closes; those that were handed over stay counted."""
        self._release_unused(cursor)
        release_as_handed_over(cursor, [d for d in list(self.unsettled) if d.unit is not None])

    def received_after(self, delivery: EmbeddedDelivery) -> list[EmbeddedDelivery]:
        """Return the deliveries received after another one that belong to no unit; none if the order is free."""
        if self.order is Order.ANY:
            return []
        later = dropwhile(lambda d: d is not delivery, list(self.unsettled))
        return [d for d in later if d.unit is None]

    def forget(self, deliveries: Iterable[EmbeddedDelivery]) -> None:
        """Forget deliveries that are settled or released."""
        record = self._store.hand_overs
        for delivery in deliveries:
            # Another thread may forget it, too: its slot is freed once.
            if self.unsettled.pop(delivery, delivery) is None and record is not None and delivery.slot is not None:
                record.free(delivery.slot)

    def check_held(self, delivery: EmbeddedDelivery) -> None:
        """Check that this consumer received a delivery, and that it is not settled.

        Raises:
            IllegalStateError: It was settled, released, or received by another consumer.
        """
        if delivery not in self.unsettled:
            raise IllegalStateError("This delivery was settled or released already; it will be redelivered if it must.")

    def _consume_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken or self.closed

    def _register(self, rows: Sequence[Row], lease: Lease) -> Sequence[EmbeddedDelivery]:
        deliveries = [EmbeddedDelivery(row, lease, self) for row in rows]
        self.unsettled.update(dict.fromkeys(deliveries))
        return deliveries

    def _release(self, cursor: sqlite3.Cursor, unused: Sequence[EmbeddedDelivery]) -> _Released:
        release(cursor, unused, uncount=1)
        return unused, self._store.other_wakeup_paths(cursor)

    def _release_unused(self, cursor: sqlite3.Cursor) -> _Released:
        """Release the deliveries that belong to no unit, and unregister."""
        self._claimer.closed = True
        released = self._release(cursor, [d for d in list(self.unsettled) if d.unit is None])
        unregister_consumer(cursor, self._handle.consumer_id)
        return released

    def _forget_released(self, released: _Released) -> None:
        deliveries, wakeup_paths = released
        self.forget(deliveries)
        self._store.wake_consumers(wakeup_paths)

    def _wait_seconds(self, remaining: float) -> float:
        with self._store.read() as cursor:
            due = next_due(cursor, self.queue_id)
        until_due = _SAFETY_POLL if due is None else (due - self._store.now()) / 1000
        return max(min(remaining, _SAFETY_POLL, until_due), 0.001)


_CHUNK = 100
_PAGE = """SELECT urgency, id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest FROM message
           WHERE mailbox = ? AND owner IS NULL AND due IS NULL AND (urgency, id) > (?, ?)
             AND (expires IS NULL OR expires > ?)"""
_IN_ORDER = " ORDER BY urgency, id LIMIT ?"


def browse(store: Store, queue: Queue, selector: str | None, limit: int | None) -> Iterator[Sequence[StoredMessage]]:
    """Yield the waiting messages of a queue in chunks; each chunk shows the queue at the time when it is read.

    Args:
        store: The broker's database.
        queue: The queue to browse.
        selector: Only messages that match; None for all.
        limit: Maximum number of messages; None for all.
    """
    _make_ready(store, queue)
    last = (-1, -1)
    while limit is None or limit > 0:
        page = _page(store, queue, selector, last, min(limit or _CHUNK, _CHUNK))
        if not page:
            return
        yield [StoredMessage(row) for _, row in page]
        last = (page[-1][0], page[-1][1][0])
        limit = None if limit is None else limit - len(page)


def _make_ready(store: Store, queue: Queue) -> None:
    """Move due messages to their place in the order, if no consumer has done so yet."""
    now = store.now()
    with store.read() as cursor:
        queue_id = find_queue(cursor, queue)
        if queue_id is None or not has_due(cursor, queue_id, now):
            return
    with store.write(durable=False) as cursor:
        make_due_ready(cursor, queue_id, now)


def _page(store: Store, queue: Queue, selector: str | None, last: tuple[int, int], limit: int) -> list[tuple[int, Row]]:
    """Return the rows that follow `last`, each with its urgency."""
    where, parameters = condition_of(selector)
    with store.read() as cursor:
        place = (find_queue(cursor, queue), *last, store.now())
        rows = cursor.execute(_PAGE + where + _IN_ORDER, (*place, *parameters, limit)).fetchall()
    return [(row[0], row[1:]) for row in rows]
