"""The SQLite connection, its tables and their migration, and write transactions beside other processes."""

import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from jmsjca.errors import ConnectionLostError, StoreError
from jmsjca.providers.embedded.errors import commit_error, is_busy, translate
from jmsjca.providers.embedded.store.shared_file import (
    live_processes,
    lock_folder,
    prepare_file,
)

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "Database",
    "create_tables",
    "execute_all",
    "migrate",
    "open_database",
    "read_version",
]

# Seconds between two attempts to lock the file. SQLite's own waiting sleeps longer after each attempt: beside a process
# that writes continuously it can starve for seconds.
_RETRY_INTERVAL = 0.0005

_NEW = 0  # the version of an empty database
_JOURNAL_BYTES = 64 * 1024 * 1024


class Database:
    """An open database.

    Args:
        path: The file; None for memory.
        lock_timeout: Maximum wait in seconds for the write transactions of other processes.

    Attributes:
        connection: The SQLite connection.
        cursor: The cursor of all transactions.
        lost: True if the file, or its journal (``-wal``) or index (``-shm``), was removed or replaced.
        is_rolling_back: True after a rollback that failed or was interrupted; `begin` repeats it.
    """

    def __init__(self, path: Path | None, lock_timeout: float) -> None:
        self._path = path
        self._lock_timeout = lock_timeout
        self._durable: bool | None = True  # what the file is set to; None: unknown
        self.is_rolling_back = False
        self.connection = open_database(path, lock_timeout)
        self.cursor = self.connection.cursor()
        self.lost = False
        self.cursor.execute("SELECT count(*) FROM sqlite_master")  # a read opens the journal and its index
        self._places = [] if path is None else [str(path), f"{path}-wal", f"{path}-shm"]
        self._identities = _identities(self._places)

    def begin(self, *, durable: bool, wait: bool = True) -> None:
        """Begin a write transaction, after the write transactions of other processes.

        Args:
            durable: True if its commit must be on disk when `commit` returns.
            wait: False to fail at once if the file is locked.

        Raises:
            ConnectionLostError: The file was removed or replaced: writes to it would be lost.
            sqlite3.OperationalError: The file stayed locked.
        """
        if self.is_rolling_back:
            self.roll_back()
        if self._path is None:
            self.cursor.execute("BEGIN IMMEDIATE")
            return
        self.check_identity()
        if self._durable is not durable:
            self._set_synchronous(durable=durable)
        self.cursor.execute("PRAGMA busy_timeout = 0")
        try:
            self._begin_with_retry(self._lock_timeout if wait else 0.0)
        finally:  # reads use SQLite's own wait, for a process that repairs the journal of a killed one
            self.cursor.execute(f"PRAGMA busy_timeout = {int(self._lock_timeout * 1000)}")

    def commit(self) -> None:
        """Commit. The caller rolls back if that fails.

        Raises:
            TransactionRolledBackError: The commit did not happen.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            self.cursor.execute("COMMIT")
        except sqlite3.Error as error:
            raise commit_error(error, self._path) from error

    def roll_back(self) -> None:
        """Roll back, unless SQLite has done so itself, for example when the disk is full. `begin` repeats a failure."""
        self.is_rolling_back = True
        if self.connection.in_transaction:
            self.cursor.execute("ROLLBACK")
        self.is_rolling_back = False

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def check_identity(self) -> None:
        """Check that the file is there, and the journal and its index that SQLite keeps beside it.

        Processes whose journal or index differ do not see the commits of each other, and overwrite them.

        Raises:
            ConnectionLostError: One of them was removed or replaced.
        """
        found = _identities(self._places)
        if found != self._identities:
            self.lost = True
            place = next(p for p, now, then in zip(self._places, found, self._identities, strict=True) if now != then)
            raise ConnectionLostError(
                f"{place} was removed or replaced while it was in use; connect again to use what is there now."
            )

    def is_lost(self) -> bool:
        """Return True if the file was removed or replaced."""
        with suppress(ConnectionLostError):
            self.check_identity()
        return self.lost

    def _set_synchronous(self, *, durable: bool) -> None:
        self._durable = None
        self.cursor.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._durable = durable

    def _begin_with_retry(self, lock_timeout: float) -> None:
        deadline = time.monotonic() + lock_timeout
        while True:
            try:
                self.cursor.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_RETRY_INTERVAL)


def _identities(places: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return device and inode, which differ between two files of one name, of each place; None if there is no file."""
    found: list[tuple[int, int] | None] = []
    for place in places:
        try:
            status = os.stat(place)  # noqa: PTH116  # at every commit: Path.stat() takes twice as long
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found


