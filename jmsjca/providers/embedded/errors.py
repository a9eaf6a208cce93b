"""SQLite errors as JMS errors."""

import sqlite3
from pathlib import Path

from jmsjca.errors import (
    JMSError,
    ResourceAllocationError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)

__all__ = ["commit_error", "is_busy", "translate"]

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
    """Tell whether another process or connection is in the way."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translate(error: sqlite3.Error, path: Path | None) -> JMSError:
    """The error of a statement as one of ours.

    Args:
        error: What SQLite raised.
        path: The broker's file; None for memory.
    """
    kind, text = _MEANINGS.get(_code(error), _OTHER)
    return kind(text.format(place=path or "in memory", error=error))


def commit_error(error: sqlite3.Error, path: Path | None) -> JMSError:
    """The error of a commit: it tells whether the commit happened, as far as that is known."""
    if _code(error) == sqlite3.SQLITE_IOERR:
        return TransactionInDoubtError(
            f"The commit to {path} failed while writing ({error}); it may or may not be on disk."
        )
    return TransactionRolledBackError(f"The commit did not happen: {translate(error, path)}")


def _code(error: sqlite3.Error) -> int:
    """The primary code; errors that Python's own part of the library raises have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
