"""The message table: enqueue, claim, settle, release, expire, dead-letter."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from jmsjca.destinations import Destination, Topic
from jmsjca.providers.common.codec import UNDECODABLE, from_json
from jmsjca.providers.embedded.codec import Outgoing, checksum_with_headers, encode_headers, selector_values
from jmsjca.providers.embedded.store.queues import (
    DuplicateIds,
    Subscriber,
    check_exists,
    claim_group,
    count_added,
    count_removed,
    count_return,
    may_claim_group,
    open_queue,
    read_queue_settings,
    subscribers,
)

__all__ = [
    "Lease",
    "Row",
    "SenderInfo",
    "candidates_by_id",
    "claim",
    "dead_letter",
    "dead_letter_failed",
    "enqueue",
    "expire",
    "has_due",
    "make_due_ready",
    "next_due",
    "ready_messages",
    "release",
    "release_as_handed_over",
    "settle",
]

Row: TypeAlias = tuple[int, int, int | None, bytes, bytes | None, int | None]
"""A stored message: id, deliveries (this one included), expiration, headers, body, checksum."""

# The + makes SQLite search by the ids, not by the index of owners.
_SETTLE = "DELETE FROM message WHERE id BETWEEN ? AND ? AND +owner = ? AND token = ?"
_RELEASE = """UPDATE message SET owner = NULL, token = NULL, due = ?, deliveries = deliveries - ?
              WHERE id = ? AND owner = ? AND token = ?"""
# Messages that were held while their queue or subscription was removed have no queue to return to.
_DELETE_WITHOUT_QUEUE = """DELETE FROM message WHERE id = ? AND owner IS NULL
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE mailbox.id = message.mailbox)"""


class Lease(NamedTuple):
    """Lease on claimed messages: only its owner, with the token of that claim, can settle them."""

    queue_id: int
    owner: int
    token: int


class _Leased(Protocol):
    """A claimed message, as `settle` and `release` need it."""

    @property
    def id(self) -> int:
        """The id of the row."""
        ...

    @property
    def lease(self) -> Lease:
        """The lease of the claim."""
        ...


class _HandedOver(_Leased, Protocol):
    """A claimed message that may have been handed over."""

    slot: int | None


def settle(cursor: sqlite3.Cursor, deliveries: Sequence[_Leased]) -> bool:
    """Delete settled messages. Return False if a lease was lost; then the caller must roll back the transaction."""
    return sum(cursor.execute(_SETTLE, run).rowcount for run in _leased_ranges(deliveries)) == len(deliveries)


def release(
    cursor: sqlite3.Cursor, deliveries: Sequence[_Leased], *, uncount: Literal[0, 1], due: int | None = None
) -> None:
    """Release messages to their queue; those that reached the maximum of deliveries are dead-lettered.

    Args:
        cursor: A write transaction.
        deliveries: The messages; after a lost lease a message stays as it is.
        uncount: 1 to subtract this delivery from the delivery count.
        due: When they may be redelivered, in milliseconds since the epoch; None for at once.
    """
    cursor.executemany(_RELEASE, [(due, uncount, d.id, d.lease.owner, d.lease.token) for d in deliveries])
    cursor.executemany(_DELETE_WITHOUT_QUEUE, [(d.id,) for d in deliveries])
    queue_ids = {d.lease.queue_id for d in deliveries}
    count_return(cursor, queue_ids)
    for queue_id in queue_ids:
        dead_letter_failed(cursor, queue_id, [d.id for d in deliveries if d.lease.queue_id == queue_id])


def release_as_handed_over(cursor: sqlite3.Cursor, deliveries: Sequence[_HandedOver]) -> None:
    """Release messages whose processing was interrupted: those count as delivered that were handed over."""
    release(cursor, [d for d in deliveries if d.slot is None], uncount=1)
    release(cursor, [d for d in deliveries if d.slot is not None], uncount=0)


def _id_ranges(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Combine consecutive ids to ranges: a statement for a range costs as much as one for a row.

    >>> list(_id_ranges([4, 5, 6, 9]))
    [(4, 6), (9, 9)]
    """
    first = last = None
    for number in ids:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def _leased_ranges(deliveries: Iterable[_Leased]) -> Iterator[tuple[int, int, int, int]]:
    by_hold: dict[Lease, list[int]] = {}
    for delivery in deliveries:
        by_hold.setdefault(delivery.lease, []).append(delivery.id)
    for lease, ids in by_hold.items():
        for first, last in _id_ranges(sorted(ids)):
            yield first, last, lease.owner, lease.token


# Read as bytes: SQLite does not check that text is valid UTF-8, and a receive must not fail because of that.
_READY = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest FROM message
            WHERE mailbox = ? AND owner IS NULL AND due IS NULL AND bucket IS NULL ORDER BY urgency, id LIMIT ?"""
_READY_BY_ID = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest, bucket
                  FROM message
                  WHERE id = ? AND owner IS NULL AND due IS NULL"""
