"""The tables, and the migration of older files. Each change of the tables needs a new version and a migration step."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from jmsjca.errors import StoreError

__all__ = ["APPLICATION_ID", "VERSION", "create_tables", "execute_all", "migrate"]

APPLICATION_ID = 0x4A4D5331  # "JMS1": marks a broker's file, so that files of other programs are refused
VERSION = 4

# The names of tables and columns are those of the first release. In Python some have other names:
#
#   mailbox            a queue; its id is `queue_id`. A named queue and each subscription of a topic have one.
#   owner              a process (`ProcessMembership`); owner.bell is the path of its wakeup socket.
#   owner, token       of a message: its `Lease`. Only the owner, with the token of its claim, can settle the message.
#   digest             the checksum.
#   bucket             message groups share a fixed number of buckets; the consumer that got the first message of a
#                      bucket owns it.
#
# A message belongs to one queue; a message to a topic is copied to each subscription. mailbox.returns counts how often
# messages were released or became due: a consumer that skips messages, because of its selector or of groups, continues
# its scan until that number changes. mailbox.settings are those of its address. mailbox.added counts the messages that
# came, mailbox.removed those that left other than by settlement: what is not there any more was settled.
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
    added INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
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
    digest INTEGER,
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
