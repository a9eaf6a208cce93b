"""Queues: of named and temporary destinations and subscriptions, with their consumers, groups and duplicates.

Duplicate detection: the ids of messages that were sent to a destination before.

The ids of a destination are kept in generations. A new id belongs to the youngest; when that holds half of the ids
that the destination must remember, the next generation begins, and those that are no longer needed are deleted whole.
So a transaction changes few pages of the file: in one table of all ids, random ids would change a page each.

Message groups: all messages of a group go to one consumer, as long as that consumer exists.

Groups share a fixed number of buckets (`codec.encode` computes the bucket of a message). A bucket belongs to the
consumer that got its first message, until that consumer is closed or its process dies.
"""

import json
import re
import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple

from jmsjca.arguments import MAX_INT
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, Topic, destination
from jmsjca.errors import IllegalStateError, InvalidClientIDError, InvalidDestinationError, NotSupportedError

__all__ = [
    "DuplicateIds",
    "QueueState",
    "Subscriber",
    "check_exists",
    "check_owned",
    "claim_group",
    "count_added",
    "count_removed",
    "count_return",
    "create_temporary",
    "drop_of_connection",
    "drop_of_owner",
    "drop_queue",
    "drop_temporary",
    "find_queue",
    "forget_duplicate_ids",
    "has_consumers",
    "is_oldest",
    "is_temporary",
    "list_destinations",
    "list_subscriptions",
    "may_claim_group",
    "no_local_tag",
    "open_queue",
    "open_subscription",
    "purge_queue",
    "read_queue",
    "read_queue_settings",
    "read_settings",
    "register_client_id",
    "register_consumer",
    "release_groups",
    "remove_groups_of_queue",
    "remove_queue",
    "sender_tags",
    "settings_text",
    "subscribers",
    "subscription_key",
    "unregister_consumer",
    "unregister_consumers_of",
    "write_settings",
]

# One statement for everything that a claim needs: most of the cost of a statement does not depend on its text.
_STATE = """SELECT returns, grouped, settings,
                   EXISTS (SELECT 1 FROM message
                           WHERE message.queue_id = queue.id AND message.owner IS NULL AND due IS NULL),
                   EXISTS (SELECT 1 FROM message WHERE message.queue_id = queue.id AND due <= ?),
                   EXISTS (SELECT 1 FROM message WHERE expires <= ? AND message.owner IS NULL)
            FROM queue WHERE id = ?"""
# Two statements, since each has its own index.
_PURGE_READY = "DELETE FROM message WHERE queue_id = ? AND owner IS NULL AND due IS NULL"
_PURGE_SCHEDULED = "DELETE FROM message WHERE queue_id = ? AND due IS NOT NULL"
_COUNT_ADDED = "UPDATE queue SET added = added + ? WHERE id = ?"
_COUNT_REMOVED = "UPDATE queue SET removed = removed + ? WHERE id = ?"


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
    row = cursor.execute("SELECT settings FROM queue WHERE id = ?", (queue_id,)).fetchone()
    return None if row is None else _decode_settings(row[0])


def open_queue(cursor: sqlite3.Cursor, name: str) -> int:
    """Return the id of a named queue. A queue is created at its first use."""
    row = cursor.execute("SELECT id FROM queue WHERE kind = 'queue' AND name = ?", (name,)).fetchone()
    if row is None:
        row = cursor.execute(
            "INSERT INTO queue (kind, name, settings) VALUES ('queue', ?, ?) RETURNING id",
            (name, settings_text(cursor, destination(name, "queue"))),
        ).fetchone()
    return int(row[0])


_KEY = re.compile(r"\A((?:[^\\.]|\\.)*)\.(.*)\Z", re.DOTALL)  # the name of a subscription's queue


def find_queue(cursor: sqlite3.Cursor, source: Destination | Subscription) -> int | None:
    """Return the id of a queue or of the queue of a named subscription, or None."""
    if isinstance(source, Topic):
        raise InvalidDestinationError(f"{source} holds no messages; its subscriptions do.")
    key = subscription_key(source) if isinstance(source, Subscription) else ("queue", source.name)
    row = cursor.execute("SELECT id FROM queue WHERE kind = ? AND name = ?", key).fetchone()
    return None if row is None else int(row[0])


