"""Registered consumers, exclusive queues, and client ids (JMS 3.1, section 6.1.2)."""

import sqlite3

from jmsjca.errors import InvalidClientIDError
from jmsjca.providers.embedded.store.groups import release_groups
from jmsjca.providers.embedded.store.queues import count_return, drop_queue, has_consumers

__all__ = [
    "is_oldest",
    "register_client_id",
    "register_consumer",
    "release_client_id",
    "unregister_consumer",
    "unregister_consumers_of",
]


def register_consumer(cursor: sqlite3.Cursor, queue_id: int, owner: int) -> int:
    """Register a consumer of a queue, and return its id."""
    cursor.execute("INSERT INTO consumer (mailbox, owner) VALUES (?, ?)", (queue_id, owner))
    return cursor.lastrowid or 0


def unregister_consumer(cursor: sqlite3.Cursor, consumer: int) -> None:
    """Remove a consumer and free its groups; a volatile subscription ends with its last consumer."""
    row = cursor.execute("DELETE FROM consumer WHERE id = ? RETURNING mailbox", (consumer,)).fetchone()
    if row is None:  # removed by a process that took this one for dead
        return
    if release_groups(cursor, consumer):
        count_return(cursor, row)
    _drop_if_volatile(cursor, row[0])


def unregister_consumers_of(cursor: sqlite3.Cursor, owner: int) -> None:
    """Remove the consumers of a process."""
    for (consumer,) in cursor.execute("SELECT id FROM consumer WHERE owner = ?", (owner,)).fetchall():
        unregister_consumer(cursor, consumer)


def is_oldest(cursor: sqlite3.Cursor, queue_id: int, consumer: int) -> bool:
    """Return True if a consumer is the oldest one of its queue."""
    row = cursor.execute("SELECT min(id) FROM consumer WHERE mailbox = ?", (queue_id,)).fetchone()
    return bool(row[0] == consumer)


def _drop_if_volatile(cursor: sqlite3.Cursor, queue_id: int) -> None:
    row = cursor.execute("SELECT kind FROM mailbox WHERE id = ?", (queue_id,)).fetchone()
    if row is not None and row[0] in ("shared", "volatile") and not has_consumers(cursor, queue_id):
        drop_queue(cursor, queue_id)


def register_client_id(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Register a client id.

    Raises:
        InvalidClientIDError: Another connection has it.
    """
    cursor.execute("INSERT OR IGNORE INTO client VALUES (?, ?)", (client_id, owner))
    if not cursor.rowcount:
        raise InvalidClientIDError(
            f"The client id {client_id!r} is in use by another connection; close that one, or choose another id."
        )


def release_client_id(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Release a client id."""
    cursor.execute("DELETE FROM client WHERE id = ? AND owner = ?", (client_id, owner))
