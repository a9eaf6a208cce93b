"""Translation of SQLite errors to JMS errors."""

import sqlite3
from pathlib import Path

from jmsjca.errors import (
    InvalidDestinationError,
    JMSError,
    ResourceAllocationError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)

__all__ = ["TRANSLATED", "commit_error", "is_busy", "translate"]

TRANSLATED = (sqlite3.Error, UnicodeEncodeError)
"""The errors of statements: the second is raised for a name that is no Unicode text."""

_LOCKED = (ResourceAllocationError, "Another process has kept {place} locked for too long; is one stopped or hung?")
_UNWRITABLE = (StoreError, "{place} or its folder cannot be written ({error}); is it read-only?")
_OTHER = (StoreError, "The embedded broker {place} failed: {error}.")
_MEANINGS: dict[int, tuple[type[JMSError], str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_FULL: (
        ResourceAllocationError,
        "No space left for {place}; make room and try again. Nothing was lost.",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreError,
        "{place} is no database, or its beginning is destroyed; name another file, or restore it.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreError,
        "{place} is damaged ({error}); stop all that use it, then restore it or save what is left.",
    ),
    sqlite3.SQLITE_IOERR: (StoreError, "The disk failed while {place} was read or written: {error}."),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Return True if another process or connection holds a lock."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translate(error: sqlite3.Error | UnicodeEncodeError, path: Path | None) -> JMSError:
    """Return the JMS error for the error of a statement.

    Args:
        error: The error that the statement raised.
        path: The broker's file; None for memory.
    """
    if isinstance(error, UnicodeEncodeError):
        return InvalidDestinationError(
            f"The name {error.object!r:.100} holds half of a surrogate pair, which is no Unicode text."
        )
    kind, text = _MEANINGS.get(_code(error), _OTHER)
    return kind(text.format(place=path or "in memory", error=error))


def commit_error(error: sqlite3.Error, path: Path | None) -> JMSError:
    """Return the JMS error for the error of a commit: rolled back, or in doubt if a write to the disk failed."""
    if _code(error) == sqlite3.SQLITE_IOERR:
        return TransactionInDoubtError(
            f"The commit to {path} failed while writing ({error}); it may or may not be on disk."
        )
    return TransactionRolledBackError(f"The commit did not happen: {translate(error, path)}")


def _code(error: sqlite3.Error) -> int:
    """Return the primary error code; 0 for errors that Python's own part of the module raises."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