@lru_cache(1000)
def subscription_key(subscription: Subscription) -> tuple[str, str]:
    """Return kind and name of the queue of a named subscription; the name contains the client id."""
    # The dots of the client id are escaped: otherwise "a.b" with "c" would be the same as "a" with "b.c".
    client_id = (subscription.client_id or "").replace("\\", "\\\\").replace(".", "\\.")
    return "durable" if subscription.durable else "shared", f"{client_id}.{subscription.name}"


def list_subscriptions(cursor: sqlite3.Cursor) -> list[Subscription]:
    """Return the durable subscriptions, sorted by topic and name."""
    rows = cursor.execute("SELECT name, topic, shared FROM queue WHERE kind = 'durable' ORDER BY topic, name")
    return [_subscription_of(*row) for row in rows.fetchall()]


def _subscription_of(key: str, topic: str, shared: int) -> Subscription:
    """Return the subscription whose `subscription_key` has this name."""
    [(client_id, name)] = _KEY.findall(key)
    owner = re.sub(r"\\(.)", r"\1", client_id, flags=re.DOTALL) or None
    return Subscription(Topic(topic), name, owner, shared == 1)


def has_consumers(cursor: sqlite3.Cursor, queue_id: int) -> bool:
    """Return True if a queue has consumers."""
    return cursor.execute("SELECT 1 FROM consumer WHERE queue_id = ? LIMIT 1", (queue_id,)).fetchone() is not None


