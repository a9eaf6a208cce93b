"""Files of earlier releases are converted completely or left unchanged."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from jmsjca import DestinationSettings, Queue, TextMessage
from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import StoreError
from jmsjca.providers.embedded.store import database
from jmsjca.providers.embedded.store.database import VERSION
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.providers.embedded.processes import PATIENCE, heard, process

QUEUE, SUBSCRIPTION = Queue("q"), Subscription(Topic("t"), name="sub", client_id="me")

# As the first release made its files.
VERSION_1 = """
CREATE TABLE mailbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'durable', 'volatile')),
    name TEXT NOT NULL,
    topic TEXT,
    owner INTEGER,
    UNIQUE (kind, name)
);
CREATE INDEX mailbox_topic ON mailbox (topic) WHERE topic IS NOT NULL;
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    owner INTEGER,
    token INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    due INTEGER,
    expires INTEGER,
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
CREATE TABLE duplicate (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    key TEXT NOT NULL,
    UNIQUE (address, key)
);
CREATE INDEX duplicate_age ON duplicate (address, id);
PRAGMA application_id = 0x4A4D5331;
PRAGMA user_version = 1;
"""

# Of every state one, as the first release wrote them; 2100-01-01 is 4102444800000, 2001-09-09 is 1000000000000.
ROWS_1 = """
INSERT INTO mailbox (id, kind, name, topic, owner) VALUES
    (3, 'queue', 'q', NULL, NULL), (4, 'durable', 'me.sub', 't', NULL), (5, 'volatile', '9f', 't', 8);
INSERT INTO message (id, mailbox, urgency, owner, token, deliveries, due, expires, headers, body) VALUES
    (11, 3, 5, NULL, NULL, 0, NULL, NULL, '{"id":"ID:1","to":["queue","q"],"kind":"text","correlation":"corr",'
        || '"reply":["queue","replies"],"type":"kind","mode":2,"priority":4,"time":1795201973103,'
        || '"p":{"region":"EU","size":3,"tiny":7},"t":{"tiny":"byte"}}', X'72656164C3A9'),
    (12, 3, 5, 8, 44, 2, NULL, NULL,
        '{"id":"ID:2","to":["queue","q"],"kind":"bytes","mode":1,"priority":4,"time":1795201973103}', X'00FF'),
    (13, 3, 5, NULL, NULL, 0, 4102444800000, NULL,
        '{"id":"ID:3","to":["queue","q"],"kind":"text","mode":2,"priority":4,"time":1795201973103}', X'6C61746572'),
    (14, 3, 5, NULL, NULL, 0, NULL, 1000000000000,
        '{"id":"ID:4","to":["queue","q"],"kind":"text","mode":2,"priority":4,"time":1795201973103}', X'676F6E65'),
    (15, 4, 0, NULL, NULL, 1, NULL, 4102444800000,
        '{"id":"ID:5","to":["topic","t"],"kind":"plain","mode":2,"priority":9,"time":1795201973103}', NULL),
    (16, 5, 5, NULL, NULL, 0, NULL, NULL,
        '{"id":"ID:6","to":["topic","t"],"kind":"text","mode":2,"priority":4,"time":1795201973103}', X'64696573');
