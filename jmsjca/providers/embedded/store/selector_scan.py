"""Scans of a queue for consumers that skip messages because of a selector or of message groups.

A scan continues at its last position, so it reads a skipped message only once: the cost of a claim does not grow with
the number of messages for other consumers. When a message was released or became due, the scan starts again.
"""

import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from jmsjca.providers.embedded.codec import SELECTOR_FIELDS
from jmsjca.providers.embedded.store.store import Store

__all__ = ["Candidate", "CandidateQuery", "QueueScan", "condition_of"]

_CANDIDATES = """SELECT id FROM message WHERE queue_id = ? AND urgency = ? AND id > ? AND id <= ?
                 AND owner IS NULL AND due IS NULL AND (bucket IS NULL OR NOT EXISTS (
                     SELECT 1 FROM message_group
                     WHERE message_group.queue_id = message.queue_id AND message_group.bucket = message.bucket
                       AND consumer <> ?))"""
_IN_ORDER = " ORDER BY id LIMIT ?"
_HEADERS = {
    **{name: f"json_extract(headers, '$.{field}')" for name, field in SELECTOR_FIELDS.items()},
    "JMSPriority": "(9 - urgency)",
    "JMSDeliveryMode": "CASE json_extract(headers, '$.mode') WHEN 1 THEN 'NON_PERSISTENT' ELSE 'PERSISTENT' END",
    "JMSXDeliveryCount": "(deliveries + 1)",
}


class _IdRange(NamedTuple):
    """The messages of one urgency in a queue with ids greater than `after` and at most `last`."""

    queue_id: int
    urgency: int
    after: int
    last: int


class CandidateQuery:
    """The query for messages that a consumer may claim.

    Args:
        selector: Only messages that match; None for all.
        consumer: The consumer; messages in groups of other consumers are skipped.
    """

    def __init__(self, selector: str | None, consumer: int) -> None:
        where, self._parameters = condition_of(selector)
        self._query = _CANDIDATES + where + _IN_ORDER
        self._consumer = consumer

    def ids(self, cursor: sqlite3.Cursor, where: _IdRange, limit: int) -> list[int]:
        """Return the ids of the first candidates of a range, in order."""
        rows = cursor.execute(self._query, (*where, self._consumer, *self._parameters, limit))
        return [number for (number,) in rows]


@lru_cache(1000)
def condition_of(selector: str | None) -> tuple[str, tuple[str | int | float, ...]]:
    """Return the SQL that a selector adds to the WHERE clause of a query of messages, with its parameters.

    A message with damaged headers matches no selector; only consumers without a selector find it.

    Raises:
        InvalidSelectorError: The selector is invalid.
    """
    if not selector:
        return "", ()
    from jmsjca.selectors import Layout, Selector, translate  # loads a grammar; most never need it

    condition = translate(Selector.parse(selector), Layout(headers=_HEADERS, properties="headers", path="$.p"))
    return f" AND json_valid(headers) AND ({condition.sql})", condition.parameters


# Number of messages read under one acquisition of the lock: few at first, as the next match is usually near.
_SMALLEST_CHUNK, _LARGEST_CHUNK = 50, 5000
_NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'message'"
_NEXT_URGENCY = """SELECT urgency FROM message
                   WHERE queue_id = ? AND urgency > ? AND owner IS NULL AND due IS NULL ORDER BY urgency LIMIT 1"""
_BOUND = """SELECT id FROM message WHERE queue_id = ? AND urgency = ? AND id > ? AND owner IS NULL AND due IS NULL
            ORDER BY id LIMIT 1 OFFSET ?"""


class Candidate(NamedTuple):
    """A message that the consumer may claim."""

    urgency: int
    id: int


class QueueScan:
    """Finds candidates without claiming them.

    Args:
        store: The broker's database.
        queue_id: The queue to scan.
        query: Finds the messages that the consumer may claim.
    """

    def __init__(self, store: Store, queue_id: int, match: CandidateQuery) -> None:
        self._store = store
        self._queue_id = queue_id
        self._query = match
        self._returns = -1
        self._scanned_to: dict[int, int] = {}  # by urgency: the id up to which messages were read

    def find(self, returns: int, limit: int) -> list[Candidate]:
        """Return the next candidates, by priority and age.

        Args:
            returns: The queue's count of returns, read before this call.
            limit: Maximum number of candidates.
        """
        if returns != self._returns:
            self._returns = returns
            self._scanned_to.clear()
        found: list[Candidate] = []
        urgency = self._next_urgency(-1)
        while urgency is not None and len(found) < limit:
            found += self._scan_urgency(urgency, limit - len(found))
            urgency = self._next_urgency(urgency)
        return found

    def put_back(self, candidates: Iterable[Candidate]) -> None:
        """Make the next scan find these candidates again: they were not claimed."""
        for urgency, number in candidates:
            self._scanned_to[urgency] = min(self._scanned_to[urgency], number - 1)

    def _scan_urgency(self, urgency: int, limit: int) -> list[Candidate]:
        found: list[Candidate] = []
        more, chunk = True, max(limit, _SMALLEST_CHUNK)
        while more and len(found) < limit:
            with self._store.read() as cursor:
                ids, more = self._scan_chunk(cursor, urgency, chunk, limit - len(found))
            found += [Candidate(urgency, number) for number in ids]
            chunk = min(2 * chunk, _LARGEST_CHUNK)
        return found

    def _scan_chunk(self, cursor: sqlite3.Cursor, urgency: int, chunk: int, limit: int) -> tuple[list[int], bool]:
        after = self._scanned_to.get(urgency, 0)
        newest = cursor.execute(_NEWEST).fetchone()[0]  # read before the bound: later messages were not read
        bound = cursor.execute(_BOUND, (self._queue_id, urgency, after, chunk - 1)).fetchone()
        last = newest if bound is None else bound[0]
        ids = self._query.ids(cursor, _IdRange(self._queue_id, urgency, after, last), limit)
        self._scanned_to[urgency] = ids[-1] if len(ids) == limit else max(last, after)
        return ids, bound is not None

    def _next_urgency(self, after: int) -> int | None:
        with self._store.read() as cursor:
            row = cursor.execute(_NEXT_URGENCY, (self._queue_id, after)).fetchone()
        return None if row is None else int(row[0])
