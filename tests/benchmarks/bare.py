"""Bare SQLite loops of the embedded broker's shape: what its figures are held against.

One table, a partial index for what is ready, claim and delete as two transactions (user code runs in between, so they
cannot be one), WAL with synchronous=FULL for a file. Headers of the length that ours have, and the body, are read and
written, but nothing is encoded or decoded, and no message objects are made.
"""

import os
import sqlite3
from pathlib import Path

from tests.benchmarks.contenders import BODY

__all__ = ["BareStore"]

_TABLE = """CREATE TABLE IF NOT EXISTS msg (
    id INTEGER PRIMARY KEY, q INTEGER, owner INTEGER, npri INTEGER, exp INTEGER, n INTEGER, h TEXT, body BLOB)"""
_INDEX = "CREATE INDEX IF NOT EXISTS msg_ready ON msg (q, npri, id) WHERE owner IS NULL"
_INSERT = "INSERT INTO msg (q, npri, n, h, body) VALUES (1, 5, 0, ?, ?)"
_READY = "SELECT id, n, exp, h, body FROM msg WHERE q = 1 AND owner IS NULL ORDER BY npri, id LIMIT ?"
_CLAIM = "UPDATE msg SET owner = ?, n = n + 1 WHERE id = ?"
_DELETE = "DELETE FROM msg WHERE owner = ? AND id = ?"
_HEADERS = (
    '{"id":"ID:0123456789abcdef0123456789abcdef-1234","to":["queue","bench"],"kind":"bytes","mode":2,"priority":4,'
    '"time":1795199931145}'
)
_PATIENCE = 60


class BareStore:
    """One connection to a database, which other processes may use too.

    Args:
        path: The file; None for memory.
        lazily: True if claims need not be on disk when they are made, as ours.
    """

    def __init__(self, path: Path | None, *, lazily: bool = False) -> None:
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=_PATIENCE)
        if path is not None:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(_TABLE)
        self._db.execute(_INDEX)
        self._cursor = self._db.cursor()
        self._owner = os.getpid()
        self._lazily = lazily

    def send(self, count: int, batch: int) -> None:
        """Insert in transactions of a batch."""
        cursor = self._cursor
        for _ in range(count // batch):
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(_INSERT, [(_HEADERS, BODY)] * batch)
            cursor.execute("COMMIT")

    def receive(self, count: int, batch: int) -> None:
        """Claim a batch in one transaction, delete it in another."""
        cursor = self._cursor
        for _ in range(count // batch):
            self._sync("NORMAL")
            cursor.execute("BEGIN IMMEDIATE")
            claimed = [(self._owner, row[0]) for row in cursor.execute(_READY, (batch,)).fetchall()]
            cursor.executemany(_CLAIM, claimed)
            cursor.execute("COMMIT")
            self._sync("FULL")
            cursor.execute("BEGIN IMMEDIATE")
            deleted = cursor.executemany(_DELETE, claimed).rowcount
            cursor.execute("COMMIT")
            assert deleted == batch

    def close(self) -> None:
        self._db.close()

    def _sync(self, how: str) -> None:
        if self._lazily:
            self._cursor.execute(f"PRAGMA synchronous = {how}")
