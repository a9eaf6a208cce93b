"""The tables of the embedded broker and how its database is opened."""

import os
import sqlite3
from pathlib import Path

from jmsjca.errors import InvalidURLError, StoreError

__all__ = ["open_database"]

_APPLICATION_ID = 0x4A4D5331  # "JMS1": tells our files from other people's
_VERSION = 2

# A mailbox is a queue or one subscription of a topic. A message belongs to one mailbox; a topic's message is copied
# to each. owner and token are the fence: only who claimed a message, and by that very claim, can settle it.
# A mailbox's returns counts how often messages came back or became due: a consumer that passes over messages, for its
# selector or their group, goes on from where it was until that number changes. Its settings are those of its address.
# Message groups share a fixed number of buckets; a bucket belongs to the consumer that got its first message.
_TABLES = """
CREATE TABLE mailbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'durable', 'shared', 'volatile')),
    name TEXT NOT NULL,
    topic TEXT,
    owner INTEGER,
    shared INTEGER NOT NULL DEFAULT 0,
    selector TEXT,
    no_local TEXT,
    grouped INTEGER NOT NULL DEFAULT 0,
    returns INTEGER NOT NULL DEFAULT 0,
    settings TEXT,
    UNIQUE (kind, name)
);
CREATE INDEX mailbox_topic ON mailbox (topic) WHERE topic IS NOT NULL;
CREATE INDEX mailbox_owner ON mailbox (owner) WHERE owner IS NOT NULL;
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    owner INTEGER,
    token INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    due INTEGER,
    expires INTEGER,
    bucket INTEGER,
    headers TEXT NOT NULL,
    body BLOB
);
CREATE INDEX message_ready ON message (mailbox, urgency, id) WHERE owner IS NULL AND due IS NULL;
CREATE INDEX message_held ON message (owner, mailbox) WHERE owner IS NOT NULL;
CREATE INDEX message_due ON message (mailbox, due) WHERE due IS NOT NULL;
CREATE INDEX message_expires ON message (expires) WHERE expires IS NOT NULL;
CREATE TABLE owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    bell TEXT NOT NULL
);
CREATE TABLE consumer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox INTEGER NOT NULL,
    owner INTEGER NOT NULL
);
CREATE INDEX consumer_mailbox ON consumer (mailbox, id);
CREATE INDEX consumer_owner ON consumer (owner);
CREATE TABLE message_group (
    mailbox INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    consumer INTEGER NOT NULL,
    PRIMARY KEY (mailbox, bucket)
) WITHOUT ROWID;
CREATE INDEX message_group_consumer ON message_group (consumer);
CREATE TABLE client (
    id TEXT PRIMARY KEY,
    owner INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE temporary (
    address TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE setting (
    address TEXT PRIMARY KEY,
    settings TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE duplicate (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    key TEXT NOT NULL,
    UNIQUE (address, key)
);
CREATE INDEX duplicate_age ON duplicate (address, id);
"""


def open_database(path: Path | None, lock_timeout: float) -> sqlite3.Connection:
    """Open the database of a broker, and make its tables when it is new.

    Args:
        path: The file; None for memory.
        lock_timeout: Seconds to wait for another process that holds the file's lock.

    Raises:
        InvalidURLError: The path cannot be a broker's file.
        StoreError: The file is foreign, corrupted or of a later version.
    """
    if path is not None:
        _make_file(path)
    db = sqlite3.connect(path or ":memory:", timeout=lock_timeout, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path)
    except sqlite3.DatabaseError as error:
        db.close()
        raise StoreError(f"{path} cannot be opened as an embedded broker: {error}.") from error
    except BaseException:
        db.close()
        raise
    return db


def _make_file(path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidURLError(
            f"The folder {path.parent} of the embedded broker does not exist; make it, or correct the URL."
        )
    if path.exists() and not path.is_file():
        raise InvalidURLError(
            f"{path} is not a file; the URL of an embedded broker names a file (embedded:///folder/file.db)."
        )
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise InvalidURLError(f"The embedded broker's file {path} cannot be written: {error.strerror}.") from error


def _prepare(db: sqlite3.Connection, path: Path | None) -> None:
    _is_new(db, path)  # refuses a foreign file before anything in it is changed
    if path is not None:
        _require(db, "journal_mode", "wal", set_to="WAL")
        _require(db, "synchronous", 2, set_to="FULL")
        db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute("BEGIN IMMEDIATE")
    try:
        if _is_new(db, path):
            _make_tables(db)
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _require(db: sqlite3.Connection, pragma: str, wanted: str | int, *, set_to: str) -> None:
    db.execute(f"PRAGMA {pragma} = {set_to}")
    actual = db.execute(f"PRAGMA {pragma}").fetchone()[0]
    if actual != wanted:
        raise StoreError(f"The embedded broker needs PRAGMA {pragma} = {set_to}, but SQLite answers {actual!r} here.")


def _is_new(db: sqlite3.Connection, path: Path | None) -> bool:
    application, version = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version"))
    if application == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
        return True
    if application != _APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program, not of an embedded broker; name another file.")
    if version > _VERSION:
        raise StoreError(
            f"{path} was written by a later release (format {version}, this one reads {_VERSION}): upgrade jmsjca."
        )
    return False


def _make_tables(db: sqlite3.Connection) -> None:
    for statement in _TABLES.strip().split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {_VERSION}")
