"""Duplicate detection: the ids of messages that were sent to a destination before.

The ids of a destination are kept in generations. A new id belongs to the youngest; when that holds half of the ids
that the destination must remember, the next generation begins, and those that are no longer needed are deleted whole.
So a transaction changes few pages of the file: in one table of all ids, random ids would change a page each.
"""

import sqlite3

__all__ = ["DuplicateIds", "forget_duplicate_ids"]

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
