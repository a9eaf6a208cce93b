"""Duplicate detection: the ids of messages that were sent to a destination before.

The number of ids that a destination remembers is configured. Older ids are deleted at every thousandth recorded id, so
more are kept meanwhile.
"""

import sqlite3

__all__ = ["forget_duplicate_ids", "record_duplicate_id"]

_TRIM_EVERY = 1000


def record_duplicate_id(cursor: sqlite3.Cursor, address: str, key: str, history: int) -> bool:
    """Record the duplicate id of a message to an address; return False if it is recorded already.

    Args:
        cursor: A write transaction.
        address: The destination of the message.
        key: The duplicate id.
        history: Number of ids to remember. More are kept until older ids are deleted.
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


def forget_duplicate_ids(cursor: sqlite3.Cursor, address: str) -> None:
    """Delete the recorded ids of a removed address: later messages to its name are new."""
    cursor.execute("DELETE FROM duplicate WHERE address = ?", (address,))
