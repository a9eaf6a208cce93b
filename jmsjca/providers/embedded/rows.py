"""What happens to held messages: settled or given back, inside one write transaction each."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from jmsjca.providers.embedded.failures import bury_failed
from jmsjca.providers.embedded.mailboxes import something_returned

__all__ = ["Claim", "release", "runs", "settle"]

_SETTLE = "DELETE FROM message WHERE id BETWEEN ? AND ? AND +owner = ? AND token = ?"  # +: not by the index of owners
_RELEASE = """UPDATE message SET owner = NULL, token = NULL, due = ?, deliveries = deliveries - ?
              WHERE id = ? AND owner = ? AND token = ?"""
# What was held while its queue or subscription was removed has no place to go back to.
_SWEEP = """DELETE FROM message WHERE id = ? AND owner IS NULL
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE mailbox.id = message.mailbox)"""


class Claim(NamedTuple):
    """What proves that a message is ours: the row, the owner, the very claim."""

    id: int
    owner: int
    token: int
    mailbox: int


def settle(cursor: sqlite3.Cursor, claims: Sequence[Claim]) -> bool:
    """Remove settled messages. False if one was not ours any more; then the transaction must roll back."""
    return not claims or cursor.executemany(_SETTLE, _ranges(claims)).rowcount == len(claims)


def release(cursor: sqlite3.Cursor, claims: Sequence[Claim], *, uncount: Literal[0, 1], due: int | None = None) -> None:
    """Give messages back to their mailbox; one that failed too often goes where its destination's settings say.

    Args:
        cursor: A write transaction.
        claims: The messages; one that is not ours any more is left alone.
        uncount: 1 to take the delivery back from the count.
        due: When they may be delivered again, in milliseconds since the epoch.
    """
    cursor.executemany(_RELEASE, [(due, uncount, c.id, c.owner, c.token) for c in claims])
    cursor.executemany(_SWEEP, [(c.id,) for c in claims])
    mailboxes = {c.mailbox for c in claims}
    something_returned(cursor, mailboxes)
    for mailbox in mailboxes:
        bury_failed(cursor, mailbox, [c.id for c in claims if c.mailbox == mailbox])


def runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Put ids that follow one another together: a statement for a range costs as much as one for a row.

    >>> list(runs([4, 5, 6, 9]))
    [(4, 6), (9, 9)]
    """
    first = last = None
    for number in ids:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last


def _ranges(claims: Sequence[Claim]) -> Iterator[tuple[int, int, int, int]]:
    by_token: dict[tuple[int, int], list[int]] = {}
    for claim in claims:
        by_token.setdefault((claim.owner, claim.token), []).append(claim.id)
    for fence, ids in by_token.items():
        for run in runs(sorted(ids)):
            yield (*run, *fence)