INSERT INTO owner (id, pid, bell) VALUES (8, 99999999, '/nowhere/jmsjca-x/bell');
INSERT INTO duplicate (id, address, key) VALUES (21, 'queue:q', 'once');
UPDATE sqlite_sequence SET seq = 70 WHERE name = 'mailbox';
UPDATE sqlite_sequence SET seq = 90 WHERE name = 'message';
"""


@pytest.fixture
def old_file(broker_file: Path) -> Path:
    """A file of the first release, whose last user was killed."""
    db = sqlite3.connect(broker_file)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(VERSION_1 + ROWS_1)
    db.close()
    return broker_file


def version_of(path: Path) -> int:
    db = sqlite3.connect(path)
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    db.close()
    return version


def dump(path: Path) -> list[str]:
    db = sqlite3.connect(path)
    lines = list(db.iterdump())
    db.close()
    return lines


@pytest.fixture
def converted(old_file, connected_file):
    return connected_file()


def test_what_waited_and_what_the_dead_held_is_there(converted):
    ready, held = converted.consumer(QUEUE).receive(10, 0)
    message = ready.message
    assert (message.body, message.message_id, message.correlation_id) == ("readé", "ID:1", "corr")
    assert (message.reply_to, message.type, message.priority) == (Queue("replies"), "kind", 4)
    assert dict(message.properties) == {"region": "EU", "size": 3, "tiny": 7}
    assert message.get_byte_property("tiny") == 7
    assert (held.message.body, held.count, held.redelivered) == (b"\x00\xff", 3, True)


def test_what_is_scheduled_stays_scheduled_and_what_expired_is_gone(converted):
    assert len(converted.consumer(QUEUE).receive(10, 0)) == 2
    depth = converted.admin().depth(QUEUE)
    assert (depth.ready, depth.held, depth.scheduled) == (0, 2, 1)


def test_durable_subscription_is_kept_with_its_messages(converted):
    [delivery] = converted.consumer(SUBSCRIPTION).receive(10, 0)
    assert (delivery.message.message_id, delivery.message.priority, delivery.count) == ("ID:5", 9, 2)
    assert delivery.message.expiration is not None


def test_subscription_of_the_dead_is_forgotten_with_its_messages(converted):
    with converted._store.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM queue WHERE kind = 'volatile'").fetchone() == (0,)
        assert cursor.execute("SELECT count(*) FROM message WHERE queue_id = 5").fetchone() == (0,)


def test_duplicate_of_what_was_sent_before_is_dropped(converted):
    before = converted.admin().depth(QUEUE).total
    for key in ("once", "new"):
        unit = converted.unit()
        unit.send(prepare(TextMessage("x", properties={"_AMQ_DUPL_ID": key}), QUEUE), QUEUE)
        unit.commit()
    assert converted.admin().depth(QUEUE).total == before + 1


def test_ids_go_on_where_they_were(converted):
    """An id that was used once is never used again: what still names it would name something else."""
    with converted._store.write() as cursor:
        cursor.execute("INSERT INTO queue (kind, name) VALUES ('queue', 'new')")
        assert cursor.lastrowid == 71
        cursor.execute("INSERT INTO message (queue_id, urgency, headers) VALUES (71, 5, '{}')")
        assert cursor.lastrowid == 91


def structure(path: Path) -> dict[str, object]:
    """Tables with their columns and checks, indexes with their columns and conditions; not the order of columns."""
    db = sqlite3.connect(path)
    shape: dict[str, object] = {}
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind == "table":
            columns = {row[1:] for row in db.execute(f"PRAGMA table_xinfo({name})")}
            shape[name] = (columns, "AUTOINCREMENT" in sql, "WITHOUT ROWID" in sql, sql[sql.find("CHECK") :][:70])
        else:
            shape[name] = " ".join(sql.split()) if sql else None
    db.close()
    return shape


def test_converted_file_is_built_like_a_new_one(converted, broker_file, tmp_path):
    new = tmp_path / "new.db"
    connect(ConnectionSettings(f"embedded://{new}")).close()
    assert structure(broker_file) == structure(new)
    assert version_of(broker_file) == VERSION


def test_file_of_the_second_format_is_converted_with_its_messages(old_file, connected_file, tmp_path):
    db = sqlite3.connect(old_file)
    db.executescript(f"{database._STEPS[1]}PRAGMA user_version = 2;")
    db.close()
    admin = connected_file().admin()
    connect(ConnectionSettings(f"embedded://{tmp_path / 'new.db'}")).close()
    assert structure(old_file) == structure(tmp_path / "new.db")
    assert (admin.depth(QUEUE).ready, version_of(old_file)) == (2, VERSION)


def test_ids_of_a_file_of_the_third_format_are_remembered(old_file, connected_file):
    """Of each destination its own."""
    db = sqlite3.connect(old_file)
    db.executescript(f"{database._STEPS[1]}{database._STEPS[2]}PRAGMA user_version = 3;")
    ids = [row for n in range(3) for row in (("queue:q", f"q{n}"), ("queue:other", f"o{n}"))]
    db.executemany("INSERT INTO duplicate (address, key) VALUES (?, ?)", ids)
    db.commit()
    db.close()
    connection = connected_file()
    before = connection.admin().depth(QUEUE).total
    for key in ("q0", "o0", "q2", "once"):
        unit = connection.unit()
        unit.send(prepare(TextMessage("x", properties={"_AMQ_DUPL_ID": key}), QUEUE), QUEUE)
        unit.commit()
    assert connection.admin().depth(QUEUE).total == before + 1


@pytest.fixture
def file_of_version_4(broker_file: Path) -> Path:
    """The dump of a file that commit e518d05f wrote. Its process was killed while it held messages and a client id."""
    db = sqlite3.connect(broker_file)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(Path(__file__).with_name("version_4.sql").read_text(encoding="utf-8"))
    db.close()
    return broker_file


def test_file_of_the_fourth_format_is_converted_with_all_that_its_dead_process_left(
    file_of_version_4, connected_file, tmp_path
):
    connection = connect(ConnectionSettings(f"embedded://{file_of_version_4}", client_id="me"))  # the dead one's id
    connect(ConnectionSettings(f"embedded://{tmp_path / 'new.db'}")).close()
    assert structure(file_of_version_4) == structure(tmp_path / "new.db")
    admin = connection.admin()
    assert admin.settings(QUEUE) == DestinationSettings(max_deliveries=5, dead_letter=Queue("dead"))
    received = connection.consumer(QUEUE).receive(10, 0)
    assert [(d.message.body, d.count) for d in received] == [("é", 1), (b"\0\xff", 1), ("held", 2)]
    assert dict(received[0].message.properties) == {"region": "EU"}
    [grouped] = connection.consumer(Queue("groups")).receive(10, 0)
    assert (grouped.message.body, grouped.count) == ("grouped", 2)
    [news] = connection.consumer(SUBSCRIPTION, selector="region = 'EU'").receive(10, 0)
    assert (news.message.body, admin.activity(SUBSCRIPTION).consumers) == ("news", 1)
    unit = connection.unit()
    unit.send(prepare(TextMessage("again", properties={"_AMQ_DUPL_ID": "once"}), Queue("ids")), Queue("ids"))
    unit.commit()
    assert admin.depth(Queue("ids")).total == 1
    with connection._store.read() as cursor:  # what ended with the dead process is gone
        kinds = cursor.execute("SELECT kind, count(*) FROM queue GROUP BY kind ORDER BY kind").fetchall()
        assert kinds == [("durable", 1), ("queue", 3)]
        assert cursor.execute("SELECT count(*) FROM temporary").fetchone() == (0,)
        assert cursor.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_traffic_of_a_converted_file_is_counted(converted):
    before = converted.admin().activity(QUEUE)
    unit = converted.unit()
    unit.take(converted.consumer(QUEUE).receive(2, 0))
    unit.send(prepare(TextMessage("x"), QUEUE), QUEUE)
    unit.commit()
    after = converted.admin().activity(QUEUE)
    assert (after.added - before.added, after.settled - before.settled) == (1, 2)


def test_converted_file_is_sound(converted):
    with converted._store.read() as cursor:
        assert cursor.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_old_file_in_use_is_left_to_its_user(old_file):
    """A process of the first release has the file open: it would go on writing as if nothing had changed."""
    script = """
