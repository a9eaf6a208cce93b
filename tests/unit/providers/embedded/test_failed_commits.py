"""Commits that cannot happen, and what they must not leave behind or change."""

import sqlite3
from dataclasses import replace

import pytest

from jmsjca import BytesMessage, Limits, Queue, TextMessage, Topic
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.providers.embedded.store import shared_file
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare

QUEUE, OUT = Queue("q"), Queue("out")
PATIENCE = 30


def put(connection, *bodies: str, to=QUEUE) -> None:
    unit = connection.unit()
    for body in bodies:
        unit.send(prepare(TextMessage(body), to), to)
    unit.commit()


def open_unit(connection, count: int = 1):
    """A unit that has taken so many messages and sends one."""
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE).receive(count, 0))
    unit.send(prepare(TextMessage("out"), OUT), OUT)
    return unit


def rows(connection) -> int:
    with connection._store.read() as cursor:
        return cursor.execute("SELECT count(*) FROM message").fetchone()[0]


def steal(connection, change: str) -> None:
    """Do to the held messages what another process does that believes this one to be dead."""
    with connection._store.write() as cursor:
        cursor.execute(f"UPDATE message SET {change} WHERE owner IS NOT NULL")  # noqa: S608  # our own text


@pytest.mark.parametrize("change", ["owner = NULL, token = NULL", "owner = 99", "token = token + 1000"])
def test_claim_that_somebody_else_has_makes_the_commit_fail(connected, change):
    connection = connected()
    put(connection, "a")
    unit = open_unit(connection)
    steal(connection, change)
    with pytest.raises(TransactionRolledBackError, match="not ours any more"):
        unit.commit()
    assert (rows(connection), connection.admin().depth(OUT).total) == (1, 0)


def test_one_lost_claim_undoes_the_whole_unit(connected):
    connection = connected()
    put(connection, "a", "b")
    unit = open_unit(connection, 2)
    steal(connection, "token = token + CASE id WHEN 2 THEN 1000 ELSE 0 END")
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert (connection.admin().depth(QUEUE).total, connection.admin().depth(OUT).total) == (2, 0)
    assert connection.admin().depth(QUEUE).ready == 1  # what was still ours was given back


def test_rollback_leaves_alone_what_somebody_else_has(connected):
    connection = connected()
    put(connection, "a")
    unit = open_unit(connection)
    steal(connection, "owner = 99")
    unit.rollback()
    assert connection.admin().depth(QUEUE).held == 1


class FailingCursor:
    """A cursor whose next COMMIT fails."""

    def __init__(self, cursor: sqlite3.Cursor, code: int) -> None:
        self._cursor, self._code = cursor, code

    def __getattr__(self, name: str) -> object:
        return getattr(self._cursor, name)

    def execute(self, statement: str, *args: object) -> object:
        if statement == "COMMIT" and self._code:
            error = sqlite3.OperationalError("failed")
            error.sqlite_errorcode, self._code = self._code, 0
            raise error
        return self._cursor.execute(statement, *args)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, TransactionRolledBackError),
        (sqlite3.SQLITE_BUSY, TransactionRolledBackError),
        (sqlite3.SQLITE_IOERR_FSYNC, TransactionInDoubtError),
    ],
)
def test_commit_that_sqlite_refuses(connected, monkeypatch, code, kind):
    connection = connected()
    put(connection, "a")
    unit = open_unit(connection)
    database = connection._store.database
    monkeypatch.setattr(database, "cursor", FailingCursor(database.cursor, code))
    with pytest.raises(kind) as caught:
        unit.commit()
    causes = [caught.value, caught.value.__cause__, getattr(caught.value.__cause__, "__cause__", None)]
    assert any(isinstance(cause, sqlite3.Error) for cause in causes)
    assert connection.admin().depth(OUT).total == 0
    put(connection, "b")  # the store works again
    assert connection.admin().depth(QUEUE).total == 2


@pytest.mark.parametrize(
    ("code", "kind", "match"),
    [
        (sqlite3.SQLITE_BUSY, ResourceAllocationError, "locked for too long"),
        (sqlite3.SQLITE_FULL, ResourceAllocationError, "No space left"),
        (sqlite3.SQLITE_CORRUPT, StoreError, "is damaged"),
        (sqlite3.SQLITE_IOERR_READ, StoreError, "disk failed"),
        (sqlite3.SQLITE_ERROR, StoreError, "failed"),
    ],
)
def test_no_exception_of_sqlite_escapes(connected, code, kind, match):
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    store = connected()._store
    for enter in (store.read, store.write):
        with pytest.raises(kind, match=match) as caught, enter():
            raise error
        assert caught.value.__cause__ is error


