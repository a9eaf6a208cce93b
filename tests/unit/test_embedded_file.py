"""The file of an embedded broker: what is opened, what is refused, how it is kept."""

import os
import sqlite3
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from jmsjca import Queue
from jmsjca.errors import InvalidOptionError, InvalidURLError, ResourceAllocationError, StoreError
from jmsjca.providers.embedded.store.database import open_database
from jmsjca.providers.embedded.store.store import _stores
from jmsjca.reconnection import ConnectionSettings, connect


def opened(path: object) -> None:
    connect(ConnectionSettings(f"embedded://{path}")).close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def refused(path: object, kind: type[Exception], match: str) -> None:
    before = dict(_stores)
    with pytest.raises(kind, match=match):
        connect(ConnectionSettings(f"embedded://{path}"))
    assert _stores == before


def test_missing_folder(tmp_path):
    refused(tmp_path / "missing" / "broker.db", InvalidURLError, "does not exist")


def test_folder_in_place_of_the_file(tmp_path):
    refused(tmp_path, InvalidURLError, "is not a file")


def test_pipe_in_place_of_the_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", InvalidURLError, "is not a file")


@pytest.mark.parametrize("content", [b"This is no database. " * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_garbage(broker_file, content):
    broker_file.write_bytes(content)
    refused(broker_file, StoreError, "is no database")
    assert broker_file.read_bytes() == content


def test_database_of_another_program_is_refused_and_left_as_it_was(broker_file):
    db = sqlite3.connect(broker_file)
    db.execute("CREATE TABLE customer (name TEXT)")
    db.commit()
    db.close()
    before = broker_file.read_bytes()
    refused(broker_file, StoreError, "another program")
    assert broker_file.read_bytes() == before
    assert [p.name for p in broker_file.parent.iterdir()] == [broker_file.name]


def test_file_of_a_later_release(broker_file):
    opened(broker_file)
    db = sqlite3.connect(broker_file)
    db.execute("PRAGMA user_version = 99")
    db.close()
    refused(broker_file, StoreError, "later release")


class Late(sqlite3.Cursor):
    """One that lets somebody else make the broker just before it looks whether there is anything in the file."""

    path: Path

    def execute(self, statement: str, *parameters):
        if "sqlite_master" in statement:
            with suppress(ResourceAllocationError):  # refused while we look
                open_meanwhile(self.path)
        return super().execute(statement, *parameters)


class LateConnection(sqlite3.Connection):
    def cursor(self, factory=None):
        return super().cursor(Late)


connect_to_sqlite = sqlite3.connect


def open_meanwhile(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_to_sqlite)
        open_database(path, 0.01).close()


def test_two_processes_make_a_file_at_once(broker_file, monkeypatch):
    """What each of them reads is of one moment: it never takes the other's half-made file for another program's."""
    Late.path = broker_file
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=LateConnection))
    open_database(broker_file, 30).close()
    monkeypatch.undo()
    opened(broker_file)


def test_empty_file_becomes_a_broker(broker_file):
    broker_file.touch()
    opened(broker_file)
    opened(broker_file)


@pytest.mark.parametrize(
    ("url", "kind", "match"),
    [
        ("embedded://name?sync=off", InvalidOptionError, "sync"),
        ("embedded://name:5672", InvalidURLError, "port"),
        ("embedded://folder/broker.db", InvalidURLError, "one slash too few"),
    ],
)
def test_url_that_makes_no_sense(url, kind, match):
    with pytest.raises(kind, match=match):
        connect(ConnectionSettings(url))


def test_signs_in_a_path_may_be_encoded(tmp_path):
    opened(f"{tmp_path}/a%20b%3F.db")
    assert (tmp_path / "a b?.db").is_file()


def test_two_names_of_one_file_are_one_broker(tmp_path, connected_file, broker_file):
    (tmp_path / "link.db").symlink_to(broker_file)
    connection = connected_file()
    other = connect(ConnectionSettings(f"embedded://{tmp_path}/link.db"))
    assert other._store is connection._store
    other.close()


def test_nobody_else_can_read_the_file(connected_file, broker_file):
    umask = os.umask(0)
    try:
        connected_file().consumer(Queue("q"))
    finally:
        os.umask(umask)
    names = [broker_file, *broker_file.parent.glob("broker.db-*")]
    shared = [p.name for p in names if stat.S_IMODE(p.stat().st_mode) & 0o077]
    assert shared == []
    assert stat.S_IMODE(broker_file.stat().st_mode) == 0o600


def test_journal_is_wal_and_every_commit_but_a_claim_is_synced(connected_file):
    store = connected_file()._store
    seen: list[int] = []
    for durable in (True, False, True):
        with store.write(durable=durable) as cursor:
            seen.append(cursor.execute("PRAGMA synchronous").fetchone()[0])
            assert cursor.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert seen == [2, 1, 2]  # FULL, NORMAL, FULL


def test_units_are_synced_after_a_claim_was_not(connected_file):
    store = connected_file()._store
    with store.write(durable=False):
        pass
    assert store.submit(lambda cursor: cursor.execute("PRAGMA synchronous").fetchone()[0]) == 2


def test_file_is_synced_from_the_first_write_on(connected_file):
    with connected_file()._store.read() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_failed_opening_leaves_nothing_open(broker_file):
    """The folder of the lock files cannot be made, so the file that was opened before must be closed again."""
    (broker_file.parent / "broker.db-owners").write_text("in the way")
    open_before = open_files()
    refused(broker_file, StoreError, "owners")
    assert open_files() == open_before


def test_closing_leaves_nothing_open(broker_file):
    opened(broker_file)
    open_before = open_files()
    opened(broker_file)
    assert open_files() == open_before
    assert list((broker_file.parent / "broker.db-owners").iterdir()) == []
    db = sqlite3.connect(broker_file)
    assert db.execute("SELECT count(*) FROM owner").fetchone() == (0,)
    db.close()


def test_memory_is_forgotten_with_its_messages(jms_broker_url):
    from jmsjca.providers.embedded.store.store import drop_memory_store

    connection = connect(ConnectionSettings(jms_broker_url))
    connection.consumer(Queue("q"))
    connection.close()
    drop_memory_store(jms_broker_url.removeprefix("embedded://"))
    connection = connect(ConnectionSettings(jms_broker_url))
    assert connection.admin().destinations() == []
    connection.close()
