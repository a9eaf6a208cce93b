"""How the database of a broker is opened: made when it is new, migrated when it is old, refused when it is neither."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jmsjca.errors import StoreError
from jmsjca.providers.embedded.files import make_file
from jmsjca.providers.embedded.filesystems import check_local
from jmsjca.providers.embedded.migrations import migrate
from jmsjca.providers.embedded.schema import APPLICATION_ID, VERSION, make_tables
from jmsjca.providers.embedded.sqlite_errors import translate

__all__ = ["check_format", "open_database"]

_NEW = 0  # the version of a database without anything in it
_JOURNAL_BYTES = 64 * 1024 * 1024


def open_database(path: Path | None, lock_timeout: float) -> sqlite3.Connection:
    """Open the database of a broker.

    Args:
        path: The file; None for memory.
        lock_timeout: Seconds to wait for another process that holds the file's lock.

    Raises:
        InvalidURLError: The path cannot be a broker's file.
        ResourceAllocationError: Another process kept it locked, or there is no space for it.
        StoreError: The file is foreign, damaged, of a later version, or in use by an earlier release.
    """
    if path is not None:
        check_local(path)
        make_file(path)
    db = sqlite3.connect(path or ":memory:", timeout=lock_timeout, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path)
    except sqlite3.Error as error:
        db.close()
        raise translate(error, path) from error
    except BaseException:
        db.close()
        raise
    return db


def check_format(cursor: sqlite3.Cursor, path: Path | None) -> None:
    """Make sure that a database is of this release's format still; no other release migrated it meanwhile.

    Args:
        cursor: A transaction.
        path: The file.

    Raises:
        StoreError: It is not.
    """
    version = _version(cursor, path)
    if version != VERSION:
        raise StoreError(f"The format of {path} changed to {version} while it was opened; open it again.")


def _prepare(db: sqlite3.Connection, path: Path | None) -> None:
    cursor = db.cursor()
    with _transaction(cursor, "DEFERRED"):  # refuses a foreign file before anything in it is changed
        version = _version(cursor, path)
    if path is not None:
        _require(cursor, "journal_mode", "wal", set_to="WAL")
        _require(cursor, "synchronous", 2, set_to="FULL")
        cursor.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        cursor.execute("PRAGMA cell_size_check = ON")  # finds some damage before it does more
    if version != VERSION:
        with _transaction(cursor, "IMMEDIATE"):
            _bring_up_to_date(cursor, path)


def _bring_up_to_date(cursor: sqlite3.Cursor, path: Path | None) -> None:
    version = _version(cursor, path)  # read again: others may have been faster
    if version == _NEW:
        make_tables(cursor)
    elif path is not None and version < VERSION:
        migrate(cursor, path, version)


def _version(cursor: sqlite3.Cursor, path: Path | None) -> int:
    application, version = (
        int(cursor.execute(f"PRAGMA {p}").fetchone()[0]) for p in ("application_id", "user_version")
    )
    if application == 0 and not cursor.execute("SELECT 1 FROM sqlite_master").fetchone():
        return _NEW
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program, not of an embedded broker; name another file.")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a later release (format {version}, this one reads {VERSION}): upgrade jmsjca."
        )
    return int(version)


def _require(cursor: sqlite3.Cursor, pragma: str, wanted: str | int, *, set_to: str) -> None:
    cursor.execute(f"PRAGMA {pragma} = {set_to}")
    actual = cursor.execute(f"PRAGMA {pragma}").fetchone()[0]
    if actual != wanted:
        raise StoreError(f"The embedded broker needs PRAGMA {pragma} = {set_to}, but SQLite answers {actual!r} here.")


@contextmanager
def _transaction(cursor: sqlite3.Cursor, kind: str) -> Generator[None]:
    """What is read within is of one moment; what is written is there with all of it or not at all."""
    cursor.execute(f"BEGIN {kind}")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise
