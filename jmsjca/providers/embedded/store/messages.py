"""What happens to held messages: settled or given back, inside one write transaction each."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.failures import bury_failed
from jmsjca.providers.embedded.mailboxes import something_returned

__all__ = ["Hold", "release", "runs", "settle"]

# +: by the ids, not by the index of owners.
_SETTLE = "DELETE FROM message WHERE id BETWEEN ? AND ? AND +owner = ? AND token = ?"
_RELEASE = """UPDATE message SET owner = NULL, token = NULL, due = ?, deliveries = deliveries - ?
              WHERE id = ? AND owner = ? AND token = ?"""
# What was held while its queue or subscription was removed has no place to go back to.
_SWEEP = """DELETE FROM message WHERE id = ? AND owner IS NULL
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE mailbox.id = message.mailbox)"""


class Hold(NamedTuple):
    """What one claim holds its messages by: only this owner, and by this very claim, can settle them."""

    mailbox: int
    owner: int
    token: int


def settle(cursor: sqlite3.Cursor, deliveries: Sequence[EmbeddedDelivery]) -> bool:
    """Remove settled messages. False if one was not ours any more; then the transaction must roll back."""
    return sum(cursor.execute(_SETTLE, run).rowcount for run in _ranges(deliveries)) == len(deliveries)


def release(
    cursor: sqlite3.Cursor, deliveries: Sequence[EmbeddedDelivery], *, uncount: Literal[0, 1], due: int | None = None
) -> None:
    """Give messages back to their mailbox; one that failed too often goes where its destination's settings say.

    Args:
        cursor: A write transaction.
        deliveries: The messages; one that is not ours any more is left alone.
        uncount: 1 to take the delivery back from the count.
        due: When they may be delivered again, in milliseconds since the epoch.
    """
    cursor.executemany(_RELEASE, [(due, uncount, d.id, d.hold.owner, d.hold.token) for d in deliveries])
    cursor.executemany(_SWEEP, [(d.id,) for d in deliveries])
    mailboxes = {d.hold.mailbox for d in deliveries}
    something_returned(cursor, mailboxes)
    for mailbox in mailboxes:
        bury_failed(cursor, mailbox, [d.id for d in deliveries if d.hold.mailbox == mailbox])


def runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Put ids that follow one another together: a statement for a range costs as much as one for a row.

    >>> list(runs([4, 5, 6, 9]))
    [(4, 6), (9, 9)]
    """
    first = last = None
    for number in ids:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def _ranges(deliveries: Iterable[EmbeddedDelivery]) -> Iterator[tuple[int, int, int, int]]:
    by_hold: dict[Hold, list[int]] = {}
    for delivery in deliveries:
        by_hold.setdefault(delivery.hold, []).append(delivery.id)
    for hold, ids in by_hold.items():
        for first, last in runs(sorted(ids)):
            yield first, last, hold.owner, hold.token
