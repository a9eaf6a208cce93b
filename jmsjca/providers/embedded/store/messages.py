"""The message table: enqueue, claim, settle, release, expire, dead-letter."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

from jmsjca.destinations import Destination, Topic
from jmsjca.providers.common.codec import UNDECODABLE, from_json
from jmsjca.providers.embedded.codec import Outgoing, encode_headers, selector_values, with_changed_headers
from jmsjca.providers.embedded.delivery import EmbeddedDelivery, Lease, Row
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
    "release_claim",
    "settle",
]

# The + makes SQLite search by the ids, not by the index of owners.
_SETTLE = "DELETE FROM message WHERE id BETWEEN ? AND ? AND +owner = ? AND token = ?"
_RELEASE = """UPDATE message SET owner = NULL, token = NULL, due = ?, deliveries = deliveries - ?
              WHERE id = ? AND owner = ? AND token = ?"""
_LEASE = attrgetter("lease")
_OF_CLAIM = "SELECT id FROM message WHERE owner = ? AND token = ?"
# Messages that were held while their queue or subscription was removed have no queue to return to.
_DELETE_WITHOUT_QUEUE = """DELETE FROM message WHERE id = ? AND owner IS NULL
            AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.id = message.queue_id)"""


def settle(cursor: sqlite3.Cursor, deliveries: Sequence[EmbeddedDelivery]) -> bool:
    """Delete settled messages. Return False if a lease was lost; then the caller must roll back the transaction."""
    settled = 0
    for lease, group in groupby(deliveries, _LEASE):
        for first, last in _id_ranges(sorted([delivery.id for delivery in group])):
            settled += cursor.execute(_SETTLE, (first, last, lease.owner, lease.token)).rowcount
    return settled == len(deliveries)


def release(
    cursor: sqlite3.Cursor, deliveries: Sequence[EmbeddedDelivery], *, uncount: Literal[0, 1], due: int | None = None
) -> None:
    """Release messages to their queue; those that reached the maximum of deliveries are dead-lettered.

    Args:
        cursor: A write transaction.
        deliveries: The messages; after a lost lease a message stays as it is.
        uncount: 1 to subtract this delivery from the delivery count.
        due: When they may be redelivered, in milliseconds since the epoch; None for at once.
    """
    _release(cursor, [(d.id, d.lease) for d in deliveries], uncount, due)


def release_as_handed_over(cursor: sqlite3.Cursor, deliveries: Sequence[EmbeddedDelivery]) -> None:
    """Release messages after an interruption; only messages that were handed over count as delivered."""
    release(cursor, [d for d in deliveries if d.slot is None], uncount=1)
    release(cursor, [d for d in deliveries if d.slot is not None], uncount=0)


def release_claim(cursor: sqlite3.Cursor, lease: Lease) -> None:
    """Release the messages of an interrupted claim, uncounted. The claim may or may not be committed."""
    ids = cursor.execute(_OF_CLAIM, (lease.owner, lease.token)).fetchall()
    _release(cursor, [(number, lease) for (number,) in ids], 1, None)


def _release(cursor: sqlite3.Cursor, leased: Sequence[tuple[int, Lease]], uncount: int, due: int | None) -> None:
    cursor.executemany(_RELEASE, [(due, uncount, number, lease.owner, lease.token) for number, lease in leased])
    cursor.executemany(_DELETE_WITHOUT_QUEUE, [(number,) for number, _ in leased])
    queue_ids = {lease.queue_id for _, lease in leased}
    count_return(cursor, queue_ids)
    for queue_id in queue_ids:
        dead_letter_failed(cursor, queue_id, [number for number, lease in leased if lease.queue_id == queue_id])


def _id_ranges(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Combine consecutive ids, which differ, to ranges: a statement for a range costs as much as one for a row.

    >>> _id_ranges([4, 5, 6, 9])
    [(4, 6), (9, 9)]
    """
    if ids and max(ids) - min(ids) == len(ids) - 1:  # nearly always
        return [(min(ids), max(ids))]
    ranges: list[tuple[int, int]] = []
    for number in ids:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


