"""What the errors of SQLite mean to those who use a broker."""

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

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another process or connection is in the way."""
    return _code(error) in _BUSY


def translate(error: sqlite3.Error, path: Path | None) -> JMSError:
    """The error of a statement as one of ours.

    Args:
        error: What SQLite raised.
        path: The broker's file; None for memory.
    """
    place = path or "in memory"
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return ResourceAllocationError(
                f"Another process has kept {place} locked for too long; is one stopped or hung?"
            )
        case sqlite3.SQLITE_FULL:
            return ResourceAllocationError(f"No space left for {place}; make room and try again. Nothing was lost.")
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"{place} is no database, or its beginning is destroyed; name another, or restore it.")
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(f"{place} is damaged ({error}); stop all that use it, then restore it or save the rest.")
        case sqlite3.SQLITE_IOERR:
            return StoreError(f"The disk failed while {place} was read or written: {error}.")
        case _:
            return StoreError(f"The embedded broker {place} failed: {error}.")


def commit_error(error: sqlite3.Error, path: Path | None) -> JMSError:
    """The error of a commit: it tells whether the commit happened, as far as that is known."""
    if _code(error) == sqlite3.SQLITE_IOERR:
        return TransactionInDoubtError(
            f"The commit to {path} failed while writing ({error}); it may or may not be on disk."
        )
    return TransactionRolledBackError(f"The commit to {path} failed and did not happen: {error}.")


def _code(error: sqlite3.Error) -> int:
    """The primary code; errors that Python's own part of the library raises have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