def count_return(cursor: sqlite3.Cursor, queue_ids: Iterable[int]) -> None:
    """Make consumers that skipped messages of these queues scan them again from the start."""
    cursor.executemany("UPDATE queue SET returns = returns + 1 WHERE id = ?", [(m,) for m in queue_ids])


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
    cursor.execute("DELETE FROM queue WHERE id = ?", (queue_id,))


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
                 FROM queue) ORDER BY kind, name"""
    )
    return [destination(name, kind, temporary=temporary == 1) for kind, name, temporary in names]


_DEFAULT = ""  # the address of the default settings


def write_settings(cursor: sqlite3.Cursor, address: Destination | None, settings: DestinationSettings) -> None:
    """Store the settings of an address, or the default settings (None), and apply them to existing queues."""
    key = _DEFAULT if address is None else str(address)
    cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (key, _encode_settings(settings)))
    for queue_id, name, topic in cursor.execute("SELECT id, name, topic FROM queue").fetchall():
        of = destination(name, "queue") if topic is None else destination(topic, "topic")
        if address is None or str(address) == str(of):  # temporary queues too
            cursor.execute("UPDATE queue SET settings = ? WHERE id = ?", (settings_text(cursor, of), queue_id))


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


_INSERT = """INSERT OR IGNORE INTO duplicate (generation, key) SELECT :generation, :key WHERE NOT EXISTS
             (SELECT 1 FROM duplicate_generation AS older CROSS JOIN duplicate
              ON duplicate.generation = older.id AND duplicate.key = :key
              WHERE older.address = :address AND older.id < :generation)"""
_GENERATIONS = "SELECT id, ids FROM duplicate_generation WHERE address = ? ORDER BY id DESC"
_FULL = 2  # generations that hold the ids to remember, beside the youngest


class DuplicateIds:
    """The ids that a destination remembers, within a write transaction. `save` them before it ends.

    Args:
        cursor: The write transaction.
        address: The destination.
        history: The number of ids to remember. Up to half more are kept.
    """

    def __init__(self, cursor: sqlite3.Cursor, address: str, history: int) -> None:
        self._cursor = cursor
        self._address = address
        self._history = history
        self._size = max(-(-history // _FULL), 1)
        found: tuple[int, int] | None = cursor.execute(f"{_GENERATIONS} LIMIT 1", (address,)).fetchone()
        self._youngest, self._recorded = found or (0, self._size)  # the first id begins one

    def record(self, key: str) -> bool:
        """Record the id of a message; return False if it is recorded already."""
        if self._recorded >= self._size:
            self._begin_generation()
        self._cursor.execute(_INSERT, {"generation": self._youngest, "address": self._address, "key": key})
        if self._cursor.rowcount == 0:
            return False
        self._recorded += 1
        return True

    def save(self) -> None:
        """Write how many ids the youngest generation holds."""
        self._cursor.execute("UPDATE duplicate_generation SET ids = ? WHERE id = ?", (self._recorded, self._youngest))

    def _begin_generation(self) -> None:
        """Begin a generation, and delete those whose ids need not be remembered any more."""
        self.save()
        newer = 0
        for generation, ids in self._cursor.execute(_GENERATIONS, (self._address,)).fetchall():
            if newer >= self._history:
                _delete(self._cursor, generation)
            newer += ids
        self._cursor.execute("INSERT INTO duplicate_generation (address, ids) VALUES (?, 0)", (self._address,))
        self._youngest, self._recorded = self._cursor.lastrowid or 0, 0


def forget_duplicate_ids(cursor: sqlite3.Cursor, address: str) -> None:
    """Delete the recorded ids of a removed address: later messages to its name are new."""
    for generation, _ in cursor.execute(_GENERATIONS, (address,)).fetchall():
        _delete(cursor, generation)


def _delete(cursor: sqlite3.Cursor, generation: int) -> None:
    cursor.execute("DELETE FROM duplicate WHERE generation = ?", (generation,))
    cursor.execute("DELETE FROM duplicate_generation WHERE id = ?", (generation,))


class Subscriber(NamedTuple):
    """One subscription as a send needs it."""

    queue_id: int
    selector: str | None = None
    no_local: str | None = None


class _Definition(NamedTuple):
    """Definition of a subscription; if it changes, the subscription is replaced."""

    topic: str
    selector: str | None
    no_local: str | None
    shared: int


def open_subscription(
    cursor: sqlite3.Cursor, subscription: Subscription, *, owner: int, selector: str | None, no_local: str | None
) -> int:
    """Find or create the queue of a subscription, and return its id.

    A subscription with a changed definition is replaced, which drops its messages.

    Args:
        cursor: A write transaction.
        subscription: The subscription.
        owner: The process with which a subscription without a name ends.
        selector: Only messages that match are delivered to it; None for all.
        no_local: Tag of the senders that do not reach it, from `no_local_tag`; None to receive from all senders.

    Raises:
        IllegalStateError: It has a consumer already and is not shared, or is in use with another definition.
        InvalidDestinationError: It is durable, but its topic is temporary.
    """
    if subscription.durable and subscription.topic.temporary:
        raise InvalidDestinationError(
            f"{subscription.topic} is temporary: a durable subscription would outlive it. Use one that is not durable."
        )
    wanted = _Definition(subscription.topic.name, selector, no_local, int(subscription.shared))
    if subscription.name is None:
        return _insert(cursor, ("volatile", uuid.uuid4().hex), wanted, owner)
    key = subscription_key(subscription)
    queue_id = _find_matching(cursor, key, wanted)
    return _insert(cursor, key, wanted, None) if queue_id is None else queue_id


def subscribers(cursor: sqlite3.Cursor, topic: str) -> list[Subscriber]:
    """Return all subscriptions of a topic."""
    rows = cursor.execute("SELECT id, selector, no_local FROM queue WHERE topic = ?", (topic,))
    return [Subscriber(*row) for row in rows]


def no_local_tag(subscription: Subscription, connection: str) -> str:
    """Return the tag of the senders that do not reach a subscriber: its client, or else its connection.

    Raises:
        NotSupportedError: The subscription is shared, so that there is no one connection (JMS 3.1, section 16.3.8).
    """
    if subscription.shared:
        raise NotSupportedError(f"The shared subscription {subscription.name} cannot have no_local.")
    return f"client {subscription.client_id}" if subscription.client_id else f"connection {connection}"


def sender_tags(client_id: str | None, connection: str) -> tuple[str, ...]:
    """Return the `no_local_tag` values of subscribers that do not get the messages of a connection."""
    tag = f"connection {connection}"
    return (tag,) if client_id is None else (tag, f"client {client_id}")


def _find_matching(cursor: sqlite3.Cursor, key: tuple[str, str], wanted: _Definition) -> int | None:
    """Return the queue of that name if its definition matches; otherwise drop it and return None."""
    row = cursor.execute(
        "SELECT id, topic, selector, no_local, shared FROM queue WHERE kind = ? AND name = ?", key
    ).fetchone()
    if row is None:
        return None
    queue_id, existing = int(row[0]), _Definition(*row[1:])
    busy, name = has_consumers(cursor, queue_id), key[1]
    is_shared = "shared" if existing.shared else "not shared"
    refusals = (
        (existing.shared != wanted.shared, f"The durable subscription {name} is {is_shared}; unsubscribe it first."),
        (
            busy and not wanted.shared,
            f"The durable subscription {name} has a consumer already; close that one, or share the subscription.",
        ),
        (
            busy and existing != wanted,
            f"The subscription {name} is in use with another topic, selector or no_local; close its consumers first.",
        ),
    )
    for applies, text in refusals:
        if applies:
            raise IllegalStateError(text)
    if existing == wanted:
        return queue_id
    drop_queue(cursor, queue_id)
    return None


def _insert(cursor: sqlite3.Cursor, key: tuple[str, str], wanted: _Definition, owner: int | None) -> int:
    row = cursor.execute(
        """INSERT INTO queue (kind, name, topic, selector, no_local, shared, owner, settings)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (*key, *wanted, owner, settings_text(cursor, destination(wanted.topic, "topic"))),
    ).fetchone()
    return int(row[0])


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
    """Remove the consumers, the temporary destinations and the client id of a connection."""
    _unregister_found(cursor, "SELECT id FROM consumer WHERE connection = ?", connection)
    cursor.execute("DELETE FROM client WHERE connection = ?", (connection,))
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


