"""Connections that one task leaves for the next one of its process."""

import os
from collections.abc import Iterator

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.reconnection import ConnectionSettings
from jmsjca.spark import partition
from jmsjca.spark.partition import JmsPartition, PartitionReader, close_connections, leased
from jmsjca.spark.staging import EpochPartition


class Connection:
    """A connection that tells whether it is open."""

    def __init__(self, lost) -> None:
        self.lost = lost
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Connection]]:
    made: list[Connection] = []

    def connect(settings: ConnectionSettings, lost) -> Connection:
        made.append(Connection(lost))
        return made[-1]

    monkeypatch.setattr(partition, "connect", connect)
    yield made
    close_connections()


ONE, OTHER = ConnectionSettings("amqp://one"), ConnectionSettings("amqp://one", user_name="other")


def use(settings: ConnectionSettings = ONE) -> object:
    with leased(settings) as lease:
        return lease.connection


def test_the_next_task_has_the_connection_of_the_last_one(opened) -> None:
    assert use() is use()
    assert [connection.is_open for connection in opened] == [True]


def test_each_broker_and_user_has_a_connection_of_its_own(opened) -> None:
    assert use(ONE) is not use(OTHER)
    assert use(ONE) is use(ConnectionSettings("amqp://one"))


def test_a_connection_in_use_is_not_lent_again(opened) -> None:
    with leased(ONE) as first, leased(ONE) as second:
        assert first.connection is not second.connection
    assert sorted(connection.is_open for connection in opened) == [False, True]  # one is enough


def test_a_connection_is_closed_after_a_failure(opened) -> None:
    with pytest.raises(ConnectionLostError), leased(ONE):
        raise ConnectionLostError("gone")
    with leased(ONE) as lease:
        lease.drop()
    use()
    assert [connection.is_open for connection in opened] == [False, False, True]


def test_a_connection_that_is_lost_between_two_tasks_is_replaced(opened) -> None:
    use()
    opened[0].lost(ConnectionLostError("gone"))
    use()
    assert [connection.is_open for connection in opened] == [False, True]


def test_a_connection_that_was_idle_for_long_is_replaced(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    monkeypatch.setattr(partition.time, "monotonic", lambda: 1e12)
    use()
    assert [connection.is_open for connection in opened] == [False, True]


def test_a_forked_process_leaves_the_connection_of_its_parent_alone(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: parent + 1)
        use()
        close_connections()
    assert [connection.is_open for connection in opened] == [True, False]


def test_a_connection_that_cannot_be_closed_ends_no_process(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    use()

    def refuse() -> None:
        raise ConnectionLostError("closed already")

    monkeypatch.setattr(opened[0], "close", refuse)
    close_connections()
    assert use() is not opened[0]


def test_tasks_share_a_connection_and_leave_no_consumer(broker, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    connect = partition.connect
    monkeypatch.setattr(partition, "connect", lambda *given: made.append(given) or connect(*given))
    broker.send("a", "b", "c", "d")
    assert broker.texts(EpochPartition(1, 0), quota=1) == ["a"]
    assert broker.texts(EpochPartition(1, 1), quota=1) == ["b"]
    assert len(made) == 1
    assert broker.waiting() == ["c", "d"]


def test_a_settlement_in_doubt_ends_its_connection(broker, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    connect = partition.connect
    monkeypatch.setattr(partition, "connect", lambda *given: made.append(given) or connect(*given))
    broker.send("a", "b")
    reader = broker.reader(EpochPartition(1, 0), quota=1)

    def lose(*_: object, **__: object) -> None:
        raise ConnectionLostError("no reply")

    with monkeypatch.context() as patch:
        patch.setattr("jmsjca.providers.embedded.unit.EmbeddedUnit.commit", lose)
        list(reader.read())
    assert broker.texts(EpochPartition(1, 1)) == ["b"]  # a is redelivered, recognised and dropped
    assert len(made) == 2
    assert broker.depth().total == 0


@pytest.mark.parametrize("closed", ["consumer", "connection"])
def test_an_attempt_whose_messages_the_broker_took_away_hands_its_rows_over(broker, closed) -> None:
    """The broker took its consumer for dead. What it has staged stays, and is dropped when it is redelivered."""

    class Dropped(PartitionReader):
        def _stage_and_settle(self, lease, consumer, received):
            (consumer if closed == "consumer" else lease.connection).close()
            return super()._stage_and_settle(lease, consumer, received)

    broker.send("a", "b")
    staging, part = broker.staging("g", 1), EpochPartition(1, 0)
    batches = Dropped(broker.options(), JmsPartition("g", part, 10)).read()
    assert [text for batch in batches for text in batch["text"].to_pylist()] == ["a", "b"]
    assert not staging.is_confirmed(part)
    assert broker.texts(EpochPartition(1, 1)) == []
    assert broker.depth().total == 0
