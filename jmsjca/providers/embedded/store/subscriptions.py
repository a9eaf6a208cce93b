"""Subscriptions of topics: find, create, redefine and share them (JMS 3.1, section 8.3)."""

import sqlite3
import uuid
from typing import NamedTuple

from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from jmsjca.providers.embedded.store.queues import drop_queue, has_consumers, settings_text, subscription_key

__all__ = ["Subscriber", "no_local_tag", "open_subscription", "sender_tags", "subscribers"]


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
    rows = cursor.execute("SELECT id, selector, no_local FROM mailbox WHERE topic = ?", (topic,))
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
        "SELECT id, topic, selector, no_local, shared FROM mailbox WHERE kind = ? AND name = ?", key
    ).fetchone()
    if row is None:
        return None
    queue_id, existing = int(row[0]), _Definition(*row[1:])
    busy = has_consumers(cursor, queue_id)
    _check_sharing(key[1], existing, wanted, busy=busy)
    if existing == wanted:
        return queue_id
    if busy:
        raise IllegalStateError(
            f"The subscription {key[1]} is in use with another topic, selector or no_local; close its consumers first."
        )
    drop_queue(cursor, queue_id)
    return None


def _check_sharing(name: str, existing: _Definition, wanted: _Definition, *, busy: bool) -> None:
    if existing.shared != wanted.shared:
        raise IllegalStateError(
            f"The durable subscription {name} is {'' if existing.shared else 'not '}shared; unsubscribe it first."
        )
    if busy and not wanted.shared:
        raise IllegalStateError(
            f"The durable subscription {name} has a consumer already; close that one, or share the subscription."
        )


def _insert(cursor: sqlite3.Cursor, key: tuple[str, str], wanted: _Definition, owner: int | None) -> int:
    row = cursor.execute(
        """INSERT INTO mailbox (kind, name, topic, selector, no_local, shared, owner, settings)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (*key, *wanted, owner, settings_text(cursor, Topic(wanted.topic))),
    ).fetchone()
    return int(row[0])
