"""Registered consumers: exclusive queues, message groups, and client ids (JMS 3.1, section 6.1.2)."""

import sqlite3

from jmsjca.errors import InvalidClientIDError
from jmsjca.providers.embedded.store.queues import count_return, drop_queue, has_consumers

__all__ = [
    "claim_group",
    "is_oldest",
    "may_claim_group",
    "register_client_id",
    "register_consumer",
    "release_client_id",
    "unregister_consumer",
    "unregister_consumers_of",
]


def register_consumer(cursor: sqlite3.Cursor, queue_id: int, owner: int) -> int:
    """Note a new consumer, and give it its number."""
    cursor.execute("INSERT INTO consumer (mailbox, owner) VALUES (?, ?)", (queue_id, owner))
    return cursor.lastrowid or 0


def unregister_consumer(cursor: sqlite3.Cursor, consumer: int) -> None:
    """Forget a consumer: its groups are free, and a subscription that lives only as long as its consumers may end."""
    row = cursor.execute("DELETE FROM consumer WHERE id = ? RETURNING mailbox", (consumer,)).fetchone()
    if row is None:  # removed by somebody who took this process for dead
        return
    if cursor.execute("DELETE FROM message_group WHERE consumer = ?", (consumer,)).rowcount:
        count_return(cursor, row)
    _drop_if_volatile(cursor, row[0])


def unregister_consumers_of(cursor: sqlite3.Cursor, owner: int) -> None:
    """Forget the consumers of a process that is gone."""
    for (consumer,) in cursor.execute("SELECT id FROM consumer WHERE owner = ?", (owner,)).fetchall():
        unregister_consumer(cursor, consumer)


def is_oldest(cursor: sqlite3.Cursor, queue_id: int, consumer: int) -> bool:
    """Tell whether a consumer is the one that has been there longest."""
    row = cursor.execute("SELECT min(id) FROM consumer WHERE mailbox = ?", (queue_id,)).fetchone()
    return bool(row[0] == consumer)


def may_claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> bool:
    """Tell whether a bucket of message groups is a consumer's, or nobody's."""
    row = cursor.execute(
        "SELECT consumer FROM message_group WHERE mailbox = ? AND bucket = ?", (queue_id, bucket)
    ).fetchone()
    return row is None or row[0] == consumer


def claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> None:
    """Make a bucket of message groups a consumer's that may take it."""
    cursor.execute("INSERT OR IGNORE INTO message_group VALUES (?, ?, ?)", (queue_id, bucket, consumer))


def _drop_if_volatile(cursor: sqlite3.Cursor, queue_id: int) -> None:
    row = cursor.execute("SELECT kind FROM mailbox WHERE id = ?", (queue_id,)).fetchone()
    if row is not None and row[0] in ("shared", "volatile") and not has_consumers(cursor, queue_id):
        drop_queue(cursor, queue_id)


def register_client_id(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Take a client id.

    Raises:
        InvalidClientIDError: Another connection has it.
    """
    cursor.execute("INSERT OR IGNORE INTO client VALUES (?, ?)", (client_id, owner))
    if not cursor.rowcount:
        raise InvalidClientIDError(
            f"The client id {client_id!r} is in use by another connection; close that one, or choose another id."
        )


def release_client_id(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Let a client id go."""
    cursor.execute("DELETE FROM client WHERE id = ? AND owner = ?", (client_id, owner))
