"""Checking and compacting a broker file, and automatic maintenance."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jmsjca import BytesMessage, Limits, Queue
from jmsjca.errors import ResourceAllocationError, StoreError
from jmsjca.providers.embedded import maintenance
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.providers.embedded.processes import heard, process, put

QUEUE = Queue("q")


def send(connection, count: int, size: int) -> None:
    unit = connection.unit()
    for _ in range(count):
        unit.send(prepare(BytesMessage(bytes(size)), QUEUE), QUEUE)
    unit.commit()


def take(connection, count: int) -> None:
    consumer = connection.consumer(QUEUE)
    unit = connection.unit()
    unit.take(consumer.receive(count, 0))
    unit.commit()
    consumer.close()


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def change_index(path: Path, old: str, new: str) -> None:
    """Say something else about an index that is there, as if it had been made so."""
    sql = f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = 'message_ready'"  # noqa: S608
    change(path, "PRAGMA writable_schema = ON", sql)


def test_sound_file_has_no_faults(connected_file):
    connection = connected_file()
    send(connection, 100, 5000)
    take(connection, 30)
    connection.unit().take(connection.consumer(QUEUE).receive(10, 0))
    assert connection.admin().check() == []


def test_changed_message_is_a_fault(connected_file, broker_file):
    connection = connected_file()
    send(connection, 3, 10)
    change(broker_file, "UPDATE message SET body = zeroblob(9) WHERE id = 2")
    [fault] = connection.admin().check()
    assert fault.startswith("Message 2: ")
    assert "damaged" in fault


def test_message_without_a_checksum_is_no_fault(connected_file, broker_file):
    """Files of the first release have none."""
    connection = connected_file()
    send(connection, 1, 10)
    change(broker_file, "UPDATE message SET checksum = NULL")
    assert connection.admin().check() == []


def test_message_that_nobody_can_receive_is_a_fault(connected_file, broker_file):
    connection = connected_file()
    send(connection, 2, 10)
    change(
        broker_file,
        "UPDATE message SET owner = 99, token = 1 WHERE id = 1",
        "UPDATE message SET queue_id = 99 WHERE id = 2",
    )
    assert connection.admin().check() == [
        "Message 1 is held by no registered process.",
        "Message 2 is in no queue or subscription.",
    ]


def test_index_that_lost_a_message_is_a_fault(connected_file, broker_file):
    """The message is there, but no consumer would ever find it; reading all messages does not tell."""
    connection = connected_file()
    send(connection, 3, 10)
    change_index(broker_file, "due IS NULL", "due IS NULL AND id <> 2")
    change(broker_file, "REINDEX message_ready")
    change_index(broker_file, "due IS NULL AND id <> 2", "due IS NULL")
    faults = connection.admin().check()
    assert any("message_ready" in fault for fault in faults)


def test_file_that_cannot_be_read_to_its_end_is_a_fault(connected_file, broker_file):
    connection = connected_file()
    send(connection, 100, 5000)
    connection.close()
    broker_file.write_bytes(broker_file.read_bytes()[:100_000])
    faults = maintenance.check(broker_file)
    assert any("damaged" in fault or "malformed" in fault for fault in faults)


@pytest.mark.parametrize("content", [None, b"This is no database. " * 100])
def test_what_is_no_file_of_a_broker_has_faults(broker_file, content):
    if content is not None:
        broker_file.write_bytes(content)
    faults = maintenance.check(broker_file)
    assert faults
    assert all("cannot be read" in fault for fault in faults)
    assert broker_file.exists() == (content is not None)


def test_check_makes_nobody_wait(connected_file, broker_file):
    connection = connected_file()
    other = sqlite3.connect(broker_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert connection.admin().check() == []
    other.close()


def test_compact_gives_space_back_and_keeps_the_rest(connected_file, broker_file):
    connection, other = connected_file(), connected_file()
    send(connection, 500, 5000)
    take(connection, 450)
    [held] = connection.consumer(QUEUE).receive(1, 0)
    freed = connection.admin().compact()
    assert freed > 450 * 5000
    assert broker_file.stat().st_size < 100 * 5000
    assert Path(f"{broker_file}-wal").stat().st_size == 0
    unit = connection.unit()
    unit.take([held])
    unit.commit()
    assert len(other.consumer(QUEUE).receive(100, 0)) == 49
    assert connection.admin().check() == []


def test_compact_goes_on_beside_other_processes(connected_file, broker_file):
    connection = connected_file()
    send(connection, 500, 5000)
    script = "[delivery] = connection.consumer(Queue('q')).receive(1, 0)\ntell('has one')\nsys.stdin.readline()\n"
    commit = "unit = connection.unit()\nunit.take([delivery])\nunit.commit()\ntell('committed')"
    with process(broker_file, script + commit) as child:
        assert heard(child) == "has one"
        take(connection, 498)
        assert connection.admin().compact() > 0
        assert child.stdin is not None
        child.stdin.write("go on\n")
        child.stdin.flush()
        assert heard(child) == "committed"
    assert connection.admin().depth(QUEUE).total == 1


def test_compact_waits_for_others_no_longer_than_it_may(broker_file):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=Limits(lock_timeout=0.01)))
    other = sqlite3.connect(broker_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ResourceAllocationError, match="locked for too long"):
        connection.admin().compact()
    other.close()
    connection.close()


def test_compact_refuses_a_damaged_file(connected_file, broker_file):
    connection = connected_file()
    send(connection, 100, 5000)
    connection.close()
    broker_file.write_bytes(broker_file.read_bytes()[:100_000])
    before = broker_file.read_bytes()
    with pytest.raises(StoreError, match="is damaged"):
        maintenance.compact(broker_file)
    assert broker_file.read_bytes() == before


def test_memory_has_nothing_to_check_or_compact(connected):
    connection = connected()
    put(connection, "a")
    assert (connection.admin().check(), connection.admin().compact()) == ([], 0)


def test_copy_of_a_file_in_use_gives_back_what_was_held(connected_file, broker_file, tmp_path):
    connection, copy = connected_file(), tmp_path / "copy.db"
    put(connection, "waiting", "held")
    connection.consumer(QUEUE).receive(1, 0)
    with closing(sqlite3.connect(broker_file)) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
    restored = connect(ConnectionSettings(f"embedded://{copy}"))
    assert [(d.message.body, d.count) for d in restored.consumer(QUEUE).receive(9, 0)] == [("waiting", 2), ("held", 1)]
    restored.close()


def sizes(path: Path) -> tuple[int, int]:
    return path.stat().st_size, Path(f"{path}-wal").stat().st_size


def test_file_does_not_grow_with_what_passes_through(connected_file, broker_file):
    """Twenty times what is in the queue at a time; the space of what is gone is used again."""
    connection = connected_file()
    seen = []
    for _ in range(20):
        send(connection, 200, 5000)
        take(connection, 200)
        seen.append(sum(sizes(broker_file)))
    assert seen[-1] < 1.5 * max(seen[:5])


def test_browser_that_stands_still_does_not_make_the_journal_grow(connected_file, broker_file):
    """It reads chunk by chunk: between two chunks it pins nothing."""
    connection = connected_file()
    send(connection, 300, 100)
    browser = connection.browse(QUEUE)
    next(browser)
    seen = []
    for _ in range(20):
        send(connection, 200, 5000)
        take(connection, 200)
        seen.append(sizes(broker_file)[1])
    assert seen[-1] < 1.5 * max(seen[:5])
    assert len(next(browser)) == 100


def test_journal_of_a_large_unit_is_given_back(connected_file, broker_file):
    connection = connected_file()
    send(connection, 40, 3_000_000)
    assert sizes(broker_file)[1] > 100_000_000
    for _ in range(3):
        put(connection, "small")
    assert sizes(broker_file)[1] <= 64 * 1024 * 1024
