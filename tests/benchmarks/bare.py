"""Bare SQLite loops of the embedded broker's shape: what its figures are held against.

One table, a partial index for what is ready, claim and delete as two transactions (user code runs in between, so they
cannot be one), WAL with synchronous=FULL for a file. No headers are encoded, no message objects are made.
"""

import sqlite3
from pathlib import Path

__all__ = ["BareStore"]

_TABLE = """CREATE TABLE msg (
    id INTEGER PRIMARY KEY, q INTEGER, owner INTEGER, npri INTEGER, exp INTEGER, n INTEGER, h TEXT, body BLOB)"""
_INDEX = "CREATE INDEX msg_ready ON msg (q, npri, id) WHERE owner IS NULL"
_INSERT = "INSERT INTO msg (q, npri, n, h, body) VALUES (1, 5, 0, ?, ?)"
_READY = "SELECT id, n, exp, h, body FROM msg WHERE q = 1 AND owner IS NULL ORDER BY npri, id LIMIT ?"
_CLAIM = "UPDATE msg SET owner = 7, n = n + 1 WHERE id = ?"
_DELETE = "DELETE FROM msg WHERE id = ? AND owner = 7"
HEADERS = '{"id":"ID:0123456789abcdef-1","to":["queue","bench"],"mode":2,"time":1700000000000}'


class BareStore:
    """One connection to a database of its own.

    Args:
        path: The file; None for memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        if path is not None:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(_TABLE)
        self._db.execute(_INDEX)
        self._cursor = self._db.cursor()

    def send(self, count: int, batch: int, body: bytes) -> None:
        """Insert in transactions of a batch."""
        cursor = self._cursor
        for _ in range(count // batch):
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(_INSERT, [(HEADERS, body)] * batch)
            cursor.execute("COMMIT")

    def receive(self, count: int, batch: int) -> None:
        """Claim a batch in one transaction, delete it in another."""
        cursor = self._cursor
        for _ in range(count // batch):
            cursor.execute("BEGIN IMMEDIATE")
            claimed = [(row[0],) for row in cursor.execute(_READY, (batch,)).fetchall()]
            cursor.executemany(_CLAIM, claimed)
            cursor.execute("COMMIT")
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(_DELETE, claimed)
            cursor.execute("COMMIT")

    def close(self) -> None:
        self._db.close()