# Read as bytes: SQLite does not check that text is valid UTF-8, and a receive must not fail because of that.
_READY = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), checksum FROM message
            WHERE queue_id = ? AND owner IS NULL AND due IS NULL AND bucket IS NULL ORDER BY urgency, id LIMIT ?"""
_READY_BY_ID = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), checksum, bucket
                  FROM message
                  WHERE id = ? AND owner IS NULL AND due IS NULL"""
_HAS_DUE = "SELECT 1 FROM message WHERE queue_id = ? AND due <= ? LIMIT 1"
_NEXT_DUE = "SELECT min(due) FROM message WHERE queue_id = ? AND due IS NOT NULL"
_MAKE_DUE_READY = "UPDATE message SET due = NULL WHERE queue_id = ? AND due <= ?"
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
            if max_deliveries is None or row[1] <= max_deliveries:
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
        if max_deliveries is not None and row[1] > max_deliveries:
            failed.append(row[0])
            continue
        taken.append(row)
        size += len(row[4] or b"")
        if size >= max_bytes:
            break
    for first, last in _id_ranges([row[0] for row in taken]):
        cursor.execute(_CLAIM, (lease.owner, lease.token, first, last))
    return taken, failed


# Columns that few messages have come last: a statement without them is quicker, since Python's module looks for a
# conversion of each None. In one statement of many rows SQLite updates the highest id once.
_COLUMNS = ("queue_id", "urgency", "headers", "body", "checksum", "due", "expires", "bucket")
_USUAL, _WITH_CHECKSUM = 4, 5
_INSERT = "INSERT INTO message"
_INSERT_SIZES = (50, 10, 1)
_MARK_GROUPED = "UPDATE queue SET grouped = 1 WHERE id = ? AND grouped = 0"

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
        content = (
            message.urgency,
            message.headers,
            message.body,
            message.checksum,
            message.due,
            message.expires,
            message.bucket,
        )
        for target in targets[to]:
            if (target.selector is None and target.no_local is None) or _accepts(target, message, sender):
                rows.append((target.queue_id, *content))
                added[target.queue_id] = added.get(target.queue_id, 0) + 1
                if message.bucket is not None:
                    cursor.execute(_MARK_GROUPED, (target.queue_id,))
    _insert(cursor, rows)
    for ids in known.values():
        ids.save()
    return added


def _insert(cursor: sqlite3.Cursor, rows: Iterable[_Parameters]) -> None:
    """Insert messages in their order, as many as possible of those with the same columns in one statement."""
    for width, group in groupby(rows, _width):
        values = [value for row in group for value in row[:width]]
        begin = 0
        for size in _INSERT_SIZES:
            statement, step = _insert_statement(width, size), width * size
            while len(values) - begin >= step:
                cursor.execute(statement, values[begin : begin + step])
                begin += step


def _width(row: _Parameters) -> int:
    """Return the number of columns of a row up to the last one that is set."""
    if row[_WITH_CHECKSUM:] == (None, None, None):
        return _USUAL if row[_USUAL] is None else _WITH_CHECKSUM
    return len(_COLUMNS)


@cache
def _insert_statement(width: int, size: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{_INSERT} ({', '.join(_COLUMNS[:width])}) VALUES {', '.join([row] * size)}"


def _targets(cursor: sqlite3.Cursor, to: Destination) -> Sequence[Subscriber]:
    if to.temporary:
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
_EXPIRED_TO_MOVE = """SELECT message.id, message.queue_id FROM message INDEXED BY message_expires
                      JOIN queue ON queue.id = message.queue_id
                      WHERE message.expires <= ? AND message.owner IS NULL
                        AND json_extract(queue.settings, '$.expiry') IS NOT NULL LIMIT ?"""
_EXPIRE = "DELETE FROM message WHERE expires <= ? AND owner IS NULL RETURNING queue_id"
_FAILED = "SELECT id FROM message WHERE id = ? AND owner IS NULL AND deliveries >= ?"
_CONTENT = "SELECT urgency, expires, bucket, checksum, CAST(headers AS BLOB), body FROM message WHERE id = ?"
_DELETE = "DELETE FROM message WHERE id = ? RETURNING queue_id"


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
        checksum = with_changed_headers(content.checksum, content.headers, written)
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