_HAS_DUE = "SELECT 1 FROM message WHERE mailbox = ? AND due <= ? LIMIT 1"
_NEXT_DUE = "SELECT min(due) FROM message WHERE mailbox = ? AND due IS NOT NULL"
_MAKE_DUE_READY = "UPDATE message SET due = NULL WHERE mailbox = ? AND due <= ?"
_CLAIM = "UPDATE message SET owner = ?, token = ?, deliveries = deliveries + 1 WHERE id BETWEEN ? AND ?"


def has_due(cursor: sqlite3.Cursor, queue_id: int, now: int) -> bool:
    """Return True if a scheduled message of a queue is due."""
    return bool(cursor.execute(_HAS_DUE, (queue_id, now)).fetchone())


def make_due_ready(cursor: sqlite3.Cursor, queue_id: int, now: int) -> None:
    """Move the due messages of a queue to its ready messages."""
    if cursor.execute(_MAKE_DUE_READY, (queue_id, now)).rowcount:
        count_return(cursor, [queue_id])


def next_due(cursor: sqlite3.Cursor, queue_id: int) -> int | None:
    """Return when the next scheduled message of a queue is due, in milliseconds since the epoch; None without one."""
    moment: int | None = cursor.execute(_NEXT_DUE, (queue_id,)).fetchone()[0]
    return moment


def ready_messages(cursor: sqlite3.Cursor, queue_id: int, limit: int) -> Iterable[Row]:
    """Return the next messages of a queue that belong to no group."""
    return cursor.execute(_READY, (queue_id, limit))


def candidates_by_id(
    cursor: sqlite3.Cursor, queue_id: int, consumer: int, ids: Sequence[int], max_deliveries: int | None
) -> Iterator[Row]:
    """Yield the messages that are still ready and in no group of another consumer, and claim their groups.

    A message that was delivered too often does not claim its group: the consumer would own it without a message.
    """
    for number in ids:
        values = cursor.execute(_READY_BY_ID, (number,)).fetchone()
        if values is None:  # another consumer was faster
            continue
        *fields, bucket = values
        row = cast("Row", tuple(fields))
        if bucket is not None:
            if not may_claim_group(cursor, queue_id, bucket, consumer):
                continue
            if not _exceeds_max_deliveries(row, max_deliveries):
                claim_group(cursor, queue_id, bucket, consumer)
        yield row


def claim(
    cursor: sqlite3.Cursor, lease: Lease, rows: Iterable[Row], max_bytes: int, max_deliveries: int | None
) -> tuple[list[Row], list[int]]:
    """Claim messages for the owner of a lease.

    Args:
        cursor: A write transaction.
        lease: The lease of this claim.
        rows: Candidates in order; those that exceed `max_bytes` are left.
        max_bytes: Maximum size of all bodies in bytes; one message always passes.
        max_deliveries: Maximum number of deliveries of a message; None for no limit.

    Returns:
        The claimed messages, and the ids of those that were delivered too often.
    """
    taken: list[Row] = []
    failed: list[int] = []
    size = 0
    for row in rows:
        if _exceeds_max_deliveries(row, max_deliveries):
            failed.append(row[0])
            continue
        taken.append(row)
        size += len(row[4] or b"")
        if size >= max_bytes:
            break
    for first, last in _id_ranges([row[0] for row in taken]):
        cursor.execute(_CLAIM, (lease.owner, lease.token, first, last))
    return taken, failed


def _exceeds_max_deliveries(row: Row, max_deliveries: int | None) -> bool:
    return max_deliveries is not None and row[1] > max_deliveries