def may_claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> bool:
    """Return True if a bucket of message groups is free or belongs to this consumer."""
    row = cursor.execute(
        "SELECT consumer FROM message_group WHERE queue_id = ? AND bucket = ?", (queue_id, bucket)
    ).fetchone()
    return row is None or row[0] == consumer


def claim_group(cursor: sqlite3.Cursor, queue_id: int, bucket: int, consumer: int) -> None:
    """Assign a bucket of message groups to a consumer, for which `may_claim_group` returned True."""
    cursor.execute("INSERT OR IGNORE INTO message_group VALUES (?, ?, ?)", (queue_id, bucket, consumer))


def release_groups(cursor: sqlite3.Cursor, consumer: int) -> bool:
    """Release the groups of a consumer that is closed; return True if it had any."""
    return cursor.execute("DELETE FROM message_group WHERE consumer = ?", (consumer,)).rowcount > 0


def remove_groups_of_queue(cursor: sqlite3.Cursor, queue_id: int) -> None:
    """Remove the groups of a queue that is deleted."""
    cursor.execute("DELETE FROM message_group WHERE queue_id = ?", (queue_id,))


def register_consumer(cursor: sqlite3.Cursor, queue_id: int, owner: int, connection: str) -> int:
    """Register a consumer of a queue, and return its id."""
    cursor.execute("INSERT INTO consumer (queue_id, owner, connection) VALUES (?, ?, ?)", (queue_id, owner, connection))
    return cursor.lastrowid or 0


def unregister_consumer(cursor: sqlite3.Cursor, consumer: int) -> None:
    """Remove a consumer and free its groups; a volatile subscription ends with its last consumer."""
    row = cursor.execute("DELETE FROM consumer WHERE id = ? RETURNING queue_id", (consumer,)).fetchone()
    if row is None:  # removed by a process that took this one for dead
        return
    if release_groups(cursor, consumer):
        count_return(cursor, row)
    _drop_if_volatile(cursor, row[0])


def unregister_consumers_of(cursor: sqlite3.Cursor, owner: int) -> None:
    """Remove the consumers of a process."""
    _unregister_found(cursor, "SELECT id FROM consumer WHERE owner = ?", owner)


def _unregister_found(cursor: sqlite3.Cursor, query: str, creator: str | int) -> None:
    for (consumer,) in cursor.execute(query, (creator,)).fetchall():
        unregister_consumer(cursor, consumer)


def is_oldest(cursor: sqlite3.Cursor, queue_id: int, consumer: int) -> bool:
    """Return True if a consumer is the oldest one of its queue."""
    row = cursor.execute("SELECT min(id) FROM consumer WHERE queue_id = ?", (queue_id,)).fetchone()
    return bool(row[0] == consumer)


def _drop_if_volatile(cursor: sqlite3.Cursor, queue_id: int) -> None:
    row = cursor.execute("SELECT kind FROM queue WHERE id = ?", (queue_id,)).fetchone()
    if row is not None and row[0] in ("shared", "volatile") and not has_consumers(cursor, queue_id):
        drop_queue(cursor, queue_id)


def register_client_id(cursor: sqlite3.Cursor, client_id: str, owner: int, connection: str) -> None:
    """Register the client id of a connection.

    Raises:
        InvalidClientIDError: Another connection has it.
    """
    cursor.execute(
        "INSERT OR IGNORE INTO client (id, owner, connection) VALUES (?, ?, ?)", (client_id, owner, connection)
    )
    if not cursor.rowcount:
        raise InvalidClientIDError(
            f"The client id {client_id!r} is in use by another connection; close that one. Processes share a"
            " subscription with subscription_shared=True or create_shared_durable_consumer(…), which need no client"
            " id; with another client id each gets all messages."
        )