import fcntl, os, sqlite3, sys
folder = sys.argv[1] + "-owners"
os.mkdir(folder)
fd = os.open(folder + "/9.lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO owner (id, pid, bell) VALUES (9, ?, '')", (os.getpid(),))
db.commit()
print("open", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script, str(old_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert heard(user) == "open"
        before = dump(old_file)
        with pytest.raises(StoreError, match=f"in use by processes {user.pid}: stop them"):
            connect(ConnectionSettings(f"embedded://{old_file}"))
        assert (version_of(old_file), dump(old_file)) == (1, before)
        user.kill()
    connect(ConnectionSettings(f"embedded://{old_file}")).close()
    assert version_of(old_file) == VERSION


def test_process_that_was_about_to_join_notices_the_change(connected_file, broker_file, monkeypatch):
    """Another release converts the file after this one looked at its format, and before it is known as a user."""
    from jmsjca.providers.embedded.store import store

    class Late(store.Database):
        def __init__(self, *args):
            super().__init__(*args)
            self.connection.execute("PRAGMA user_version = 99")

    monkeypatch.setattr(store, "Database", Late)
    with pytest.raises(StoreError, match="later release"):
        connected_file()


def test_crash_within_a_conversion_leaves_the_old_file(old_file):
    """Killed before the commit, with everything written but nothing valid."""
    before = dump(old_file)
    script = f"""
import os, signal, sys
from jmsjca.providers.embedded.store import database as migrations
from jmsjca.reconnection import ConnectionSettings, connect
execute_all = migrations.execute_all
def execute_and_die(cursor, statements):
    execute_all(cursor, statements)
    os.kill(os.getpid(), signal.SIGKILL)
migrations.execute_all = execute_and_die
connect(ConnectionSettings("embedded://{old_file}"))
"""
    result = subprocess.run([sys.executable, "-c", script], check=False, timeout=PATIENCE)
    assert result.returncode == -signal.SIGKILL
    assert (version_of(old_file), dump(old_file)) == (1, before)
    connect(ConnectionSettings(f"embedded://{old_file}")).close()
    assert version_of(old_file) == VERSION


def test_conversion_that_fails_leaves_the_old_file(old_file, monkeypatch):
    before = dump(old_file)
    monkeypatch.setitem(database._STEPS, 1, f"{database._STEPS[1]}DROP TABLE absent;\n")
    with pytest.raises(StoreError, match="no such table"):
        connect(ConnectionSettings(f"embedded://{old_file}"))
    assert (version_of(old_file), dump(old_file)) == (1, before)


def test_two_processes_convert_once(old_file):
    """Whoever is second finds the new format and joins."""
    script = "tell('in')\nsys.stdin.read()"
    with process(old_file, script) as first, process(old_file, script) as second:
        assert [heard(first), heard(second)] == ["in", "in"]
    assert version_of(old_file) == VERSION
    assert list(Path(f"{old_file}-owners").iterdir()) == []
