"""Temporary destinations: they live as long as their connection (JMS 3.1, sections 4.1.5 and 4.2.7)."""

import sqlite3
import uuid

from jmsjca.destinations import Destination, DestinationKind, Queue, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.embedded.store.queues import drop_queue, find_queue, forget_duplicate_ids, has_consumers
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
    """Make a destination with a name that nobody has."""
    made = destination(f"temporary.{uuid.uuid4().hex}", kind, temporary=True)
    cursor.execute("INSERT INTO temporary VALUES (?, ?, ?)", (str(made), owner, connection))
    return made


def check_exists(cursor: sqlite3.Cursor, to: Destination) -> None:
    """Refuse to send to a temporary destination that is gone.

    Raises:
        InvalidDestinationError: It was deleted, or its connection was closed.
    """
    if to.temporary and _connection_of(cursor, to) is None:
        raise InvalidDestinationError(f"The temporary destination {to} is gone, as is whoever asked for a reply there.")


def is_temporary(cursor: sqlite3.Cursor, what: Destination) -> bool:
    """Tell whether a destination is or was temporary, also by the name of one that there is."""
    return what.temporary or _connection_of(cursor, what) is not None


def check_owned(cursor: sqlite3.Cursor, source: Destination, connection: str) -> None:
    """Refuse what only the connection that made a temporary destination may do: to consume from it, to delete it.

    Raises:
        InvalidDestinationError: Another connection made it, or it is gone.
    """
    if is_temporary(cursor, source) and _connection_of(cursor, source) != connection:
        raise InvalidDestinationError(
            f"The temporary destination {source} is gone, or belongs to another connection: only that one consumes it."
        )


def drop_temporary(cursor: sqlite3.Cursor, what: Destination) -> None:
    """Delete a temporary destination with what waits in it.

    Raises:
        IllegalStateError: It has consumers.
    """
    queue_ids = _queue_ids(cursor, what)
    if any(has_consumers(cursor, queue_id) for queue_id in queue_ids):
        raise IllegalStateError(f"{what} has consumers; close them before you delete it.")
    _drop(cursor, str(what))


def drop_of_connection(cursor: sqlite3.Cursor, connection: str) -> None:
    """Delete what a connection made; its consumers are closed by now."""
    _drop_found(cursor, "SELECT address FROM temporary WHERE connection = ?", connection)


def drop_of_owner(cursor: sqlite3.Cursor, owner: int) -> None:
    """Delete what a process that is gone has made."""
    _drop_found(cursor, "SELECT address FROM temporary WHERE owner = ?", owner)


def _drop_found(cursor: sqlite3.Cursor, query: str, whose: str | int) -> None:
    for (address,) in cursor.execute(query, (whose,)).fetchall():
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