def open_database(path: Path | None, lock_timeout: float) -> sqlite3.Connection:
    """Open the database of a broker; create or convert it if necessary.

    Args:
        path: The file; None for memory.
        lock_timeout: Maximum wait in seconds for another process that holds the file's lock.

    Raises:
        InvalidURLError: The path cannot be a broker's file.
        ResourceAllocationError: Another process kept the file locked, or there is no disk space for it.
        StoreError: The file is foreign, damaged, of a later version, or in use by an earlier release.
    """
    if path is not None:
        prepare_file(path)
    db = sqlite3.connect(path or ":memory:", timeout=lock_timeout, isolation_level=None, check_same_thread=False)
    try:
        _configure(db, path)
    except (sqlite3.Error, StoreError) as error:
        db.close()
        if isinstance(error, sqlite3.Error):
            raise translate(error, path) from error
        raise
    return db


def _configure(db: sqlite3.Connection, path: Path | None) -> None:
    cursor = db.cursor()
    with _transaction(cursor, "DEFERRED"):  # refuses a file of another program before it is changed
        version = read_version(cursor, path)
    if path is not None:
        _require_pragma(cursor, "journal_mode", "wal", set_to="WAL")
        _require_pragma(cursor, "synchronous", 2, set_to="FULL")
        cursor.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        cursor.execute("PRAGMA fullfsync = ON")  # macOS: fsync leaves data in the cache of the drive
        cursor.execute("PRAGMA cell_size_check = ON")  # detects some damage before it spreads
    if version != VERSION:
        with _transaction(cursor, "IMMEDIATE"):
            _create_or_migrate(cursor, path)


def _create_or_migrate(cursor: sqlite3.Cursor, path: Path | None) -> None:
    version = read_version(cursor, path)  # read again: another process may have been faster
    if version == _NEW:
        create_tables(cursor)
    elif path is not None and version < VERSION:
        migrate(cursor, path, version, in_use=live_processes(cursor, lock_folder(path)))


def read_version(cursor: sqlite3.Cursor, path: Path | None) -> int:
    """Return the version of a file's format; 0 for an empty file.

    Raises:
        StoreError: The file is of another program, or of a later release.
    """
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


def _require_pragma(cursor: sqlite3.Cursor, pragma: str, wanted: str | int, *, set_to: str) -> None:
    cursor.execute(f"PRAGMA {pragma} = {set_to}")
    actual = cursor.execute(f"PRAGMA {pragma}").fetchone()[0]
    if actual != wanted:
        raise StoreError(f"The embedded broker needs PRAGMA {pragma} = {set_to}, but SQLite answers {actual!r} here.")


@contextmanager
def _transaction(cursor: sqlite3.Cursor, kind: str) -> Generator[None]:
    """Run a block in one transaction: its reads see one snapshot, its writes are committed together or not at all."""
    try:
        cursor.execute(f"BEGIN {kind}")
        yield
        cursor.execute("COMMIT")
    finally:
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")


APPLICATION_ID = 0x4A4D5331  # "JMS1": marks a broker's file, so that files of other programs are refused
VERSION = 5

# queue                a named queue, or the queue of a subscription of a topic.
# owner                a process (`ProcessMembership`), with the path of its wakeup socket.
# owner, token         of a message: its `Lease`. Only the owner, with the token of its claim, can settle the message.
# connection           of a consumer, a client id or a temporary destination: it ends with that connection.
# bucket               message groups share a fixed number of buckets; the consumer that got the first message of a
#                      bucket owns it.
#
# A message belongs to one queue; a message to a topic is copied to each subscription. queue.returns counts how often
# messages were released or became due: a consumer that skips messages, because of its selector or of groups, continues
# its scan until that number changes. queue.settings are those of its address. queue.added counts the messages that
# came, queue.removed those that left other than by settlement: what is not there any more was settled.
_TABLES = """
CREATE TABLE queue (
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
    added INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, name)
);
CREATE INDEX queue_topic ON queue (topic) WHERE topic IS NOT NULL;
CREATE INDEX queue_owner ON queue (owner) WHERE owner IS NOT NULL;
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    owner INTEGER,
    token INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    due INTEGER,
    expires INTEGER,
    bucket INTEGER,
    checksum INTEGER,
    headers TEXT NOT NULL,
    body BLOB
);
CREATE INDEX message_ready ON message (queue_id, urgency, id) WHERE owner IS NULL AND due IS NULL;
CREATE INDEX message_held ON message (owner, queue_id) WHERE owner IS NOT NULL;
CREATE INDEX message_due ON message (queue_id, due) WHERE due IS NOT NULL;
CREATE INDEX message_expires ON message (expires) WHERE expires IS NOT NULL;
CREATE TABLE owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    wakeup_path TEXT NOT NULL
);
CREATE TABLE consumer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
);
CREATE INDEX consumer_queue ON consumer (queue_id, id);
CREATE INDEX consumer_owner ON consumer (owner);
CREATE TABLE message_group (
    queue_id INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    consumer INTEGER NOT NULL,
    PRIMARY KEY (queue_id, bucket)
) WITHOUT ROWID;
CREATE INDEX message_group_consumer ON message_group (consumer);
CREATE TABLE client (
    id TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
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
CREATE TABLE duplicate_generation (
    id INTEGER PRIMARY KEY,
    address TEXT NOT NULL,
    ids INTEGER NOT NULL
);
CREATE INDEX duplicate_generation_address ON duplicate_generation (address, id);
CREATE TABLE duplicate (
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (generation, key)
) WITHOUT ROWID;
"""


