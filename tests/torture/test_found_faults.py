"""Faults that kills, failing disks and planted faults have found, each in its smallest form."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jmsjca import ConnectionFactory, Queue, Session, TextMessage
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.embedded import consumer as consumer_module
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection, Consumer, Order

QUEUE = Queue("found")


class BrokenDisk:
    """A cursor whose commits fail: all of them, or so many."""

    def __init__(self, cursor: sqlite3.Cursor, failures: int) -> None:
        self._cursor = cursor
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement == "COMMIT" and self._failures:
            self._failures -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return self._cursor.execute(statement, *arguments)


@pytest.fixture
def connections(tmp_path: Path) -> Iterator[list[Connection]]:
    """Two of one process, and a message in the queue."""
    connections = [connect(ConnectionSettings(f"embedded://{tmp_path}/broker.db")) for _ in range(2)]
    unit = connections[0].unit()
    unit.send(TextMessage("a"), QUEUE)
    unit.commit()
    yield connections
    for connection in connections:
        connection.close()


@contextmanager
def broken_disk(connection: Any, failures: int) -> Iterator[None]:
    database = connection._store.database
    whole = database.cursor
    database.cursor = BrokenDisk(whole, failures)
    yield
    database.cursor = whole


def received(consumer: Consumer) -> list[tuple[str, int | None]]:
    return [(delivery.message.body, delivery.count) for delivery in consumer.receive(10, 0)]


def test_what_is_in_doubt_comes_again(connections: list[Connection]) -> None:
    """SQLite has rolled it back, or has not: then there is nothing to come again."""
    consumer, unit = connections[0].consumer(QUEUE), connections[0].unit()
    unit.take(consumer.receive(1, 0))
    with broken_disk(connections[0], failures=1), pytest.raises(TransactionInDoubtError):
        unit.commit()
    assert received(consumer) == [("a", 2)]


def test_what_could_not_be_given_back_comes_again_after_the_connection(connections: list[Connection]) -> None:
    consumer, unit = connections[0].consumer(QUEUE), connections[0].unit()
    unit.take(consumer.receive(1, 0))
    with broken_disk(connections[0], failures=9), pytest.raises(TransactionInDoubtError):
        unit.commit()
    connections[0].close()
    assert received(connections[1].consumer(QUEUE)) == [("a", 2)]


def test_give_back_that_fails_is_tried_again(connections: list[Connection]) -> None:
    consumer = connections[0].consumer(QUEUE)
    deliveries = consumer.receive(1, 0)
    with broken_disk(connections[0], failures=1):
        consumer.release(deliveries)
    [again] = consumer.receive(1, 30.0)
    assert (again.message.body, again.count) == ("a", 1)


@pytest.mark.parametrize("how", ["roll back", "give back"])
def test_what_comes_again_at_once_is_not_forgotten(
    connections: list[Connection], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Another thread receives what was given back, before the one that gave it back has gone on."""
    store: Any = connections[0]._store  # type: ignore[attr-defined]
    consumer, unit = connections[0].consumer(QUEUE, order=Order.ANY), connections[0].unit()
    [first] = consumer.receive(1, 0)
    submit = store.submit
    again: list[Any] = []

    def submit_and_receive(job: Any) -> object:
        result = submit(job)
        again.extend(consumer.receive(1, 0))
        return result

    with monkeypatch.context() as patch:
        patch.setattr(store, "submit", submit_and_receive)
        if how == "roll back":
            unit.take([first])
            unit.rollback()
        else:
            consumer.release([first])
    unit = connections[0].unit()
    unit.take(again)
    unit.commit()
    admin = connections[1].admin()
    assert admin
    assert admin.depth(QUEUE).total == 0


def _send(session: Session, count: int) -> None:
    producer = session.create_producer(QUEUE)
    for n in range(count):
        producer.send(session.create_text_message(str(n)))
    session.commit()


def _let_another_process_open(url: str) -> None:
    code = f"from jmsjca import ConnectionFactory; ConnectionFactory({url!r}).create_connection().close()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_rollback_of_nothing_keeps_what_was_taken_ahead(tmp_path: Path) -> None:
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        _send(session, 3)
        consumer = session.create_consumer(QUEUE)
        bodies = []
        while (message := consumer.receive(timeout=0)) is not None:
            bodies.append(message.body)
            session.commit()
            session.rollback()
        assert bodies == ["0", "1", "2"]


def test_closing_ends_the_thread_that_waits_for_other_processes(tmp_path: Path) -> None:
    with ConnectionFactory(f"embedded://{tmp_path}/broker.db").create_connection() as connection:
        assert connection.create_session().create_consumer(QUEUE).receive(timeout=0.01) is None
    assert not [thread for thread in threading.enumerate() if thread.name == "jmsjca-wakeup"]


def test_who_was_taken_for_dead_is_told_and_holds_nothing(tmp_path: Path) -> None:
    url = f"embedded://{tmp_path}/broker.db"
    factory = ConnectionFactory(url)
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        _send(session, 30)
        consumer = session.create_consumer(QUEUE)
        assert consumer.receive(timeout=0) is not None
        for lock in (tmp_path / "broker.db-owners").iterdir():
            lock.unlink()
        _let_another_process_open(url)
        with pytest.raises(TransactionRolledBackError):
            session.commit()
        with pytest.raises(ConnectionLostError):
            consumer.receive(timeout=0)
        with factory.create_connection() as again:
            session_again = again.create_session(transacted=True)
            message = session_again.create_consumer(QUEUE).receive(timeout=0)
            assert message is not None
            assert (message.body, message.delivery_count) == ("0", 2)


def test_a_refused_commit_forgets_what_was_taken_ahead(tmp_path: Path) -> None:
    url = f"embedded://{tmp_path}/broker.db"
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        _send(session, 3)
        consumer = session.create_consumer(QUEUE)
        store = connection._provider_connection._store
        for _ in range(3):
            message = consumer.receive(timeout=0)
            assert message is not None
            assert message.body == "0"
            with store.write() as cursor:  # as if somebody else had it
                cursor.execute("UPDATE message SET token = -1 WHERE id = (SELECT min(id) FROM message)")
            with pytest.raises(TransactionRolledBackError):
                session.commit()
            with store.write() as cursor:
                cursor.execute("UPDATE message SET owner = NULL, token = NULL")


PATIENCE = 10  # seconds


@pytest.fixture
def memory_connection(jms_broker_url: str) -> Iterator[Connection]:
    memory_connection = connect(ConnectionSettings(jms_broker_url))
    yield memory_connection
    memory_connection.close()


def test_commit_wakes_who_waits_in_the_same_process(memory_connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else does: the consumer would look by itself in an hour."""
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    waiting, wakeups = threading.Event(), memory_connection._store.wakeups
    wait = wakeups.wait

    def say_and_wait(seen: int, timeout: float) -> None:
        waiting.set()
        wait(seen, min(timeout, 2 * PATIENCE))

    monkeypatch.setattr(wakeups, "wait", say_and_wait)
    consumer = memory_connection.consumer(QUEUE)
    with ThreadPoolExecutor() as threads:
        received = threads.submit(consumer.receive, 1, None)
        assert waiting.wait(PATIENCE)
        unit = memory_connection.unit()
        unit.send(TextMessage("a"), QUEUE)
        unit.commit()
        assert len(received.result(PATIENCE)) == 1
