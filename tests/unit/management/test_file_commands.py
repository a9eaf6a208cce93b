"""The file of an embedded broker: checked, compacted and copied with the command line. And a broker is measured."""

import json
import sqlite3
from dataclasses import replace

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.__main__ import run
from jmsjca.errors import JMSError, StoreError
from jmsjca.management.commands import _own_queue
from jmsjca.management.insight import Insight
from jmsjca.providers.embedded import maintenance
from tests.unit.management.test_dead_letters import drain, send


@pytest.fixture
def file(tmp_path):
    return tmp_path / "broker.db"


@pytest.fixture
def url(file):
    return f"embedded://{file}"


@pytest.fixture
def read(capsys):
    """Run a command with ``--json``; return its exit status and what it writes."""

    def _read(*arguments):
        status = run([*map(str, arguments), "--json"])
        written = capsys.readouterr()
        assert not written.err
        return status, json.loads(written.out)

    return _read


def test_a_sound_file_has_no_fault(file, url, read):
    send(url, TextMessage("a pear"))
    assert read("file", "check", file) == (0, [{"file": str(file), "fault": None}])


def test_a_changed_message_is_a_fault(file, url, read):
    send(url, TextMessage("a pear"))
    with sqlite3.connect(file) as database:
        database.execute("UPDATE message SET body = 'a paer'")
    database.close()
    status, [row] = read("file", "check", file)
    assert (status, row["fault"].startswith("Message 1")) == (1, True)


def test_a_compacted_file_is_smaller(file, url, read):
    send(url, *(TextMessage("x" * 10_000) for _ in range(200)))
    drain(url, "orders")
    status, [row] = read("file", "compact", file)
    assert status == 0
    assert row["freed_bytes"] > 1_000_000


def test_a_copy_has_what_the_file_had_and_delivers_what_was_held(file, url, read, tmp_path):
    send(url, *(TextMessage(str(number)) for number in range(5)))
    copy = tmp_path / "copy.db"
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        assert session.create_consumer(Queue("orders")).receive(60).body == "0"
        status, [row] = read("file", "backup", file, copy)
        session.commit()
    assert (status, row["bytes"]) == (0, copy.stat().st_size)
    assert copy.stat().st_mode & 0o777 == 0o600  # it has the same messages as the file
    assert len(Insight(url).messages("orders")) == 4
    assert sorted(each.body for each in drain(f"embedded://{copy}", "orders")) == list("01234")


def test_a_copy_replaces_no_file(file, url, tmp_path, capsys):
    send(url, TextMessage("a pear"))
    copy = tmp_path / "copy.db"
    copy.write_text("mine")
    assert run(["file", "backup", str(file), str(copy)]) == 1
    assert "exists: name a new file" in capsys.readouterr().err
    assert copy.read_text() == "mine"


@pytest.mark.parametrize("place", ["no/copy.db", "a_file/copy.db", "x" * 300])
def test_a_place_that_cannot_have_a_copy_is_named(file, url, tmp_path, capsys, place):
    send(url, TextMessage("a pear"))
    (tmp_path / "a_file").write_text("mine")
    before = sorted(tmp_path.iterdir())
    assert run(["file", "backup", str(file), str(tmp_path / place)]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"jmsjca: {tmp_path / place} cannot be written: ")
    assert (str(file) in errors, errors.count("\n")) == (False, 1)
    assert errors.endswith("name another place for the copy.\n")
    assert sorted(tmp_path.iterdir()) == before


def test_a_copy_of_a_damaged_file_is_not_kept(file, url, tmp_path):
    send(url, TextMessage("a pear"))
    with sqlite3.connect(file) as database:
        database.execute("UPDATE message SET body = 'a paer'")
    database.close()
    with pytest.raises(StoreError, match="has faults, and is not kept"):
        maintenance.backup(file, tmp_path / "copy.db")
    assert not list(tmp_path.glob("*copy.db*"))


@pytest.mark.parametrize("command", [["check"], ["compact"], ["backup"]])
def test_a_file_that_is_not_there_is_one_line(command, tmp_path, capsys):
    arguments = [*command, str(tmp_path / "no.db"), *([str(tmp_path / "copy.db")] if command == ["backup"] else [])]
    assert run(["file", *arguments]) == 2
    errors = capsys.readouterr().err
    assert ("There is no file" in errors, errors.count("\n")) == (True, 1)
    assert not list(tmp_path.iterdir())


def test_a_broker_is_measured_and_left_as_it_was(url, read):
    send(url, TextMessage("a pear"))
    status, rows = read("bench", url, "--messages", "20", "--size", "10")
    assert status == 0
    assert [each["measured"] for each in rows] == [
        *("send, one by one", "receive, one by one"),
        *("send, transactions of 100", "receive, transactions of 100"),
    ]
    assert all(each["messages"] == 20 and each["per_second"] > 0 for each in rows)
    assert [each.destination.name for each in Insight(url).destinations()] == ["orders"]
    assert len(drain(url, "orders")) == 1


class WithoutTemporaryQueues:
    """A connection to a broker that has an administration, but no temporary queues."""

    def __init__(self, connection):
        self._connection = connection
        self.capabilities = replace(connection.capabilities, temporary=False)

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, JMSError])
def test_a_bench_that_ends_early_leaves_no_queue_with_messages(tmp_path, error):
    def measure(connection):
        with _own_queue(WithoutTemporaryQueues(connection)) as queue, connection.create_session() as session:
            session.create_producer(queue).send(TextMessage("x"))
            raise error

    url = f"embedded://{tmp_path}/bench.db"
    with ConnectionFactory(url).create_connection() as connection:
        with pytest.raises(error):
            measure(connection)
        assert Insight(url).destinations() == []
