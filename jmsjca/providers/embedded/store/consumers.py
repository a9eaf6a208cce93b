"""Registered consumers: exclusive queues, message groups, and client ids (JMS 3.1, section 6.1.2)."""

import sqlite3

from jmsjca.errors import InvalidClientIDError
from jmsjca.providers.embedded.store.queues import drop_mailbox, has_consumers, something_returned

__all__ = [
    "enter_client",
    "is_first",
    "leave_client",
    "may_take_bucket",
    "register",
    "take_bucket",
    "unregister",
    "unregister_all",
]


def register(cursor: sqlite3.Cursor, mailbox: int, owner: int) -> int:
    """Note a new consumer, and give it its number."""
    cursor.execute("INSERT INTO consumer (mailbox, owner) VALUES (?, ?)", (mailbox, owner))
    return cursor.lastrowid or 0


def unregister(cursor: sqlite3.Cursor, consumer: int) -> None:
    """Forget a consumer: its groups are free, and a subscription that lives only as long as its consumers may end."""
    row = cursor.execute("DELETE FROM consumer WHERE id = ? RETURNING mailbox", (consumer,)).fetchone()
    if row is None:  # removed by somebody who took this process for dead
        return
    if cursor.execute("DELETE FROM message_group WHERE consumer = ?", (consumer,)).rowcount:
        something_returned(cursor, row)
    _end_volatile(cursor, row[0])


def unregister_all(cursor: sqlite3.Cursor, owner: int) -> None:
    """Forget the consumers of a process that is gone."""
    for (consumer,) in cursor.execute("SELECT id FROM consumer WHERE owner = ?", (owner,)).fetchall():
        unregister(cursor, consumer)


def is_first(cursor: sqlite3.Cursor, mailbox: int, consumer: int) -> bool:
    """Tell whether a consumer is the one that has been there longest."""
    row = cursor.execute("SELECT min(id) FROM consumer WHERE mailbox = ?", (mailbox,)).fetchone()
    return bool(row[0] == consumer)


def may_take_bucket(cursor: sqlite3.Cursor, mailbox: int, bucket: int, consumer: int) -> bool:
    """Tell whether a bucket of message groups is a consumer's, or nobody's."""
    row = cursor.execute(
        "SELECT consumer FROM message_group WHERE mailbox = ? AND bucket = ?", (mailbox, bucket)
    ).fetchone()
    return row is None or row[0] == consumer


def take_bucket(cursor: sqlite3.Cursor, mailbox: int, bucket: int, consumer: int) -> None:
    """Make a bucket of message groups a consumer's that may take it."""
    cursor.execute("INSERT OR IGNORE INTO message_group VALUES (?, ?, ?)", (mailbox, bucket, consumer))


def _end_volatile(cursor: sqlite3.Cursor, mailbox: int) -> None:
    row = cursor.execute("SELECT kind FROM mailbox WHERE id = ?", (mailbox,)).fetchone()
    if row is not None and row[0] in ("shared", "volatile") and not has_consumers(cursor, mailbox):
        drop_mailbox(cursor, mailbox)


def enter_client(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Take a client id.

    Raises:
        InvalidClientIDError: Another connection has it.
    """
    cursor.execute("INSERT OR IGNORE INTO client VALUES (?, ?)", (client_id, owner))
    if not cursor.rowcount:
        raise InvalidClientIDError(
            f"The client id {client_id!r} is in use by another connection; close that one, or choose another id."
        )


def leave_client(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Let a client id go."""
    cursor.execute("DELETE FROM client WHERE id = ? AND owner = ?", (client_id, owner))