def create_tables(cursor: sqlite3.Cursor) -> None:
    """Create the tables of a broker in an empty database, inside a transaction."""
    execute_all(cursor, _TABLES)
    cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    cursor.execute(f"PRAGMA user_version = {VERSION}")


def execute_all(cursor: sqlite3.Cursor, statements: str) -> None:
    """Execute statements that each end with a semicolon and a new line; unlike `executescript`, commit nothing."""
    for statement in statements.strip().split(";\n"):
        cursor.execute(statement)


# The statements that convert a version to the next one. They do not use the text of the tables above, which changes.
_STEPS = {
    1: """
ALTER TABLE mailbox RENAME TO mailbox_1;
DROP INDEX mailbox_topic;
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
INSERT INTO mailbox (id, kind, name, topic, owner) SELECT id, kind, name, topic, owner FROM mailbox_1;
DELETE FROM sqlite_sequence WHERE name = 'mailbox';
UPDATE sqlite_sequence SET name = 'mailbox' WHERE name = 'mailbox_1';
DROP TABLE mailbox_1;
CREATE INDEX mailbox_topic ON mailbox (topic) WHERE topic IS NOT NULL;
CREATE INDEX mailbox_owner ON mailbox (owner) WHERE owner IS NOT NULL;
ALTER TABLE message ADD COLUMN bucket INTEGER;
ALTER TABLE message ADD COLUMN digest INTEGER;
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
""",
    2: """
ALTER TABLE mailbox ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailbox ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
""",
    3: """
ALTER TABLE duplicate RENAME TO duplicate_3;
DROP INDEX duplicate_age;
CREATE TABLE duplicate_generation (
    id INTEGER PRIMARY KEY,
    address TEXT NOT NULL,
    ids INTEGER NOT NULL
);
CREATE INDEX duplicate_generation_address ON duplicate_generation (address, id);
CREATE TABLE duplicate (
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (generation, key)
) WITHOUT ROWID;
INSERT INTO duplicate_generation (address, ids) SELECT address, count(*) FROM duplicate_3 GROUP BY address;
INSERT INTO duplicate (generation, key) SELECT duplicate_generation.id, key FROM duplicate_3
    JOIN duplicate_generation ON duplicate_generation.address = duplicate_3.address;
DROP TABLE duplicate_3;
""",
    4: """
ALTER TABLE mailbox RENAME TO queue;
DROP INDEX mailbox_topic;
DROP INDEX mailbox_owner;
CREATE INDEX queue_topic ON queue (topic) WHERE topic IS NOT NULL;
CREATE INDEX queue_owner ON queue (owner) WHERE owner IS NOT NULL;
ALTER TABLE message RENAME COLUMN mailbox TO queue_id;
ALTER TABLE message RENAME COLUMN digest TO checksum;
ALTER TABLE message_group RENAME COLUMN mailbox TO queue_id;
ALTER TABLE owner RENAME COLUMN bell TO wakeup_path;
ALTER TABLE consumer RENAME TO consumer_4;
DROP INDEX consumer_mailbox;
DROP INDEX consumer_owner;
CREATE TABLE consumer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
);
INSERT INTO consumer (id, queue_id, owner, connection) SELECT id, mailbox, owner, '' FROM consumer_4;
DELETE FROM sqlite_sequence WHERE name = 'consumer';
UPDATE sqlite_sequence SET name = 'consumer' WHERE name = 'consumer_4';
DROP TABLE consumer_4;
CREATE INDEX consumer_queue ON consumer (queue_id, id);
CREATE INDEX consumer_owner ON consumer (owner);
ALTER TABLE client RENAME TO client_4;
CREATE TABLE client (
    id TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO client (id, owner, connection) SELECT id, owner, '' FROM client_4;
DROP TABLE client_4;
""",
}


def migrate(cursor: sqlite3.Cursor, path: Path, version: int, *, in_use: Sequence[int]) -> None:
    """Convert a file to this release's format.

    Args:
        cursor: A write transaction: after a crash the file has the old format or the new one.
        path: The file.
        version: Its format, earlier than this release's.
        in_use: Ids of the processes that have the file open.

    Raises:
        StoreError: The file is in use: these processes would continue as if it had the old format.
    """
    if in_use:
        raise StoreError(
            f"{path} is of an earlier release (format {version}, this one writes {VERSION}) and in use by processes "
            f"{', '.join(map(str, in_use))}: stop them, so that the file can be converted."
        )
    for step in range(version, VERSION):
        execute_all(cursor, _STEPS[step])
    cursor.execute(f"PRAGMA user_version = {VERSION}")
