"""Putting messages into mailboxes: a queue's, or those of all subscriptions of a topic that want them."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jmsjca.destinations import Destination, Topic
from jmsjca.providers.embedded.codec import Outgoing, selectable
from jmsjca.providers.embedded.duplicates import is_new
from jmsjca.providers.embedded.mailboxes import open_queue
from jmsjca.providers.embedded.subscriptions import Subscriber, subscribers
from jmsjca.providers.embedded.temporaries import check_exists

__all__ = ["Sender", "insert"]

_INSERT = """INSERT INTO message (mailbox, urgency, due, expires, bucket, digest, headers, body)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_MARK_GROUPED = "UPDATE mailbox SET grouped = 1 WHERE id = ? AND grouped = 0"

_Parameters = tuple[int | str | bytes | None, ...]


class Sender(NamedTuple):
    """Who sends.

    Args:
        marks: What a subscriber's ``no_local`` is compared with.
        history: How many duplicate ids are remembered per destination.
    """

    marks: tuple[str, ...] = ()
    history: int = 0


def insert(cursor: sqlite3.Cursor, messages: Iterable[Outgoing], sender: Sender) -> None:
    """Put messages into their queue, or into every subscription of their topic.

    Args:
        cursor: A write transaction.
        messages: What is sent. One whose duplicate id is known for its destination is dropped.
        sender: Who sends.

    Raises:
        InvalidDestinationError: A temporary destination is gone.
    """
    targets: dict[Destination, Sequence[Subscriber]] = {}
    rows: list[_Parameters] = []
    for message in messages:
        to = message.to
        if message.duplicate_id is not None and not is_new(cursor, str(to), message.duplicate_id, sender.history):
            continue
        if to not in targets:
            targets[to] = _targets(cursor, to)
        mailboxes = [target.mailbox for target in targets[to] if _wants(target, message, sender)]
        if message.bucket is not None:
            cursor.executemany(_MARK_GROUPED, [(mailbox,) for mailbox in mailboxes])
        row = (
            message.urgency,
            message.due,
            message.expires,
            message.bucket,
            message.digest,
            message.headers,
            message.body,
        )
        rows += [(mailbox, *row) for mailbox in mailboxes]
    cursor.executemany(_INSERT, rows)


def _targets(cursor: sqlite3.Cursor, to: Destination) -> Sequence[Subscriber]:
    check_exists(cursor, to)
    return subscribers(cursor, to.name) if isinstance(to, Topic) else [Subscriber(open_queue(cursor, to.name))]


def _wants(target: Subscriber, message: Outgoing, sender: Sender) -> bool:
    if target.no_local is not None and target.no_local in sender.marks:
        return False
    if target.selector is None:
        return True
    from jmsjca.selectors import Selector  # noqa: PLC0415  # loads a grammar; most brokers never need it

    return Selector.parse(target.selector).evaluate(selectable(message.headers)) is True
