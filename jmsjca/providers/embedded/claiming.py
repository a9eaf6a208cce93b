"""Claiming messages: by priority, then age; inside one write transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from jmsjca.providers.embedded.consumers import may_take_bucket, take_bucket
from jmsjca.providers.embedded.delivery import Row
from jmsjca.providers.embedded.mailboxes import something_returned
from jmsjca.providers.embedded.rows import Hold, runs

__all__ = ["claim", "has_due", "make_ready", "next_due", "of_ids", "ready"]

# Read as bytes: SQLite does not check that text is text, and a receive must not fail over that.
_READY = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest FROM message
            WHERE mailbox = ? AND owner IS NULL AND due IS NULL AND bucket IS NULL ORDER BY urgency, id LIMIT ?"""
_ONE = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest, bucket FROM message
          WHERE id = ? AND owner IS NULL AND due IS NULL"""
_HAS_DUE = "SELECT 1 FROM message WHERE mailbox = ? AND due <= ? LIMIT 1"
_NEXT_DUE = "SELECT min(due) FROM message WHERE mailbox = ? AND due IS NOT NULL"
_MAKE_READY = "UPDATE message SET due = NULL WHERE mailbox = ? AND due <= ?"
_CLAIM = "UPDATE message SET owner = ?, token = ?, deliveries = deliveries + 1 WHERE id BETWEEN ? AND ?"


def has_due(cursor: sqlite3.Cursor, mailbox: int, now: int) -> bool:
    """Tell whether a scheduled message of a mailbox is due by now."""
    return bool(cursor.execute(_HAS_DUE, (mailbox, now)).fetchone())


def make_ready(cursor: sqlite3.Cursor, mailbox: int, now: int) -> None:
    """Let what is due by now take its place among the ready messages of a mailbox."""
    if cursor.execute(_MAKE_READY, (mailbox, now)).rowcount:
        something_returned(cursor, [mailbox])


def next_due(cursor: sqlite3.Cursor, mailbox: int) -> int | None:
    """When the next scheduled message of a mailbox becomes due, in milliseconds since the epoch."""
    moment: int | None = cursor.execute(_NEXT_DUE, (mailbox,)).fetchone()[0]
    return moment


def ready(cursor: sqlite3.Cursor, mailbox: int, limit: int) -> Iterable[Row]:
    """The next messages of a mailbox that belong to no group."""
    return cursor.execute(_READY, (mailbox, limit))


def of_ids(cursor: sqlite3.Cursor, mailbox: int, consumer: int, ids: Sequence[int], most: int | None) -> Iterator[Row]:
    """Those of some messages that are ready still, and whose group is no other consumer's: then it is this one's.

    Of what was delivered too often already nobody gets the group: he would have it without a message.
    """
    for number in ids:
        values = cursor.execute(_ONE, (number,)).fetchone()
        if values is None:  # somebody else was faster
            continue
        *fields, bucket = values
        row = cast("Row", tuple(fields))
        if bucket is not None:
            if not may_take_bucket(cursor, mailbox, bucket, consumer):
                continue
            if not _failed(row, most):
                take_bucket(cursor, mailbox, bucket, consumer)
        yield row


def claim(
    cursor: sqlite3.Cursor, hold: Hold, rows: Iterable[Row], max_bytes: int, most: int | None
) -> tuple[list[Row], list[int]]:
    """Make messages somebody's.

    Args:
        cursor: A write transaction.
        hold: Whose, and by which claim.
        rows: Which, in order; the last ones are left when they would be too many bytes.
        max_bytes: The largest size of all bodies together; one message always passes.
        most: How often a message is delivered at most.

    Returns:
        What was claimed, and the ids of what was delivered too often already.
    """
    taken: list[Row] = []
    failed: list[int] = []
    size = 0
    for row in rows:
        if _failed(row, most):
            failed.append(row[0])
            continue
        taken.append(row)
        size += len(row[4] or b"")
        if size >= max_bytes:
            break
    for first, last in runs([row[0] for row in taken]):
        cursor.execute(_CLAIM, (hold.owner, hold.token, first, last))
    return taken, failed


def _failed(row: Row, most: int | None) -> bool:
    return most is not None and row[1] > most
