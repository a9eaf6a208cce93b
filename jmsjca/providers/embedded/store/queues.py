"""Mailboxes: the rows of queues and subscriptions, which messages belong to."""

import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.providers.embedded.duplicates import forget_duplicates
from jmsjca.providers.embedded.settings import decode_settings, settings_text

__all__ = [
    "Mailbox",
    "drop_mailbox",
    "empty_mailbox",
    "find_mailbox",
    "has_consumers",
    "list_destinations",
    "open_queue",
    "read_mailbox",
    "read_mailbox_settings",
    "remove_mailbox",
    "something_returned",
    "subscription_key",
]

# One statement for all that a claim must know: most of a statement's cost is to run it at all.
_STATE = """SELECT returns, grouped, settings,
                   EXISTS (SELECT 1 FROM message
                           WHERE message.mailbox = mailbox.id AND message.owner IS NULL AND due IS NULL),
                   EXISTS (SELECT 1 FROM message WHERE message.mailbox = mailbox.id AND due <= ?),
                   EXISTS (SELECT 1 FROM message WHERE expires <= ? AND message.owner IS NULL)
            FROM mailbox WHERE id = ?"""
# Two statements, as each has an index of its own.
_EMPTY_READY = "DELETE FROM message WHERE mailbox = ? AND owner IS NULL AND due IS NULL"
_EMPTY_SCHEDULED = "DELETE FROM message WHERE mailbox = ? AND due IS NOT NULL"


class Mailbox(NamedTuple):
    """What a consumer must know of its mailbox before it claims from it.

    Attributes:
        returns: How often messages came back or became due.
        grouped: True if messages of groups were sent to it.
        settings: Those of its address; None if there are none.
        ready: True if something waits in it.
        due: True if a scheduled message is due.
        expired: True if some message of the broker has expired.
    """

    returns: int
    grouped: bool
    settings: DestinationSettings | None
    ready: bool
    due: bool
    expired: bool


def read_mailbox(cursor: sqlite3.Cursor, mailbox: int, now: int) -> Mailbox | None:
    """Read a mailbox as it is now, in milliseconds since the epoch; None if it was removed."""
    row = cursor.execute(_STATE, (now, now, mailbox)).fetchone()
    return None if row is None else Mailbox(row[0], row[1] == 1, decode_settings(row[2]), *row[3:])


def read_mailbox_settings(cursor: sqlite3.Cursor, mailbox: int) -> DestinationSettings | None:
    """Read the settings of a mailbox; None if there are none, or it was removed."""
    row = cursor.execute("SELECT settings FROM mailbox WHERE id = ?", (mailbox,)).fetchone()
    return None if row is None else decode_settings(row[0])


def open_queue(cursor: sqlite3.Cursor, name: str) -> int:
    """Find the mailbox of a queue, or make it: queues exist from their first use."""
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = 'queue' AND name = ?", (name,)).fetchone()
    if row is None:
        row = cursor.execute(
            "INSERT INTO mailbox (kind, name, settings) VALUES ('queue', ?, ?) RETURNING id",
            (name, settings_text(cursor, Queue(name))),
        ).fetchone()
    return int(row[0])


def find_mailbox(cursor: sqlite3.Cursor, source: Destination | Subscription) -> int | None:
    """Find the mailbox of a queue or a named subscription; None if there is none."""
    if isinstance(source, Topic):
        raise InvalidDestinationError(f"{source} holds no messages; its subscriptions do.")
    key = subscription_key(source) if isinstance(source, Subscription) else ("queue", source.name)
    row = cursor.execute("SELECT id FROM mailbox WHERE kind = ? AND name = ?", key).fetchone()
    return None if row is None else int(row[0])


@lru_cache(1000)
def subscription_key(subscription: Subscription) -> tuple[str, str]:
    """The kind of a named subscription's mailbox and its name, unique with its client id."""
    # The dots of the client id are marked, or "a.b" with "c" would be the same as "a" with "b.c".
    client_id = (subscription.client_id or "").replace("\\", "\\\\").replace(".", "\\.")
    return "durable" if subscription.durable else "shared", f"{client_id}.{subscription.name}"


def has_consumers(cursor: sqlite3.Cursor, mailbox: int) -> bool:
    """Tell whether somebody consumes from a mailbox now."""
    return cursor.execute("SELECT 1 FROM consumer WHERE mailbox = ? LIMIT 1", (mailbox,)).fetchone() is not None


def something_returned(cursor: sqlite3.Cursor, mailboxes: Iterable[int]) -> None:
    """Tell consumers that passed over messages of these mailboxes to begin anew."""
    cursor.executemany("UPDATE mailbox SET returns = returns + 1 WHERE id = ?", [(m,) for m in mailboxes])


def empty_mailbox(cursor: sqlite3.Cursor, mailbox: int) -> int:
    """Remove what waits in a mailbox, due or not; tell how many messages that were. What somebody holds stays."""
    return sum(cursor.execute(statement, (mailbox,)).rowcount for statement in (_EMPTY_READY, _EMPTY_SCHEDULED))


def drop_mailbox(cursor: sqlite3.Cursor, mailbox: int) -> None:
    """Remove a mailbox with what waits in it. What a unit holds stays until the unit ends."""
    empty_mailbox(cursor, mailbox)
    cursor.execute("DELETE FROM message_group WHERE mailbox = ?", (mailbox,))
    cursor.execute("DELETE FROM mailbox WHERE id = ?", (mailbox,))


def remove_mailbox(cursor: sqlite3.Cursor, what: Destination | Subscription) -> None:
    """Remove a queue or a named subscription.

    Raises:
        InvalidDestinationError: There is none.
        IllegalStateError: Somebody consumes from it.
    """
    mailbox = find_mailbox(cursor, what)
    if mailbox is None:
        raise InvalidDestinationError(f"There is no {what} to remove.")
    if has_consumers(cursor, mailbox):
        raise IllegalStateError(f"{what} has consumers; close them before you remove it.")
    drop_mailbox(cursor, mailbox)
    if isinstance(what, Queue):
        forget_duplicates(cursor, str(what))


def list_destinations(cursor: sqlite3.Cursor) -> list[Destination]:
    """All queues, and all topics that have subscriptions."""
    names = cursor.execute(
        """SELECT DISTINCT kind, name, EXISTS (SELECT 1 FROM temporary WHERE address = kind || ':' || name)
           FROM (SELECT CASE WHEN topic IS NULL THEN 'queue' ELSE 'topic' END AS kind, coalesce(topic, name) AS name
                 FROM mailbox) ORDER BY kind, name"""
    )
    return [destination(name, kind, temporary=temporary == 1) for kind, name, temporary in names]
