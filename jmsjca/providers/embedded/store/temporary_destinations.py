"""Temporary destinations: they exist as long as their connection (JMS 3.1, sections 4.1.5 and 4.2.7)."""

import sqlite3
import uuid

from jmsjca.destinations import Destination, DestinationKind, Queue, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.embedded.store.duplicates import forget_duplicate_ids
from jmsjca.providers.embedded.store.queues import drop_queue, find_queue, has_consumers
from jmsjca.providers.embedded.store.subscriptions import subscribers

__all__ = [
    "check_exists",
    "check_owned",
    "create_temporary",
    "drop_of_connection",
    "drop_of_owner",
    "drop_temporary",
    "is_temporary",
]


def create_temporary(cursor: sqlite3.Cursor, kind: DestinationKind, owner: int, connection: str) -> Destination:
    """Create a destination with a unique name."""
    made = destination(f"temporary.{uuid.uuid4().hex}", kind, temporary=True)
    cursor.execute("INSERT INTO temporary VALUES (?, ?, ?)", (str(made), owner, connection))
    return made


def check_exists(cursor: sqlite3.Cursor, to: Destination) -> None:
    """Check that a temporary destination exists; other destinations always do.

    Raises:
        InvalidDestinationError: It was deleted, or its connection was closed.
    """
    if to.temporary and _connection_of(cursor, to) is None:
        raise InvalidDestinationError(
            f"The temporary destination {to} does not exist any more: it was deleted, or its connection is closed."
        )


def is_temporary(cursor: sqlite3.Cursor, what: Destination) -> bool:
    """Return True if a destination is or was temporary, also if it only has the name of an existing one."""
    return what.temporary or _connection_of(cursor, what) is not None


def check_owned(cursor: sqlite3.Cursor, source: Destination, connection: str) -> None:
    """Check that a connection may consume from or delete a destination: a temporary one only if it created it.

    Raises:
        InvalidDestinationError: Another connection created it, or it does not exist any more.
    """
    if is_temporary(cursor, source) and _connection_of(cursor, source) != connection:
        raise InvalidDestinationError(
            f"The temporary destination {source} does not exist any more, or belongs to another connection: only the "
            "connection that created it can consume from it."
        )


def drop_temporary(cursor: sqlite3.Cursor, what: Destination) -> None:
    """Delete a temporary destination with its waiting messages.

    Raises:
        IllegalStateError: It has consumers.
    """
    queue_ids = _queue_ids(cursor, what)
    if any(has_consumers(cursor, queue_id) for queue_id in queue_ids):
        raise IllegalStateError(f"{what} has consumers; close them before you delete it.")
    _drop(cursor, str(what))


def drop_of_connection(cursor: sqlite3.Cursor, connection: str) -> None:
    """Delete the temporary destinations of a connection. Its consumers must be closed."""
    _drop_found(cursor, "SELECT address FROM temporary WHERE connection = ?", connection)


def drop_of_owner(cursor: sqlite3.Cursor, owner: int) -> None:
    """Delete the temporary destinations of a dead process."""
    _drop_found(cursor, "SELECT address FROM temporary WHERE owner = ?", owner)


def _drop_found(cursor: sqlite3.Cursor, query: str, creator: str | int) -> None:
    for (address,) in cursor.execute(query, (creator,)).fetchall():
        _drop(cursor, address)


def _drop(cursor: sqlite3.Cursor, address: str) -> None:
    kind, name = address.split(":", 1)
    for queue_id in _queue_ids(cursor, destination(name, kind)):
        drop_queue(cursor, queue_id)
    forget_duplicate_ids(cursor, address)
    cursor.execute("DELETE FROM temporary WHERE address = ?", (address,))


def _queue_ids(cursor: sqlite3.Cursor, what: Destination) -> list[int]:
    if isinstance(what, Queue):
        queue_id = find_queue(cursor, what)
        return [] if queue_id is None else [queue_id]
    return [subscriber.queue_id for subscriber in subscribers(cursor, what.name)]


def _connection_of(cursor: sqlite3.Cursor, what: Destination) -> str | None:
    row = cursor.execute("SELECT connection FROM temporary WHERE address = ?", (str(what),)).fetchone()
    return None if row is None else str(row[0])
