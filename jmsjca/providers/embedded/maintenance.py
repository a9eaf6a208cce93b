"""Maintenance of a broker's file: check it for damage, and give back unused space.

Both work beside processes that use the file, on a connection of their own, so that nobody waits for the store's lock.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from jmsjca.errors import MessageFormatError
from jmsjca.providers.embedded.codec import verify_checksum
from jmsjca.providers.embedded.errors import translate

__all__ = ["check", "compact"]

_MAX_FAULTS = 100
_MESSAGES = "SELECT id, digest, CAST(headers AS BLOB), CAST(body AS BLOB) FROM message"
_WITHOUT_OWNER = "SELECT id FROM message WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM owner)"
_WITHOUT_QUEUE = "SELECT id FROM message WHERE owner IS NULL AND mailbox NOT IN (SELECT id FROM mailbox)"


def check(path: Path, lock_timeout: float = 30.0) -> list[str]:
    """Read a broker's file from beginning to end, and tell what is wrong with it: nothing, as a rule.

    Nobody has to wait, but the journal cannot be shortened until it has ended.

    Args:
        path: The file.
        lock_timeout: Seconds to wait for others at most.

    Returns:
        A line for each fault; of those in the structure of the file the first hundred.
    """
    try:
        db = _open(path, lock_timeout, "ro")
    except sqlite3.Error as error:
        return [f"The file cannot be read: {error}."]
    with closing(db):
        return [
            fault
            for look in (_structure_faults, _message_faults, _orphaned_messages)
            for fault in _until_unreadable(look, db)
        ]


def compact(path: Path, lock_timeout: float = 30.0) -> int:
    """Rewrite a broker's file without the space of messages that are gone, which it would keep for others to come.

    All who write wait meanwhile. It needs room for a second copy of the messages, and for a third in the folder of
    temporary files.

    Args:
        path: The file.
        lock_timeout: Seconds to wait for others at most.

    Returns:
        By how many bytes the file became smaller.

    Raises:
        ResourceAllocationError: There is no room, or another process kept the file locked.
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


def _open(path: Path, lock_timeout: float, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=lock_timeout, isolation_level=None)


def _until_unreadable(look: Callable[[sqlite3.Connection], Iterable[str]], db: sqlite3.Connection) -> Iterator[str]:
    """What is found until the file cannot be read further."""
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
    for query, state in ((_WITHOUT_OWNER, "held by nobody"), (_WITHOUT_QUEUE, "in no queue or subscription")):
        yield from (f"Message {message} is {state}." for (message,) in db.execute(query))
