"""The broker file: opening, refusals, and safety against foreign owners and links."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from jmsjca.errors import InvalidOptionError, InvalidURLError, ResourceAllocationError, StoreError
from jmsjca.providers.embedded.store.database import open_database
from jmsjca.providers.embedded.store.store import _open
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.embedded.processes import PATIENCE, heard, process


def opened(path: object) -> None:
    connect(ConnectionSettings(f"embedded://{path}")).close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def refused(path: object, kind: type[Exception], match: str) -> None:
    before = dict(_open.by_place)
    with pytest.raises(kind, match=match):
        connect(ConnectionSettings(f"embedded://{path}"))
    assert _open.by_place == before


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
        ("embedded://folder/broker.db", InvalidURLError, "one slash too few.*or embedded:./folder/broker.db"),
        ("embedded://broker.db", InvalidURLError, "did you mean embedded:./broker.db"),
        ("embedded://jobs.SQLite3/", InvalidURLError, "looks like a file"),
    ],
)
def test_url_that_makes_no_sense(url, kind, match):
    with pytest.raises(kind, match=match):
        connect(ConnectionSettings(url))


def test_adapter_refuses_a_memory_broker_that_looks_like_a_file():
    with pytest.raises(InvalidURLError, match=r"did you mean embedded:\./broker\.db or embedded:///folder/broker\.db"):
        ResourceAdapter("embedded://broker.db")


@pytest.mark.parametrize(
    "url", ["embedded:./100% new.db", "embedded://./100%25 new.db", "embedded://../{}/100%25 new.db"]
)
def test_relative_file_is_that_of_the_working_directory_when_the_url_is_given(url, tmp_path, monkeypatch):
    folder = tmp_path / "a?b%20"
    folder.mkdir()
    monkeypatch.chdir(folder)
    adapter = ResourceAdapter(url.format("a%3Fb%2520"))
    factory = ConnectionFactory(url.format("a%3Fb%2520"))
    monkeypatch.chdir(tmp_path)
    with adapter:
        adapter.send("orders", "one")
    with factory.create_context() as context:
        assert context.create_consumer(Queue("orders")).receive(timeout=5).body == "one"
    assert (folder / "100% new.db").is_file()
    assert [found.name for found in tmp_path.iterdir()] == ["a?b%20"]


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


NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_link_in_place_of_what_sqlite_keeps_beside_the_file(broker_file, tmp_path, ending):
    """SQLite would write through it: into whatever file somebody else has chosen."""
    (tmp_path / "precious").write_text("precious")
    Path(f"{broker_file}{ending}").symlink_to(tmp_path / "precious")
    refused(broker_file, InvalidURLError, f"broker.db{ending}.*not a file of this user")
    assert (tmp_path / "precious").read_text() == "precious"


def test_link_in_place_of_the_folder_of_the_lock_files(broker_file, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    Path(f"{broker_file}-owners").symlink_to(tmp_path / "elsewhere")
    refused(broker_file, InvalidURLError, "not a folder of this user")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_link_in_place_of_a_lock_file(broker_file, tmp_path):
    folder = Path(f"{broker_file}-owners")
    folder.mkdir(mode=0o700)
    (folder / "1.lock").symlink_to(tmp_path / "elsewhere")
    refused(broker_file, StoreError, "owners cannot be written")
    assert not (tmp_path / "elsewhere").exists()


def test_link_that_was_put_there_after_the_url_was_resolved(broker_file, tmp_path):
    from jmsjca.providers.embedded.store.shared_file import prepare_file

    broker_file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidURLError, match="is not a file"):
        prepare_file(broker_file)
    assert not (tmp_path / "elsewhere").exists()


def test_second_name_of_the_file(connected_file, broker_file, tmp_path):
    """Two names are two journals: SQLite would destroy the file that has both."""
    connected_file()
    (tmp_path / "second.db").hardlink_to(broker_file)
    refused(tmp_path / "second.db", InvalidURLError, "2 names")


def test_folders_and_files_are_for_their_user_alone(connected_file, broker_file):
    umask = os.umask(0)
    try:
        connected_file()
    finally:
        os.umask(umask)
    folder = Path(f"{broker_file}-owners")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [broker_file, folder, *folder.iterdir()]}
    assert modes == {"broker.db": 0o600, "broker.db-owners": 0o700, "1.lock": 0o600}


def as_nobody(script: str, path: object) -> str:
    """Run a script as another user; give the error that it ends with, or what it prints."""
    command = [sys.executable, "-c", AS_NOBODY + script, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return (result.stderr.splitlines() or [result.stdout])[-1]


# That user may not be allowed to read Python's own files: everything is imported before.
AS_NOBODY = f"""
import os, sys, tempfile
from jmsjca import Queue
from jmsjca.reconnection import ConnectionSettings, connect
with tempfile.TemporaryDirectory() as folder:
    connection = connect(ConnectionSettings(f"embedded://{{folder}}/warm.db"))
    connection.consumer(Queue("q")).receive(1, 0)
    connection.close()
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
"""
OPEN = "connect(ConnectionSettings('embedded://' + sys.argv[1])).close()"


@pytest.fixture
def public():
    """A folder that everybody may write to, like /tmp."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


@needs_root
def test_file_that_another_user_prepared(public):
    file = public / "broker.db"
    file.touch()
    file.chmod(0o666)
    assert "InvalidURLError" in (error := as_nobody(OPEN, file))
    assert "belongs to another user (id 0)" in error


@needs_root
def test_folder_of_lock_files_that_another_user_prepared(public):
    folder = public / "broker.db-owners"
    folder.mkdir()
    folder.chmod(0o777)
    assert "not a folder of this user" in as_nobody(OPEN, public / "broker.db")


@needs_root
@pytest.mark.parametrize("mode", [0o444, 0o200])
def test_file_that_the_user_may_not_read_or_write(public, mode):
    file = public / "broker.db"
    file.touch()
    os.chown(file, NOBODY, NOBODY)
    file.chmod(mode)
    assert "cannot be read and written" in as_nobody(OPEN, file)


@needs_root
def test_folder_that_the_user_may_not_write(public):
    public.chmod(0o755)
    assert "InvalidURLError" in (error := as_nobody(OPEN, public / "broker.db"))
    assert "Permission denied" in error


@needs_root
def test_folder_that_the_user_may_not_enter(public):
    public.chmod(0o700)
    assert "InvalidURLError" in (error := as_nobody(OPEN, public / "broker.db"))
    assert "Permission denied" in error


@needs_root
def test_file_in_a_folder_that_became_read_only(public):
    """The file may be written, but SQLite cannot make its journal beside it."""
    file = public / "broker.db"
    assert as_nobody(OPEN, file) == ""
    public.chmod(0o755)
    assert "StoreError" in (error := as_nobody(OPEN, file))
    assert "is it read-only?" in error
    public.chmod(0o1777)
    assert as_nobody(OPEN, file) == ""


@needs_root
def test_root_does_not_lock_out_the_user_of_a_file(public):
    file = public / "broker.db"
    assert as_nobody(OPEN, file) == ""
    with process(file, "send('q', 'from root')\ntell('in')\nsys.stdin.read()") as child:
        assert heard(child) == "in"
        script = f"""
connection = connect(ConnectionSettings("embedded://" + sys.argv[1]))
print(connection.consumer(Queue("q")).receive(1, {PATIENCE})[0].message.body)
"""
        assert as_nobody(script, file) == "from root\n"
