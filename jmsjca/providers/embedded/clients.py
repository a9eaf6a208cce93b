"""Client ids: each belongs to one connection at a time (JMS 3.1, section 6.1.2)."""

import sqlite3

from jmsjca.errors import InvalidClientIDError

__all__ = ["enter_client", "leave_client"]


def enter_client(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Take a client id.

    Raises:
        InvalidClientIDError: Another connection has it.
    """
    cursor.execute("INSERT OR IGNORE INTO client VALUES (?, ?)", (client_id, owner))
    if not cursor.rowcount:
        raise InvalidClientIDError(
            f"The client id {client_id!r} is in use by another connection; close that one, or choose another id."
        )


def leave_client(cursor: sqlite3.Cursor, client_id: str, owner: int) -> None:
    """Let a client id go."""
    cursor.execute("DELETE FROM client WHERE id = ? AND owner = ?", (client_id, owner))
