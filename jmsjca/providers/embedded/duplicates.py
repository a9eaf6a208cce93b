"""The ids by which messages that are sent again are known: a bounded history for each address."""

import sqlite3

__all__ = ["forget_duplicates", "is_new"]

_TRIM_EVERY = 1000


def is_new(cursor: sqlite3.Cursor, address: str, key: str, history: int) -> bool:
    """Note the id of a message that is sent to an address; False if it was noted there before.

    Args:
        cursor: A write transaction.
        address: Where the message goes.
        key: Its id.
        history: How many ids are remembered; a few more are until they are trimmed.
    """
    cursor.execute("INSERT OR IGNORE INTO duplicate (address, key) VALUES (?, ?)", (address, key))
    if cursor.rowcount == 0:
        return False
    if (cursor.lastrowid or 0) % _TRIM_EVERY == 0:
        cursor.execute(
            """DELETE FROM duplicate WHERE address = :address AND id <= (SELECT id FROM duplicate
               WHERE address = :address ORDER BY id DESC LIMIT 1 OFFSET :history)""",
            {"address": address, "history": history},
        )
    return True


def forget_duplicates(cursor: sqlite3.Cursor, address: str) -> None:
    """Forget the ids of an address that is removed: what is sent to its name later is new."""
    cursor.execute("DELETE FROM duplicate WHERE address = ?", (address,))