def test_file_that_another_process_keeps_locked(broker_file):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=Limits(lock_timeout=0.01)))
    other = sqlite3.connect(broker_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransactionRolledBackError, match="locked for too long"):
        put(connection, "a")
    other.execute("ROLLBACK")
    other.close()
    put(connection, "a")
    assert rows(connection) == 1
    connection.close()


def test_connection_that_cannot_release_anything_when_it_closes(broker_file):
    """Another process keeps the file locked: a consumer of this process releases it once that is over."""
    settings = ConnectionSettings(f"embedded://{broker_file}", client_id="c", limits=Limits(lock_timeout=0.01))
    connection, later = connect(settings), connect(replace(settings, client_id=None))
    put(connection, "held", "in a unit")
    consumer, other = connection.consumer(QUEUE), later.consumer(QUEUE)
    in_unit = consumer.receive(2, 0)[1:]
    connection.unit().take(in_unit)
    consumer.hand_over(in_unit)
    temporary = connection.temporary("queue")
    locking = sqlite3.connect(broker_file, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    with pytest.raises(ResourceAllocationError, match="locked for too long"):
        connection.close()
    assert other.receive(1, 0.5) == []  # it does not wait for the lock
    locking.execute("ROLLBACK")
    locking.close()
    assert [(d.message.body, d.message.delivery_count) for d in other.receive(2, PATIENCE)] == [
        ("held", 1),
        ("in a unit", 2),
    ]
    with pytest.raises(InvalidDestinationError):
        put(later, "x", to=temporary)
    connect(settings).close()
    later.close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_unit_of_a_closed_subscriber_leaves_no_rows(connected, end):
    connection = connected()
    consumer = connection.consumer(Topic("t"))
    put(connection, "a", "b", to=Topic("t"))
    unit = connection.unit()
    unit.take(consumer.receive(1, 0))
    consumer.close()
    getattr(unit, end)()
    assert rows(connection) == 0


def test_closing_over_a_subscribers_unit_leaves_no_rows(connected):
    other, connection = connected(), connected()
    put(connection, "a", to=Topic("t"))
    consumer = connection.consumer(Topic("t"))
    put(connection, "b", to=Topic("t"))
    connection.unit().take(consumer.receive(1, 0))
    connection.close()
    assert rows(other) == 0


def test_rollback_after_the_queue_was_removed_leaves_no_rows(connected):
    connection = connected()
    put(connection, "a")
    consumer = connection.consumer(QUEUE)
    unit = connection.unit()
    unit.take(consumer.receive(1, 0))
    consumer.close()
    connection.remove(QUEUE)
    unit.rollback()
    assert rows(connection) == 0


def test_a_queue_with_a_consumer_is_not_removed(connected):
    connection = connected()
    consumer = connection.consumer(QUEUE)
    with pytest.raises(IllegalStateError, match="has consumers"):
        connection.remove(QUEUE)
    consumer.close()
    connection.remove(QUEUE)


def test_chunk_is_bounded_by_bytes_but_one_message_always_passes(jms_broker_url):
    connection = connect(ConnectionSettings(jms_broker_url, limits=Limits(prefetch_bytes=100)))
    unit = connection.unit()
    for size in (500, 60, 60, 60):
        unit.send(prepare(BytesMessage(b"x" * size), QUEUE), QUEUE)
    unit.commit()
    consumer = connection.consumer(QUEUE)
    assert [len(consumer.receive(10, 0)) for _ in range(3)] == [1, 2, 1]
    connection.close()


def test_only_a_wakeup_socket_is_removed(tmp_path):
    """The path stands in a file that others can write: only the socket itself is removed."""
    folder = tmp_path / "jmsjca-project"
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    shared_file.remove_wakeup_socket(str(folder / "wakeup"))
    shared_file.remove_wakeup_socket(str(folder / "thesis.txt"))
    assert (folder / "thesis.txt").read_text() == "precious"


def test_wakeup_socket_is_removed_at_close():
    wakeup_socket = shared_file.WakeupSocket(shared_file.WakeupCounter())
    path = shared_file.Path(wakeup_socket.path)
    assert path.exists()
    wakeup_socket.stop()
    wakeup_socket.close()
    assert not path.parent.exists()
