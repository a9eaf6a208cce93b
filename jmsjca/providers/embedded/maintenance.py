"""Maintenance of a broker's file: check it for damage, release unused space to the disk, and copy it.

Other processes may use the file. Each function opens a separate connection, so no thread waits for the store's lock.
"""

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from jmsjca.errors import MessageFormatError, ResourceAllocationError, StoreError
from jmsjca.providers.embedded.codec import verify_checksum
from jmsjca.providers.embedded.errors import translate

__all__ = ["backup", "check", "compact"]

_MAX_FAULTS = 100
_FAILED_WRITES = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE)
_MESSAGES = "SELECT id, checksum, CAST(headers AS BLOB), CAST(body AS BLOB) FROM message"
_WITHOUT_OWNER = "SELECT id FROM message WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM owner)"
_WITHOUT_QUEUE = "SELECT id FROM message WHERE owner IS NULL AND queue_id NOT IN (SELECT id FROM queue)"


def check(path: Path, lock_timeout: float = 30.0) -> list[str]:
    """Read a broker's whole file and report its faults.

    Other processes are not blocked, but the journal cannot be truncated until the check ends.

    Args:
        path: The file.
        lock_timeout: Maximum wait in seconds for the lock of another process.

    Returns:
        One line for each fault, of faults in the structure of the file the first hundred; empty for a sound file.
    """
    try:
        db = _open(path, lock_timeout, "ro")
    except sqlite3.Error as error:
        return [f"The file cannot be read: {error}."]
    with closing(db):
        looks = (_structure_faults, _message_faults, _orphaned_messages)
        return list(dict.fromkeys(fault for look in looks for fault in _until_unreadable(look, db)))


def compact(path: Path, lock_timeout: float = 30.0) -> int:
    """Rewrite a broker's file without the space of removed messages, which it would otherwise keep for new ones.

    Writers wait until it ends. It needs disk space for a second copy of the messages, and for a third in the folder of
    temporary files.

    Args:
        path: The file.
        lock_timeout: Maximum wait in seconds for the lock of another process.

    Returns:
        The bytes by which the file became smaller.

    Raises:
        ResourceAllocationError: There is not enough disk space, or another process kept the file locked.
        StoreError: The file is damaged.
    """
    before = path.stat().st_size
    try:
        with closing(_open(path, lock_timeout, "rw")) as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return before - path.stat().st_size


def backup(path: Path, target: Path, lock_timeout: float = 30.0) -> int:
    """Copy a broker's file, as it is at one moment. Other processes may use it during the copy.

    The copy appears under its name when it is complete and free of faults. Messages that consumers hold at that moment
    are in it; a broker that opens the copy delivers them again.

    Args:
        path: The file.
        target: The copy, which must not exist.
        lock_timeout: Maximum wait in seconds for the lock of another process.

    Returns:
        The size of the copy in bytes.

    Raises:
        StoreError: The file is damaged, or the copy exists.
        ResourceAllocationError: There is not enough disk space, the copy cannot be written, or another process kept the
            file locked.
    """
    draft = _empty_draft(target)
    try:
        with closing(_open(path, lock_timeout, "rw")) as db:
            _copy(db, draft, target)
        if faults := check(draft, lock_timeout):
            raise StoreError(f"The copy of {path} has faults, and is not kept: {faults[0]}")
        draft.rename(target)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise _unwritable(target, error.strerror) from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    return target.stat().st_size


def _copy(db: sqlite3.Connection, draft: Path, target: Path) -> None:
    """Copy a file, of which nothing is written: an error of a write is one of the copy."""
    try:
        db.execute("VACUUM INTO ?", (str(draft),))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_FULL:
            raise _unwritable(target, "no space left") from error
        if code in _FAILED_WRITES:
            raise _unwritable(target, str(error)) from error
        raise


def _empty_draft(target: Path) -> Path:
    """Return an empty file beside the copy: errors of SQLite do not say which of both files failed."""
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        if target.exists():
            raise StoreError(f"{target} exists: name a new file for the copy.")
        draft.touch(0o600, exist_ok=False)  # as the file: it holds the same messages
    except OSError as error:
        raise _unwritable(target, error.strerror) from error
    return draft


def _unwritable(target: Path, reason: str | None) -> ResourceAllocationError:
    return ResourceAllocationError(f"{target} cannot be written: {reason}; name another place for the copy.")


def _open(path: Path, lock_timeout: float, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=lock_timeout, isolation_level=None)


def _until_unreadable(look: Callable[[sqlite3.Connection], Iterable[str]], db: sqlite3.Connection) -> Iterator[str]:
    """Yield the faults of one check, until it ends or the file cannot be read further."""
    try:
        yield from look(db)
    except sqlite3.Error as error:
        yield f"The file cannot be read further: {error}."


def _structure_faults(db: sqlite3.Connection) -> Iterator[str]:
    rows = db.execute(f"PRAGMA integrity_check({_MAX_FAULTS})")
    return (f"The structure is damaged: {line}." for (text,) in rows for line in text.splitlines() if line != "ok")


def _message_faults(db: sqlite3.Connection) -> Iterator[str]:
    for message, checksum, headers, body in db.execute(_MESSAGES):
        try:
            verify_checksum(checksum, headers, body)
        except MessageFormatError as error:
            yield f"Message {message}: {error}"


def _orphaned_messages(db: sqlite3.Connection) -> Iterator[str]:
    for query, state in (
        (_WITHOUT_OWNER, "held by no registered process"),
        (_WITHOUT_QUEUE, "in no queue or subscription"),
    ):
        yield from (f"Message {message} is {state}." for (message,) in db.execute(query))
