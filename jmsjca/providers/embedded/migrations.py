"""How a file of an earlier release becomes one of this release: one step per version, all in one transaction."""

import sqlite3
from pathlib import Path

from jmsjca.errors import StoreError
from jmsjca.providers.embedded.owners import find_alive, lock_folder
from jmsjca.providers.embedded.schema import VERSION, execute_all

__all__ = ["migrate"]

# From which version, what makes it the next. Text of its own, not of the schema: that goes on changing.
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
}


def migrate(cursor: sqlite3.Cursor, path: Path, version: int) -> None:
    """Bring a file to this release's format.

    Args:
        cursor: A write transaction: a crash leaves the file as it was, or done.
        path: The file.
        version: Its format, earlier than this release's.

    Raises:
        StoreError: Processes have it open: they would go on as if it were of the old format.
    """
    alive = find_alive(cursor, lock_folder(path))
    if alive:
        raise StoreError(
            f"{path} is of an earlier release (format {version}, this one writes {VERSION}) and in use by processes "
            f"{', '.join(map(str, alive))}: stop them, so that the file can be converted."
        )
    for step in range(version, VERSION):
        execute_all(cursor, _STEPS[step])
    cursor.execute(f"PRAGMA user_version = {VERSION}")
