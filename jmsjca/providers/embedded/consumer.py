"""Consumers and browsers of the embedded broker: they find messages, and consumers claim them."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, cast

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Queue, Subscription
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.providers.embedded.delivery import (
    EmbeddedDelivery,
    Lease,
    Row,
    StoredMessage,
    UnsettledDeliveries,
    settled_error,
)
from jmsjca.providers.embedded.store.messages import (
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
    release_claim,
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


class ConsumerHandle(NamedTuple):
    """A registered consumer: the queue it consumes from, and its id."""

    queue_id: int
    consumer_id: int


class _Claimer:
    """Claims the next messages of a queue that its consumer may receive.

    Args:
        store: The broker's database.
        handle: The queue and the consumer.
        selector: Only messages that match; None for all.
        max_bytes: Maximum size of one chunk in bytes; one message always passes.
        unsettled: Where the deliveries of a claim are registered. That happens under the lock of the store, so that
            `EmbeddedConsumer.close`, which takes the same lock, releases all of them.

    Attributes:
        closed: Set under the lock of the store; nothing is claimed after that.
        lease: The lease of a claim that has not registered its deliveries: its call still runs, or was interrupted.
    """

    def __init__(
        self,
        store: Store,
        handle: ConsumerHandle,
        selector: str | None,
        max_bytes: int,
        unsettled: UnsettledDeliveries,
    ) -> None:
        self._store = store
        self._queue_id, self._consumer_id = handle
        self._max_bytes = max_bytes
        self._unsettled = unsettled
        self.lease: Lease | None = None
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
            return self._claim(limit)
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
            claimed = self._claim(len(ids), ids)
            used = ids.index(claimed[-1].id) + 1 if claimed else len(ids)
        finally:
            self._scan.put_back(found[used:])
        return claimed or None

    def _claim(self, limit: int, ids: Sequence[int] | None = None) -> Sequence[EmbeddedDelivery] | None:
        """Claim the next messages, or the messages with some ids; see `_claim_next`."""
        store = self._store
        with store.lock:  # until the deliveries are registered
            self.lease = lease = Lease(self._queue_id, store.owner, store.next_token())
            try:
                with store.write(durable=False) as cursor:
                    store.check_owner(cursor)
                    rows, moved = self._claim_in_transaction(cursor, lease, limit, ids)
                    wakeup_paths = store.other_wakeup_paths(cursor) if moved else []
            except TransactionInDoubtError as error:
                store.postpone(partial(self._release_claim, lease), store.wake_consumers, [self._queue_id], error)
                raise
            self._busy = bool(rows)
            claimed = [EmbeddedDelivery(row, lease, self._unsettled) for row in rows]
            self._unsettled.update(dict.fromkeys(claimed))
            self.lease = None
        if moved:
            store.wake_consumers(wakeup_paths)
        return claimed or (None if moved else [])

    def _release_claim(self, lease: Lease, cursor: sqlite3.Cursor) -> list[str]:
        release_claim(cursor, lease)
        return self._store.other_wakeup_paths(cursor)

    def _claim_in_transaction(
        self, cursor: sqlite3.Cursor, lease: Lease, limit: int, ids: Sequence[int] | None
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
        found: Iterable[Row]
        if ids is None:
            found = ready_messages(cursor, self._queue_id, limit)
        else:
            found = candidates_by_id(cursor, self._queue_id, self._consumer_id, ids, max_deliveries)
        rows, failed = claim(cursor, lease, found, self._max_bytes, max_deliveries)
        if failed:
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
        self.unsettled = UnsettledDeliveries(order)
        self._claimer = _Claimer(store, handle, selector, max_bytes, self.unsettled)
        self._woken = False
        self.closed = self._released = False

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
            if self.closed:  # another thread closed the consumer during the wait
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
            until_due = self._seconds_until_due()
            remaining = _SAFETY_POLL if deadline is None else deadline - clock.monotonic()
            if remaining <= 0:
                break
            self._store.listen_for_wakeups()
            self._store.wakeups.wait(seen, max(min(remaining, _SAFETY_POLL, until_due), 0.001))
        return []

    def _seconds_until_due(self) -> float:
        """Return the seconds until the next scheduled message is due.

        A removed file, or one whose processes took this one for dead, looks like an empty queue for ever: that is an
        error.
        """
        store = self._store
        store.database.check_identity()
        with store.read() as cursor:
            store.check_owner(cursor)
            due = next_due(cursor, self.queue_id)
        return _SAFETY_POLL if due is None else (due - store.now()) / 1000

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release deliveries that belong to no unit, uncounted: as if they had never been received.

        If the file cannot be written, the release is repeated as `EmbeddedUnit.rollback` does.

        Raises:
            IllegalStateError: A delivery is settled or released already, or another consumer received it.
            ConnectionLostError: The connection is closed, or the file was removed.
        """
        ours = cast("Sequence[EmbeddedDelivery]", deliveries)
        if any(delivery not in self.unsettled for delivery in ours):
            raise settled_error()
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
        """Release the deliveries that belong to no unit, uncounted. Deliveries of a unit stay with the unit.

        Raises:
            JMSError: The file cannot be written. The release is repeated.
        """
        if self._released:  # an earlier call may have been interrupted
            return
        self.closed = True
        self.wake()
        try:
            with self._store.write() as cursor:
                released = self._release_unused(cursor)
        except ConnectionLostError:
            raise
        except JMSError as error:
            self._claimer.closed = True
            self._store.postpone(self._release_unused, self._forget_released, [self.queue_id], error)
            raise
        self._forget_released(released)
        self._released = True

    def release_all(self, cursor: sqlite3.Cursor) -> None:
        """Release all deliveries when the connection closes; those that were handed over stay counted."""
        self._release_unused(cursor)
        release_as_handed_over(cursor, [d for d in list(self.unsettled) if d.unit is not None])

    def _consume_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken or self.closed

    def _release(self, cursor: sqlite3.Cursor, unused: Sequence[EmbeddedDelivery]) -> _Released:
        release(cursor, unused, uncount=1)
        return unused, self._store.other_wakeup_paths(cursor)

    def _release_unused(self, cursor: sqlite3.Cursor) -> _Released:
        """Release the deliveries in no unit and the deliveries of an interrupted claim, and unregister."""
        self._claimer.closed = True
        released = self._release(cursor, self.unsettled.in_no_unit())
        if self._claimer.lease is not None:
            release_claim(cursor, self._claimer.lease)
        unregister_consumer(cursor, self._handle.consumer_id)
        return released

    def _forget_released(self, released: _Released) -> None:
        deliveries, wakeup_paths = released
        self._store.forget(deliveries)
        self._store.wake_consumers(wakeup_paths)


