"""Queues of named destinations and subscriptions, their state, and the settings of destinations."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple

from jmsjca.config import DestinationSettings
from jmsjca.config.settings import MAX_INT
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.embedded.store.duplicates import forget_duplicate_ids
from jmsjca.providers.embedded.store.groups import remove_groups_of_queue

__all__ = [
    "QueueState",
    "count_added",
    "count_removed",
    "count_return",
    "drop_queue",
    "find_queue",
    "has_consumers",
    "list_destinations",
    "open_queue",
    "purge_queue",
    "read_queue",
    "read_queue_settings",
    "read_settings",
    "remove_queue",
    "settings_text",
    "subscription_key",
    "write_settings",
]

# One statement for everything that a claim needs: most of the cost of a statement does not depend on its text.
_STATE = """SELECT returns, grouped, settings,
                   EXISTS (SELECT 1 FROM message
                           WHERE message.mailbox = mailbox.id AND message.owner IS NULL AND due IS NULL),
                   EXISTS (SELECT 1 FROM message WHERE message.mailbox = mailbox.id AND due <= ?),
                   EXISTS (SELECT 1 FROM message WHERE expires <= ? AND message.owner IS NULL)
            FROM mailbox WHERE id = ?"""
# Two statements, since each has its own index.
_PURGE_READY = "DELETE FROM message WHERE mailbox = ? AND owner IS NULL AND due IS NULL"
_PURGE_SCHEDULED = "DELETE FROM message WHERE mailbox = ? AND due IS NOT NULL"
_COUNT_ADDED = "UPDATE mailbox SET added = added + ? WHERE id = ?"
_COUNT_REMOVED = "UPDATE mailbox SET removed = removed + ? WHERE id = ?"


class QueueState(NamedTuple):
    """State of a queue that a consumer reads before it claims messages.

    Attributes:
        returns: Number of times that messages were released or became due.
        grouped: True if messages of groups were sent to it.
        settings: The settings of its address, or None.
        ready: True if it has ready messages.
        due: True if a scheduled message is due.
        expired: True if any message of the broker has expired.
    """

    returns: int
    grouped: bool
    settings: DestinationSettings | None
    ready: bool
    due: bool
    expired: bool


def read_queue(cursor: sqlite3.Cursor, queue_id: int, now: int) -> QueueState | None:
    """Return the state of a queue at `now`, in milliseconds since the epoch; None if it was removed."""
    row = cursor.execute(_STATE, (now, now, queue_id)).fetchone()
    return None if row is None else QueueState(row[0], row[1] == 1, _decode_settings(row[2]), *row[3:])


def read_queue_settings(cursor: sqlite3.Cursor, queue_id: int) -> DestinationSettings | None:
    """Return the settings of a queue; None without settings, or if it was removed."""
    row = cursor.execute("SELECT settings FROM mailbox WHERE id = ?", (queue_id,)).fetchone()
    return None if row is None else _decode_settings(row[0])


def open_queue(cursor: sqlite3.Cursor, name: str) -> int:
    """Return the id of a named queue. A queue is created at its first use."""
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = 'queue' AND name = ?", (name,)).fetchone()
    if row is None:
        row = cursor.execute(
            "INSERT INTO mailbox (kind, name, settings) VALUES ('queue', ?, ?) RETURNING id",
            (name, settings_text(cursor, Queue(name))),
        ).fetchone()
    return int(row[0])


def find_queue(cursor: sqlite3.Cursor, source: Destination | Subscription) -> int | None:
    """Return the id of a queue or of the queue of a named subscription, or None."""
    if isinstance(source, Topic):
        raise InvalidDestinationError(f"{source} holds no messages; its subscriptions do.")
    key = subscription_key(source) if isinstance(source, Subscription) else ("queue", source.name)
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = ? AND name = ?", key).fetchone()
    return None if row is None else int(row[0])


@lru_cache(1000)
def subscription_key(subscription: Subscription) -> tuple[str, str]:
    """Return kind and name of the queue of a named subscription; the name contains the client id."""
    # The dots of the client id are escaped: otherwise "a.b" with "c" would be the same as "a" with "b.c".
    client_id = (subscription.client_id or "").replace("\\", "\\\\").replace(".", "\\.")
    return "durable" if subscription.durable else "shared", f"{client_id}.{subscription.name}"


def has_consumers(cursor: sqlite3.Cursor, queue_id: int) -> bool:
    """Return True if a queue has consumers."""
    return cursor.execute("SELECT 1 FROM consumer WHERE mailbox = ? LIMIT 1", (queue_id,)).fetchone() is not None


def count_return(cursor: sqlite3.Cursor, queue_ids: Iterable[int]) -> None:
    """Make consumers that skipped messages of these queues scan them again from the start."""
    cursor.executemany("UPDATE mailbox SET returns = returns + 1 WHERE id = ?", [(m,) for m in queue_ids])


def count_added(cursor: sqlite3.Cursor, numbers: Mapping[int, int]) -> None:
    """Count messages that came to queues: their numbers by the ids of the queues."""
    cursor.executemany(_COUNT_ADDED, [(number, queue_id) for queue_id, number in numbers.items()])


def count_removed(cursor: sqlite3.Cursor, numbers: Mapping[int, int]) -> None:
    """Count messages that left queues other than by settlement: their numbers by the ids of the queues."""
    cursor.executemany(_COUNT_REMOVED, [(number, queue_id) for queue_id, number in numbers.items()])


def purge_queue(cursor: sqlite3.Cursor, queue_id: int) -> int:
    """Delete the waiting messages of a queue, scheduled ones too, and return their number; held ones stay."""
    number = sum(cursor.execute(statement, (queue_id,)).rowcount for statement in (_PURGE_READY, _PURGE_SCHEDULED))
    count_removed(cursor, {queue_id: number})
    return number


def drop_queue(cursor: sqlite3.Cursor, queue_id: int) -> None:
    """Delete a queue with its waiting messages. Those that a unit holds stay until the unit ends."""
    purge_queue(cursor, queue_id)
    remove_groups_of_queue(cursor, queue_id)
    cursor.execute("DELETE FROM mailbox WHERE id = ?", (queue_id,))


def remove_queue(cursor: sqlite3.Cursor, what: Destination | Subscription) -> None:
    """Remove a queue or a named subscription.

    Raises:
        InvalidDestinationError: It does not exist.
        IllegalStateError: It has consumers.
    """
    queue_id = find_queue(cursor, what)
    if queue_id is None:
        raise InvalidDestinationError(f"There is no {what} to remove.")
    if has_consumers(cursor, queue_id):
        raise IllegalStateError(f"{what} has consumers; close them before you remove it.")
    drop_queue(cursor, queue_id)
    if isinstance(what, Queue):
        forget_duplicate_ids(cursor, str(what))


def list_destinations(cursor: sqlite3.Cursor) -> list[Destination]:
    """Return all queues, and all topics that have subscriptions."""
    names = cursor.execute(
        """SELECT DISTINCT kind, name, EXISTS (SELECT 1 FROM temporary WHERE address = kind || ':' || name)
           FROM (SELECT CASE WHEN topic IS NULL THEN 'queue' ELSE 'topic' END AS kind, coalesce(topic, name) AS name
                 FROM mailbox) ORDER BY kind, name"""
    )
    return [destination(name, kind, temporary=temporary == 1) for kind, name, temporary in names]


_DEFAULT = ""  # the address of the default settings


def write_settings(cursor: sqlite3.Cursor, address: Destination | None, settings: DestinationSettings) -> None:
    """Store the settings of an address, or the default settings (None), and apply them to existing queues."""
    key = _DEFAULT if address is None else str(address)
    cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (key, _encode_settings(settings)))
    for queue_id, name, topic in cursor.execute("SELECT id, name, topic FROM mailbox").fetchall():
        of = destination(name, "queue") if topic is None else destination(topic, "topic")
        if address is None or str(address) == str(of):  # temporary queues too
            cursor.execute("UPDATE mailbox SET settings = ? WHERE id = ?", (settings_text(cursor, of), queue_id))


def read_settings(cursor: sqlite3.Cursor, address: Destination | None) -> DestinationSettings:
    """Return the effective settings of an address; None returns the default settings."""
    text = _stored_settings(cursor, _DEFAULT) if address is None else settings_text(cursor, address)
    return _decode_settings(text) or DestinationSettings()


def settings_text(cursor: sqlite3.Cursor, address: Destination) -> str | None:
    """Return the settings of an address as they are stored with a queue, or None."""
    text = _stored_settings(cursor, str(address)) or _stored_settings(cursor, _DEFAULT)
    settings = _decode_settings(text)
    return None if settings is None else _encode_settings(_without_self_reference(settings, address))


@lru_cache(1000)
def _decode_settings(text: str | None) -> DestinationSettings | None:
    """Decode settings that are stored with a queue; None stands for none."""
    if text is None:
        return None
    fields: dict[str, Any] = json.loads(text)
    if fields.get("max_deliveries"):  # 0.1.0 stored larger ones, too
        fields["max_deliveries"] = min(fields["max_deliveries"], MAX_INT)
    for name in ("dead_letter", "expiry"):
        if fields.get(name):
            kind, where = fields[name]
            fields[name] = destination(where, kind)
    return DestinationSettings(**fields)


def _encode_settings(settings: DestinationSettings) -> str:
    places = {name: getattr(settings, name) for name in ("dead_letter", "expiry")}
    return json.dumps({**asdict(settings), **{name: p and (p.kind, p.name) for name, p in places.items()}})


def _without_self_reference(settings: DestinationSettings, address: Destination) -> DestinationSettings:
    """Return settings by which a dead-letter or expiry destination does not move messages to itself.

    There, failed messages stay, and expired ones are deleted.
    """
    fails, expires = settings.dead_letter == address, settings.expiry == address
    return DestinationSettings(
        max_deliveries=None if fails else settings.max_deliveries,
        dead_letter=None if fails else settings.dead_letter,
        expiry=None if expires else settings.expiry,
        exclusive=settings.exclusive,
    )


def _stored_settings(cursor: sqlite3.Cursor, key: str) -> str | None:
    row = cursor.execute("SELECT settings FROM setting WHERE address = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
