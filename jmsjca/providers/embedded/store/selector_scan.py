"""A consumer's way through a mailbox in which it passes over messages: for its selector, or for their groups.

It goes on from where it was, so that what it passed over once is not looked at again: the cost of a claim does not
grow with the number of messages that others must take. When one came back or became due it begins anew.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from jmsjca.providers.embedded.matching import Match, Stretch
from jmsjca.providers.embedded.store import Store

__all__ = ["Found", "Scan"]

# How many messages are looked at under one hold of the lock: few at first, as most often the next one is near.
_SMALLEST_CHUNK, _LARGEST_CHUNK = 50, 5000
_NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'message'"
_NEXT_URGENCY = """SELECT urgency FROM message
                   WHERE mailbox = ? AND urgency > ? AND owner IS NULL AND due IS NULL ORDER BY urgency LIMIT 1"""
_BOUND = """SELECT id FROM message WHERE mailbox = ? AND urgency = ? AND id > ? AND owner IS NULL AND due IS NULL
            ORDER BY id LIMIT 1 OFFSET ?"""


class Found(NamedTuple):
    """A message that the consumer may take."""

    urgency: int
    id: int


class Scan:
    """Finds candidates without claiming them.

    Args:
        store: The broker's database.
        mailbox: Where to look.
        match: Which messages.
    """

    def __init__(self, store: Store, mailbox: int, match: Match) -> None:
        self._store = store
        self._mailbox = mailbox
        self._match = match
        self._returns = -1
        self._passed: dict[int, int] = {}  # by urgency, up to which id everything was looked at

    def find(self, returns: int, limit: int) -> list[Found]:
        """The next candidates, by priority and age.

        Args:
            returns: The mailbox's number of returns as it was read before.
            limit: How many at most.
        """
        if returns != self._returns:
            self._returns = returns
            self._passed.clear()
        found: list[Found] = []
        urgency = self._next_urgency(-1)
        while urgency is not None and len(found) < limit:
            found += self._look(urgency, limit - len(found))
            urgency = self._next_urgency(urgency)
        return found

    def put_back(self, candidates: Iterable[Found]) -> None:
        """Find these again next time: they were not claimed."""
        for urgency, number in candidates:
            self._passed[urgency] = min(self._passed[urgency], number - 1)

    def _look(self, urgency: int, limit: int) -> list[Found]:
        found: list[Found] = []
        more, chunk = True, max(limit, _SMALLEST_CHUNK)
        while more and len(found) < limit:
            with self._store.read() as cursor:
                ids, more = self._look_at_chunk(cursor, urgency, chunk, limit - len(found))
            found += [Found(urgency, number) for number in ids]
            chunk = min(2 * chunk, _LARGEST_CHUNK)
        return found

    def _look_at_chunk(self, cursor: sqlite3.Cursor, urgency: int, chunk: int, limit: int) -> tuple[list[int], bool]:
        after = self._passed.get(urgency, 0)
        newest = cursor.execute(_NEWEST).fetchone()[0]  # before the bound: what comes later was not looked at
        bound = cursor.execute(_BOUND, (self._mailbox, urgency, after, chunk - 1)).fetchone()
        last = newest if bound is None else bound[0]
        ids = self._match.ids(cursor, Stretch(self._mailbox, urgency, after, last), limit)
        self._passed[urgency] = ids[-1] if len(ids) == limit else max(last, after)
        return ids, bound is not None

    def _next_urgency(self, after: int) -> int | None:
        with self._store.read() as cursor:
            row = cursor.execute(_NEXT_URGENCY, (self._mailbox, after)).fetchone()
        return None if row is None else int(row[0])
