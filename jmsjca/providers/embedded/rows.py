"""What happens to message rows: put in, claimed, settled, released; inside one write transaction each."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from jmsjca.destinations import Topic
from jmsjca.providers.embedded.codec import Outgoing
from jmsjca.providers.embedded.mailboxes import open_queue, subscribers

__all__ = [
    "Claim",
    "Claimant",
    "Row",
    "claim",
    "has_due",
    "insert",
    "is_ready",
    "make_ready",
    "next_due",
    "release",
    "settle",
]

_INSERT = "INSERT INTO message (mailbox, urgency, due, expires, headers, body) VALUES (?, ?, ?, ?, ?, ?)"
# Headers are read as bytes: SQLite does not check that text is text, and a receive must not fail over that.
_READY = """SELECT id, deliveries + 1, expires, CAST(headers AS BLOB), body FROM message
            WHERE mailbox = ? AND owner IS NULL AND due IS NULL ORDER BY urgency, id LIMIT ?"""
_IS_READY = "SELECT 1 FROM message WHERE mailbox = ? AND owner IS NULL AND due IS NULL LIMIT 1"
_HAS_DUE = "SELECT 1 FROM message WHERE mailbox = ? AND due <= ? LIMIT 1"
_NEXT_DUE = "SELECT min(due) FROM message WHERE mailbox = ? AND due IS NOT NULL"
_MAKE_READY = "UPDATE message SET due = NULL WHERE mailbox = ? AND due <= ?"
_EXPIRE = "DELETE FROM message WHERE expires <= ? AND owner IS NULL"
_CLAIM = "UPDATE message SET owner = ?, token = ?, deliveries = deliveries + 1 WHERE id = ?"
_SETTLE = "DELETE FROM message WHERE id = ? AND owner = ? AND token = ?"
_RELEASE = """UPDATE message SET owner = NULL, token = NULL, due = ?, deliveries = deliveries - ?
              WHERE id = ? AND owner = ? AND token = ?"""
# What was held while its queue or subscription was removed has no place to go back to.
_SWEEP = """DELETE FROM message WHERE id = ? AND owner IS NULL
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE mailbox.id = message.mailbox)"""
_TRIM_EVERY = 1000


class Row(NamedTuple):
    """A claimed message, as it lies in the store."""

    id: int
    deliveries: int
    expires: int | None
    headers: bytes
    body: bytes | None


class Claimant(NamedTuple):
    """Who claims messages of which mailbox, under which number, up to which size (one message always passes)."""

    mailbox: int
    owner: int
    token: int
    max_bytes: int


class Claim(NamedTuple):
    """What proves that a message is ours: the row, the owner, the very claim."""

    id: int
    owner: int
    token: int


def is_ready(cursor: sqlite3.Cursor, mailbox: int, now: int) -> bool:
    """Tell whether a claim would find something; takes no lock."""
    return bool(cursor.execute(_IS_READY, (mailbox,)).fetchone()) or has_due(cursor, mailbox, now)


def has_due(cursor: sqlite3.Cursor, mailbox: int, now: int) -> bool:
    """Tell whether a scheduled message of a mailbox is due by now."""
    return bool(cursor.execute(_HAS_DUE, (mailbox, now)).fetchone())


def make_ready(cursor: sqlite3.Cursor, mailbox: int, now: int) -> None:
    """Let what is due by now take its place among the ready messages of a mailbox."""
    cursor.execute(_MAKE_READY, (mailbox, now))


def next_due(cursor: sqlite3.Cursor, mailbox: int) -> int | None:
    """When the next scheduled message of a mailbox becomes due, in milliseconds since the epoch."""
    moment: int | None = cursor.execute(_NEXT_DUE, (mailbox,)).fetchone()[0]
    return moment


def claim(cursor: sqlite3.Cursor, by: Claimant, limit: int, now: int) -> list[Row]:
    """Take the next messages of a mailbox: by priority, then age.

    Args:
        cursor: A write transaction.
        by: Who takes them.
        limit: How many at most.
        now: Milliseconds since the epoch: what expired is removed, what is due becomes ready.
    """
    cursor.execute(_EXPIRE, (now,))
    make_ready(cursor, by.mailbox, now)
    rows: list[Row] = []
    size = 0
    for values in cursor.execute(_READY, (by.mailbox, limit)):
        row = Row(*values)
        rows.append(row)
        size += len(row.body or b"")
        if size >= by.max_bytes:
            break
    cursor.executemany(_CLAIM, [(by.owner, by.token, row.id) for row in rows])
    return rows


def insert(cursor: sqlite3.Cursor, messages: Iterable[Outgoing], history: int) -> None:
    """Put messages into their queue, or into every subscription of their topic.

    Args:
        cursor: A write transaction.
        messages: What is sent. One whose duplicate id is known for its destination is dropped.
        history: How many duplicate ids are remembered per destination.
    """
    mailboxes: dict[str, Sequence[int]] = {}
    rows: list[tuple[int | str | bytes | None, ...]] = []
    for message in messages:
        address = str(message.to)
        if message.duplicate_id is not None and not _is_new(cursor, address, message.duplicate_id, history):
            continue
        if address not in mailboxes:
            topic = isinstance(message.to, Topic)
            name = message.to.name
            mailboxes[address] = subscribers(cursor, name) if topic else [open_queue(cursor, name)]
        row = (message.urgency, message.due, message.expires, message.headers, message.body)
        rows += [(mailbox, *row) for mailbox in mailboxes[address]]
    cursor.executemany(_INSERT, rows)


def settle(cursor: sqlite3.Cursor, claims: Sequence[Claim]) -> bool:
    """Remove settled messages. False if one was not ours any more; then the transaction must roll back."""
    return not claims or cursor.executemany(_SETTLE, claims).rowcount == len(claims)


def release(cursor: sqlite3.Cursor, claims: Sequence[Claim], *, uncount: Literal[0, 1], due: int | None = None) -> None:
    """Give messages back to their mailbox.

    Args:
        cursor: A write transaction.
        claims: The messages; one that is not ours any more is left alone.
        uncount: 1 to take the delivery back from the count.
        due: When they may be delivered again, in milliseconds since the epoch.
    """
    cursor.executemany(_RELEASE, [(due, uncount, *claim) for claim in claims])
    cursor.executemany(_SWEEP, [(claim.id,) for claim in claims])


def _is_new(cursor: sqlite3.Cursor, address: str, key: str, history: int) -> bool:
    cursor.execute("INSERT OR IGNORE INTO duplicate (address, key) VALUES (?, ?)", (address, key))
    if cursor.rowcount == 0:
        return False
    if (cursor.lastrowid or 0) % _TRIM_EVERY == 0:
        cursor.execute(
            """DELETE FROM duplicate WHERE address = :address AND id <= (SELECT id FROM duplicate
               WHERE address = :address ORDER BY id DESC LIMIT 1 OFFSET :history)""",
            {"address": address, "history": history},
        )
    return True