_CHUNK = 100
_PAGE = """SELECT urgency, id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), checksum FROM message
           WHERE queue_id = ? AND owner IS NULL AND due IS NULL AND (urgency, id) > (?, ?)
             AND (expires IS NULL OR expires > ?)"""
_IN_ORDER = " ORDER BY urgency, id LIMIT ?"


def browse(
    store: Store, queue: Queue | Subscription, selector: str | None, limit: int | None
) -> Iterator[Sequence[StoredMessage]]:
    """Yield the waiting messages of a queue in chunks; each chunk shows the queue at the time when it is read.

    Args:
        store: The broker's database.
        queue: The queue to browse, or the durable subscription.
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


def _make_ready(store: Store, queue: Queue | Subscription) -> None:
    """Move due messages to their place in the order, if no consumer has done so yet."""
    now = store.now()
    with store.read() as cursor:
        queue_id = find_queue(cursor, queue)
        if queue_id is None or not has_due(cursor, queue_id, now):
            return
    with store.write(durable=False) as cursor:
        make_due_ready(cursor, queue_id, now)


def _page(
    store: Store, queue: Queue | Subscription, selector: str | None, last: tuple[int, int], limit: int
) -> list[tuple[int, Row]]:
    """Return the rows that follow `last`, each with its urgency."""
    where, parameters = condition_of(selector)
    with store.read() as cursor:
        place = (find_queue(cursor, queue), *last, store.now())
        rows = cursor.execute(_PAGE + where + _IN_ORDER, (*place, *parameters, limit)).fetchall()
    return [(row[0], row[1:]) for row in rows]
