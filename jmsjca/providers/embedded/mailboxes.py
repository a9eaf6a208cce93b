"""Queues and subscriptions: the rows that messages belong to."""

import sqlite3

from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError

__all__ = [
    "drop_mailbox",
    "empty_mailbox",
    "find_mailbox",
    "list_destinations",
    "open_queue",
    "open_subscription",
    "subscribers",
]

# Two statements, as each has an index of its own.
_EMPTY_READY = "DELETE FROM message WHERE mailbox = ? AND owner IS NULL AND due IS NULL"
_EMPTY_SCHEDULED = "DELETE FROM message WHERE mailbox = ? AND due IS NOT NULL"


def open_queue(cursor: sqlite3.Cursor, name: str) -> int:
    """Find the mailbox of a queue, or make it: queues exist from their first use."""
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = 'queue' AND name = ?", (name,)).fetchone()
    if row is None:
        row = cursor.execute("INSERT INTO mailbox (kind, name) VALUES ('queue', ?) RETURNING id", (name,)).fetchone()
    return int(row[0])


def open_subscription(cursor: sqlite3.Cursor, subscription: Subscription, owner: int, volatile_name: str) -> int:
    """Find or make the mailbox of a subscription.

    Args:
        cursor: A write transaction.
        subscription: What is subscribed to.
        owner: Whom a volatile subscription dies with.
        volatile_name: The name for one that has none.

    Raises:
        InvalidDestinationError: A durable subscription of that name is of another topic.
    """
    topic = subscription.topic.name
    if not subscription.durable:
        return _insert(cursor, "volatile", volatile_name, topic, owner)
    name = durable_name(subscription)
    row = cursor.execute("SELECT id, topic FROM mailbox WHERE kind = 'durable' AND name = ?", (name,)).fetchone()
    if row is None:
        return _insert(cursor, "durable", name, topic, None)
    if row[1] != topic:
        raise InvalidDestinationError(
            f"The subscription {name} is of topic {row[1]!r}, not of {topic!r}; remove it first."
        )
    return int(row[0])


def durable_name(subscription: Subscription) -> str:
    """The name of a durable subscription, unique with its client id."""
    # The dots of the client id are marked, or "a.b" with "c" would be the same as "a" with "b.c".
    client_id = (subscription.client_id or "").replace("\\", "\\\\").replace(".", "\\.")
    return f"{client_id}.{subscription.name}"


def find_mailbox(cursor: sqlite3.Cursor, source: Destination | Subscription) -> int | None:
    """Find the mailbox of a queue or a durable subscription; None if there is none."""
    if isinstance(source, Topic):
        raise InvalidDestinationError(f"{source} holds no messages; its subscriptions do.")
    kind, name = ("durable", durable_name(source)) if isinstance(source, Subscription) else ("queue", source.name)
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return None if row is None else int(row[0])


def subscribers(cursor: sqlite3.Cursor, topic: str) -> list[int]:
    """The mailboxes of all subscriptions of a topic."""
    return [mailbox for (mailbox,) in cursor.execute("SELECT id FROM mailbox WHERE topic = ?", (topic,))]


def empty_mailbox(cursor: sqlite3.Cursor, mailbox: int) -> int:
    """Remove what waits in a mailbox, due or not; tell how many messages that were. What somebody holds stays."""
    return sum(cursor.execute(statement, (mailbox,)).rowcount for statement in (_EMPTY_READY, _EMPTY_SCHEDULED))


def drop_mailbox(cursor: sqlite3.Cursor, mailbox: int) -> None:
    """Remove a mailbox with what waits in it. What a unit holds stays until the unit ends."""
    empty_mailbox(cursor, mailbox)
    cursor.execute("DELETE FROM mailbox WHERE id = ?", (mailbox,))


def list_destinations(cursor: sqlite3.Cursor) -> list[Destination]:
    """All queues, and all topics that have subscriptions."""
    queues = cursor.execute("SELECT name FROM mailbox WHERE kind = 'queue' ORDER BY name").fetchall()
    topics = cursor.execute("SELECT DISTINCT topic FROM mailbox WHERE topic IS NOT NULL ORDER BY topic").fetchall()
    return [*(Queue(name) for (name,) in queues), *(Topic(name) for (name,) in topics)]


def _insert(cursor: sqlite3.Cursor, kind: str, name: str, topic: str, owner: int | None) -> int:
    row = cursor.execute(
        "INSERT INTO mailbox (kind, name, topic, owner) VALUES (?, ?, ?, ?) RETURNING id", (kind, name, topic, owner)
    ).fetchone()
    return int(row[0])
