"""What failing disks, and threads beside them, brought to light, each in its smallest form."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.errors import JMSError, TransactionInDoubtError
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


def test_give_back_that_fails_can_be_tried_again(connections: list[Connection]) -> None:
    consumer = connections[0].consumer(QUEUE)
    deliveries = consumer.receive(1, 0)
    with broken_disk(connections[0], failures=1), pytest.raises(JMSError):
        consumer.release(deliveries)
    consumer.release(deliveries)
    assert received(consumer) == [("a", 1)]


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