_INSERT = """INSERT INTO message (mailbox, urgency, due, expires, bucket, digest, headers, body)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_MARK_GROUPED = "UPDATE mailbox SET grouped = 1 WHERE id = ? AND grouped = 0"

_Parameters = tuple[int | str | bytes | None, ...]


class SenderInfo(NamedTuple):
    """Identity and settings of a sender.

    Args:
        tags: Compared with the ``no_local`` tag of subscribers.
        history: Number of duplicate ids remembered per destination.
    """

    tags: tuple[str, ...] = ()
    history: int = 0


def enqueue(cursor: sqlite3.Cursor, messages: Iterable[Outgoing], sender: SenderInfo) -> Mapping[int, int]:
    """Add messages to their queue, or to every subscription of their topic.

    Args:
        cursor: A write transaction.
        messages: The messages. One with a duplicate id that is known for its destination is dropped.
        sender: Identity and settings of the sender.

    Returns:
        The numbers of added messages by the ids of their queues, which the caller counts.

    Raises:
        InvalidDestinationError: A temporary destination does not exist any more.
    """
    targets: dict[Destination, Sequence[Subscriber]] = {}
    known: dict[Destination, DuplicateIds] = {}
    rows: list[_Parameters] = []
    added: dict[int, int] = {}
    for message in messages:
        to = message.to
        if message.duplicate_id is not None:
            if to not in known:
                known[to] = DuplicateIds(cursor, str(to), sender.history)
            if not known[to].record(message.duplicate_id):
                continue
        if to not in targets:
            targets[to] = _targets(cursor, to)
        queue_ids = [target.queue_id for target in targets[to] if _accepts(target, message, sender)]
        if message.bucket is not None:
            cursor.executemany(_MARK_GROUPED, [(queue_id,) for queue_id in queue_ids])
        row = (
            message.urgency,
            message.due,
            message.expires,
            message.bucket,
            message.checksum,
            message.headers,
            message.body,
        )
        for queue_id in queue_ids:
            rows.append((queue_id, *row))
            added[queue_id] = added.get(queue_id, 0) + 1
    cursor.executemany(_INSERT, rows)
    for ids in known.values():
        ids.save()
    return added


def _targets(cursor: sqlite3.Cursor, to: Destination) -> Sequence[Subscriber]:
    check_exists(cursor, to)
    return subscribers(cursor, to.name) if isinstance(to, Topic) else [Subscriber(open_queue(cursor, to.name))]


def _accepts(target: Subscriber, message: Outgoing, sender: SenderInfo) -> bool:
    if target.no_local is not None and target.no_local in sender.tags:
        return False
    if target.selector is None:
        return True
    from jmsjca.selectors import Selector  # loads a grammar; most brokers never need it

    return Selector.parse(target.selector).evaluate(selector_values(message.headers)) is True


_CHUNK = 100
_EXPIRED_TO_MOVE = """SELECT message.id, message.mailbox FROM message INDEXED BY message_expires
                      JOIN mailbox ON mailbox.id = message.mailbox
                      WHERE message.expires <= ? AND message.owner IS NULL
                        AND json_extract(mailbox.settings, '$.expiry') IS NOT NULL LIMIT ?"""
_EXPIRE = "DELETE FROM message WHERE expires <= ? AND owner IS NULL RETURNING mailbox"
_FAILED = "SELECT id FROM message WHERE id = ? AND owner IS NULL AND deliveries >= ?"
_CONTENT = "SELECT urgency, expires, bucket, digest, CAST(headers AS BLOB), body FROM message WHERE id = ?"
_DELETE = "DELETE FROM message WHERE id = ? RETURNING mailbox"


class _Content(NamedTuple):
    urgency: int
    expires: int | None
    bucket: int | None
    checksum: int | None
    headers: bytes
    body: bytes | None


def expire(cursor: sqlite3.Cursor, now: int) -> bool:
    """Move or delete the expired messages of all queues; return True if a message was moved.

    Args:
        cursor: A write transaction.
        now: Milliseconds since the epoch.
    """
    moved = False
    while rows := cursor.execute(_EXPIRED_TO_MOVE, (now, _CHUNK)).fetchall():
        moved = True
        for message, queue_id in rows:
            settings = read_queue_settings(cursor, queue_id)
            _move(cursor, message, settings.expiry if settings else None, expired=True)
    count_removed(cursor, Counter(queue_id for (queue_id,) in cursor.execute(_EXPIRE, (now,))))
    return moved


def dead_letter_failed(cursor: sqlite3.Cursor, queue_id: int, messages: Iterable[int]) -> None:
    """Dead-letter those messages of a queue that reached the maximum of deliveries in its settings."""
    settings = read_queue_settings(cursor, queue_id)
    if settings is None or settings.max_deliveries is None:
        return
    failed = [m for m in messages if cursor.execute(_FAILED, (m, settings.max_deliveries)).fetchone()]
    dead_letter(cursor, failed, settings.dead_letter)


def dead_letter(cursor: sqlite3.Cursor, messages: Iterable[int], to: Destination | None) -> None:
    """Move messages to a dead-letter destination; without one (None) delete them."""
    for message in messages:
        _move(cursor, message, to)


def _move(cursor: sqlite3.Cursor, message: int, to: Destination | None, *, expired: bool = False) -> None:
    if to is not None:
        content = _Content(*cursor.execute(_CONTENT, (message,)).fetchone())
        headers = _with_origin_headers(content, to, expired=expired)
        written = headers if isinstance(headers, bytes) else headers.encode()
        checksum = checksum_with_headers(content.checksum, content.headers, written)
        outgoing = Outgoing(to, content.urgency, None, None, headers, content.body, None, content.bucket, checksum)
        count_added(cursor, enqueue(cursor, [outgoing], SenderInfo()))
    for (queue_id,) in cursor.execute(_DELETE, (message,)).fetchall():
        count_removed(cursor, {queue_id: 1})


def _with_origin_headers(content: _Content, to: Destination, *, expired: bool) -> str | bytes:
    """Return the headers with the new destination, and the old one in the properties that Artemis sets.

    Headers that cannot be decoded are returned unchanged.
    """
    try:
        fields: dict[str, Any] = from_json(content.headers.decode())
        properties = fields.setdefault("p", {})
        kind, name = fields["to"]
        properties.update({"_AMQ_ORIG_ADDRESS": name, "_AMQ_ORIG_MESSAGE_ID": fields.get("id")})
        properties["_AMQ_ORIG_ROUTING_TYPE"] = int(kind == "queue")  # as Artemis: 0 is multicast
        if expired:
            properties["_AMQ_ACTUAL_EXPIRY"] = content.expires
            fields.setdefault("t", {})["_AMQ_ACTUAL_EXPIRY"] = "long"
        fields["to"] = [to.kind, to.name]
        return encode_headers(fields)
    except UNDECODABLE:
        return content.headers
