"""One partition, driven directly over an embedded broker, without Spark."""

import gc
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from spark_schemas import schema_of

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError, StoreError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.reconnection import connect
from jmsjca.spark import partition
from jmsjca.spark import partition as partition_module
from jmsjca.spark.data_source import plan_columns
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, Lease, PartitionReader, close_connections
from jmsjca.spark.schema import SCHEMA
from jmsjca.spark.staging import EpochPartition, Staging, StaleEpochError

FIRST, SECOND, NEXT = EpochPartition(1, 0), EpochPartition(1, 1), EpochPartition(2, 0)
TEXTS = ["m0", "m1", "m2", "m3", "m4", "m5"]


class FaultyUnit:
    """A unit whose commit fails, before or after it really happened."""

    def __init__(self, unit: spi.Unit, error: JMSError, really: bool) -> None:
        self._unit = unit
        self._error = error
        self._really = really

    def take(self, deliveries: Sequence[spi.Delivery]) -> None:
        self._unit.take(deliveries)

    def commit(self, *, confirmed: bool = True) -> None:
        if self._really:
            self._unit.commit(confirmed=confirmed)
        raise self._error


class FaultyConnection:
    """A connection of the embedded broker with such units."""

    def __init__(self, connection: spi.Connection, error: JMSError, really: bool) -> None:
        self._connection = connection
        self._fault = (error, really)

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def unit(self, *, atomic: bool) -> FaultyUnit:
        return FaultyUnit(self._connection.unit(atomic=atomic), *self._fault)


@pytest.fixture(params=[ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError])
def error(request: pytest.FixtureRequest) -> JMSError:
    return request.param("the reply did not come")


@pytest.fixture
def read_with_fault(broker, monkeypatch, error):
    """Reads a part over a connection whose commits fail."""

    def read(part: EpochPartition, really: bool, **changes: object) -> list[dict[str, object]]:
        with monkeypatch.context() as patch:
            close_connections()
            patch.setattr(partition_module, "connect", lambda *given: FaultyConnection(connect(*given), error, really))
            return broker.read(part, **changes)

    return read


def test_what_a_broker_sends_beyond_the_share_goes_back(broker, monkeypatch) -> None:
    """Without exact credit more may be on its way than was asked for."""
    broker.send(*TEXTS)
    monkeypatch.setattr(EmbeddedConsumer, "drain", lambda consumer: consumer.receive(3, 0))
    assert broker.texts(FIRST, quota=2) == ["m0", "m1"]
    assert broker.waiting() == TEXTS[2:]
    assert broker.depth().held == 0


def when_received(reader: PartitionReader, then: Callable[[], object]) -> PartitionReader:
    """Let something happen between receiving and staging."""
    receive = reader._receive

    def received(lease: Lease, consumer: spi.Consumer) -> list[spi.Delivery]:
        deliveries = receive(lease, consumer)
        then()
        return deliveries

    reader._receive = received  # type: ignore[method-assign]
    return reader


def texts(reader: PartitionReader) -> list[object]:
    return [row["text"] for batch in reader.read() for row in batch.to_pylist()]


def test_a_replay_gives_the_same_rows_and_asks_no_broker(broker, monkeypatch) -> None:
    broker.send(*TEXTS)
    rows = broker.read(FIRST)
    broker.send("later")
    monkeypatch.delattr(partition, "leased")
    assert [(row["text"], row["_epoch"], row["_partition"], row["_seq"]) for row in rows] == [
        (text, 1, 0, position) for position, text in enumerate(TEXTS)
    ]
    assert broker.read(FIRST) == rows
    assert broker.waiting() == ["later"]


def test_an_empty_part_stays_empty(broker) -> None:
    assert broker.read(FIRST) == []
    broker.send("later")
    assert broker.read(FIRST) == []
    assert broker.texts(NEXT) == ["later"]


def test_what_was_read_is_settled(broker) -> None:
    broker.send(*TEXTS)
    broker.read(FIRST)
    assert broker.staging().is_confirmed(FIRST)
    assert broker.depth() == spi.Depth(0, 0, 0)


def test_the_quota_is_exact_and_readers_share_the_queue(broker) -> None:
    broker.send(*TEXTS)
    second = broker.reader(SECOND, quota=3)
    held: list[int] = []
    shared: list[object] = []

    def while_the_first_holds_its_own() -> None:
        held.append(broker.depth().held)
        shared.extend(texts(second))

    first = texts(when_received(broker.reader(FIRST, quota=2), while_the_first_holds_its_own))
    assert (first, shared, held) == (["m0", "m1"], ["m2", "m3", "m4"], [2])
    assert broker.waiting() == ["m5"]
    assert broker.depth().held == 0


def test_the_quota_is_exact_although_messages_come_in_chunks(broker, monkeypatch) -> None:
    receive = EmbeddedConsumer.receive
    monkeypatch.setattr(EmbeddedConsumer, "receive", lambda self, limit, timeout: receive(self, min(limit, 2), timeout))
    broker.send(*TEXTS)
    assert broker.texts(FIRST, quota=3) == ["m0", "m1", "m2"]
    assert broker.waiting() == ["m3", "m4", "m5"]


@pytest.mark.parametrize("really", [False, True])
def test_a_commit_in_doubt_loses_and_doubles_nothing(broker, read_with_fault, really) -> None:
    broker.send(*TEXTS)
    rows = read_with_fault(FIRST, really)
    assert [row["text"] for row in rows] == TEXTS
    assert not broker.staging().is_confirmed(FIRST)
    assert broker.waiting() == ([] if really else TEXTS)
    broker.send("new")
    assert broker.texts(SECOND) == ["new"]  # what came again was recognised, settled and dropped
    assert broker.depth() == spi.Depth(0, 0, 0)
    assert broker.read(FIRST) == rows


def test_a_commit_in_doubt_is_remembered_after_its_epoch(broker, read_with_fault) -> None:
    broker.send(*TEXTS)
    read_with_fault(FIRST, really=False)
    broker.staging().commit(1, retain=0, doubt_retention=60)
    assert broker.texts(NEXT) == []
    assert broker.depth() == spi.Depth(0, 0, 0)


def test_what_comes_again_and_again_is_handed_over_once(broker, read_with_fault) -> None:
    broker.send(*TEXTS)
    handed = [row["text"] for part in (FIRST, SECOND, NEXT) for row in read_with_fault(part, really=False)]
    assert handed == TEXTS
    assert broker.texts(EpochPartition(3, 0)) == []
    assert broker.depth() == spi.Depth(0, 0, 0)


@pytest.fixture
def given_back(monkeypatch) -> list[str]:
    """What is given back on purpose, not merely when the connection closes: other brokers count that as a delivery."""
    texts: list[str] = []
    received: dict[int, str] = {}
    receive, release = EmbeddedConsumer.receive, EmbeddedConsumer.release

    def noting(self, limit, timeout):
        chunk = receive(self, limit, timeout)
        received.update((delivery.id, delivery.message.body) for delivery in chunk)
        return chunk

    def noted(self, deliveries):
        texts.extend(received[delivery.id] for delivery in deliveries)
        release(self, deliveries)

    monkeypatch.setattr(EmbeddedConsumer, "receive", noting)
    monkeypatch.setattr(EmbeddedConsumer, "release", noted)
    return texts


def test_of_two_attempts_the_second_gives_back_what_it_received(broker, given_back) -> None:
    broker.send(*TEXTS)
    first, second = broker.reader(FIRST, quota=2), broker.reader(FIRST, quota=2)
    rows: list[object] = []
    again = texts(when_received(second, lambda: rows.extend(texts(first))))
    assert given_back == ["m0", "m1"]
    assert rows == again == ["m2", "m3"]  # the second attempt held m0 and m1 by then
    left = broker.read(NEXT)
    assert [row["text"] for row in left] == ["m0", "m1", "m4", "m5"]
    assert {row["delivery_count"] for row in left} == {1}


@pytest.mark.parametrize("retain", [0, 1])
def test_a_late_attempt_gives_back_what_it_received(broker, retain, given_back) -> None:
    broker.send(*TEXTS)
    staging = broker.staging()
    late = when_received(
        broker.reader(FIRST), lambda: staging.commit(1, retain=retain, doubt_retention=60)
    )  # with retain=1 the folder is still there, and only LOW tells
    with pytest.raises(StaleEpochError):
        texts(late)
    assert given_back == TEXTS
    assert list(staging.published()) == []
    rows = broker.read(NEXT)
    assert [row["text"] for row in rows] == TEXTS
    assert {row["delivery_count"] for row in rows} == {1}


def test_an_attempt_whose_rows_were_committed_settles_them(broker, monkeypatch, given_back) -> None:
    """It pauses after it has published, and another attempt reads its rows meanwhile."""
    broker.send(*TEXTS)
    paused, other, staging = broker.reader(FIRST), broker.reader(FIRST), broker.staging()
    publish, committed = paused._staging.publish, list[object]()

    def published(*given: Any) -> bool:
        done = publish(*given)
        committed.extend(texts(other))
        staging.commit(1, retain=1, doubt_retention=60)
        return done

    monkeypatch.setattr(paused._staging, "publish", published)
    assert texts(paused) == committed == TEXTS
    assert (given_back, broker.waiting()) == ([], [])


def test_an_attempt_that_is_too_late_takes_nothing(broker, monkeypatch) -> None:
    reader = broker.reader(FIRST)
    broker.staging().commit(1, retain=0, doubt_retention=60)
    monkeypatch.delattr(partition, "leased")
    with pytest.raises(StaleEpochError):
        texts(reader)


def test_a_full_disk_takes_nothing(broker, monkeypatch, given_back) -> None:
    broker.send(*TEXTS)
    reader = broker.reader(FIRST)

    def full(part: EpochPartition, batch: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reader._staging, "publish", full)
    with pytest.raises(OSError, match="No space"):
        texts(reader)
    assert given_back == broker.waiting() == TEXTS
    assert {row["delivery_count"] for row in broker.read(FIRST)} == {1}


def test_a_message_that_cannot_be_decoded_is_a_row_too(broker) -> None:
    broker.send("good", "bad", "fine")
    database = sqlite3.connect(broker.folder / "broker.db")
    with database:
        database.execute("UPDATE message SET body = x'ff00' WHERE body = CAST('bad' AS BLOB)")
    database.close()
    rows = broker.read(FIRST)
    assert [(row["text"], row["body"]) for row in rows] == [("good", None), (None, b"\xff\x00"), ("fine", None)]
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert broker.depth() == spi.Depth(0, 0, 0)


@pytest.mark.parametrize(("key", "kept"), [("JMSCorrelationID", ["a", "c"]), ("none", ["a", "b", "c"])])
def test_the_same_message_sent_twice(broker, key, kept) -> None:
    broker.send("a", "b", correlation_id="1")
    broker.send("c", correlation_id="2")
    assert broker.texts(FIRST, dedupKey=key) == kept
    assert broker.depth() == spi.Depth(0, 0, 0)


def test_a_part_does_not_wait_for_one_whose_attempt_crashed(broker, monkeypatch) -> None:
    """Both hold the same messages, the second was published and never decided."""
    broker.send(*TEXTS)
    crashed = broker.reader(SECOND)
    monkeypatch.setattr(crashed, "_settle", lambda *_: 1 / 0)  # the messages come again, to the first
    with pytest.raises(ZeroDivisionError):
        texts(crashed)
    with monkeypatch.context() as patch:
        patch.setattr("jmsjca.spark.staging.Staging.keys_in_doubt", lambda self: set())  # it looked before
        first = broker.texts(FIRST)
    assert sorted([*first, *broker.texts(SECOND)]) == TEXTS


def test_the_attempt_that_staged_reads_nothing_back(broker, monkeypatch) -> None:
    broker.send(*TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "content", lambda *_: 1 / 0)
        patch.setattr(Staging, "keys", lambda *_: 1 / 0)
        rows = broker.read(FIRST)
    assert [row["text"] for row in rows] == TEXTS
    assert broker.read(FIRST) == rows


def test_cycles_are_collected_again_after_the_messages_are_staged(broker, monkeypatch) -> None:
    broker.send(*TEXTS)
    collecting: list[bool] = []
    assert gc.isenabled()
    texts(when_received(broker.reader(FIRST), lambda: collecting.append(gc.isenabled())))
    assert (collecting, gc.isenabled()) == ([False], True)
    with pytest.raises(ZeroDivisionError):
        texts(when_received(broker.reader(SECOND), lambda: 1 / 0))
    assert gc.isenabled()


def test_damaged_rows_are_never_handed_over(broker) -> None:
    broker.send(*TEXTS)
    broker.read(FIRST)
    path = broker.staging().store.folder / "e-0000000001" / "p-00000"
    path.with_suffix(".arrow").write_bytes(path.with_suffix(".arrow").read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"p-00000\.arrow are damaged"):
        broker.read(FIRST)


def large(broker, sizes: Sequence[int]) -> None:
    broker.send(*("x" * size for size in sizes))


@pytest.mark.parametrize("columns", [",".join(SCHEMA.names), "message_id,_seq", "_seq"])
@pytest.mark.parametrize(("size", "room", "read"), [(1000, 150, 150), (10, 10_000, 400)])
def test_a_partition_ends_when_its_messages_reach_the_size(broker, size, room, read, columns) -> None:
    """Whatever columns a row has: each message was in memory."""
    large(broker, [size] * 400)
    broker.staging("g", 1)
    limit = room * broker.message_bytes()
    reader = PartitionReader(broker.options(columns=columns), JmsPartition("g", FIRST, 1000, max_bytes=limit))
    assert abs(sum(batch.num_rows for batch in reader.read()) - read) <= 1
    assert broker.depth().held == 0
    assert broker.depth().ready == 400 - broker.staging().counts(FIRST).received


def test_messages_with_one_id_in_a_batch_are_counted_and_told(broker, caplog) -> None:
    broker.send("a", "b", "c", correlation_id="1")
    assert broker.texts(FIRST, dedupKey="JMSCorrelationID") == ["a"]
    counts = broker.staging().counts(FIRST)
    assert (counts.received, counts.rows, counts.duplicates, counts.same_key) == (3, 1, 0, 2)
    assert "2 messages were dropped, because each has the same JMSCorrelationID" in caplog.text


@pytest.mark.parametrize(("really", "unmarked"), [(True, 1), (False, 0)])
def test_a_message_with_the_key_of_one_in_doubt_is_told(broker, read_with_fault, caplog, really, unmarked) -> None:
    """Unless the broker marks it as redelivered: then it is the one in doubt."""
    broker.send("a", correlation_id="1")
    read_with_fault(FIRST, really=really, dedupKey="JMSCorrelationID")
    if really:
        broker.send("b", correlation_id="1")
    assert broker.texts(SECOND, dedupKey="JMSCorrelationID") == []
    counts = broker.staging().counts(SECOND)
    assert (counts.received, counts.rows, counts.duplicates, counts.unmarked) == (1, 0, 1, unmarked)
    assert ("1 messages were dropped as redelivered, because each has the same JMSC" in caplog.text) == bool(unmarked)


def test_messages_without_key_are_counted_and_told(broker, caplog) -> None:
    broker.send("a", "b")
    assert broker.texts(FIRST, dedupKey="JMSCorrelationID") == ["a", "b"]
    assert broker.staging().counts(FIRST).without_key == 2
    assert "2 messages have no JMSCorrelationID. They are read at least once" in caplog.text


@pytest.mark.parametrize(("key", "again"), [("JMSCorrelationID", ["a", "b"]), ("content", [])])
def test_content_recognises_messages_that_have_no_other_key(broker, read_with_fault, key, again) -> None:
    """After a settlement in doubt: without a key they become rows a second time."""
    broker.send("a", "b")
    rows = read_with_fault(FIRST, really=False, dedupKey=key)
    assert [row["text"] for row in rows] == ["a", "b"]
    assert broker.texts(SECOND, dedupKey=key) == again
    assert broker.depth().total == 0


def test_a_partition_whose_loss_was_accepted_is_empty_and_takes_nothing(broker) -> None:
    broker.send("a")
    broker.staging("g", 1).accept_loss(1)
    assert broker.texts(FIRST) == broker.texts(FIRST) == []
    assert broker.waiting() == ["a"]


def test_a_partition_whose_rows_are_lost_receives_no_others(broker) -> None:
    broker.send("a")
    broker.read(FIRST)
    broker.staging().withdraw(FIRST)
    broker.send("b")
    with pytest.raises(StoreError, match="is missing"):
        broker.read(FIRST)
    assert broker.waiting() == ["b"]


class Inflow:
    """A consumer and a clock: a message comes every so many seconds, and waiting takes no time."""

    def __init__(self, backlog: int, gap: float) -> None:
        self.now = 0.0
        self._waiting = backlog
        self._gap = gap
        self._next = gap

    def monotonic(self) -> float:
        return self.now

    def receive(self, limit: int, timeout: float) -> list[Any]:
        self._arrive()
        if not self._waiting and self._next - self.now <= timeout:
            self.now = self._next
            self._arrive()
        elif not self._waiting:
            self.now += timeout
            return []
        received = min(limit, self._waiting)
        self._waiting -= received
        self.now += 1e-5 * received
        return [Numbered() for _ in range(received)]

    def _arrive(self) -> None:
        while self._next <= self.now:
            self._waiting += 1
            self._next += self._gap

    def drain(self) -> list[Any]:
        return []


class Numbered:
    """A delivery."""

    raw, size, count, redelivered, message = b"", 0, 1, False, TextMessage("t")

    def drop_content(self) -> None:
        pass


def open_for(inflow: Inflow, quota: int, *, counted: bool, **changes: object) -> tuple[int, float]:
    """How many messages a partition receives, and how long it stays open."""
    options = SourceOptions("", "q", stagingLocation="/nowhere", **changes)  # type: ignore[arg-type]
    reader = PartitionReader(options, JmsPartition("g", FIRST, quota, counted=counted), inflow)  # type: ignore[arg-type]
    return len(reader._receive(None, inflow)), inflow.now  # type: ignore[arg-type]


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("rate", [1, 7, 20, 200, 1000])
def test_a_slow_inflow_does_not_keep_a_partition_open(rate, counted) -> None:
    received, seconds = open_for(Inflow(1, 1 / rate), 100_000 if not counted else 1, counted=counted)
    assert received >= 1
    assert seconds <= 0.5 + 0.01 + 1e-5 * received


def test_messages_that_others_took_do_not_keep_a_partition_open() -> None:
    """A hundred were counted; one is left, and a slow inflow."""
    assert open_for(Inflow(1, 1 / 7), 100, counted=True)[1] <= 0.5 + 2 / 7


def test_a_longer_latency_makes_larger_batches() -> None:
    short, long = (open_for(Inflow(1, 1 / 20), 1000, counted=False, maxBatchLatency=time)[0] for time in (0.5, 5.0))
    assert (short, long) == (11, 101)


def test_a_backlog_is_received_whole_however_long_it_takes() -> None:
    """At a fifth of a second for each message there is never a pause, and the quota is the end."""
    assert open_for(Inflow(100_000, 60), 100_000, counted=False) == (100_000, pytest.approx(1.0))


def test_a_network_may_pause_within_what_was_counted() -> None:
    assert open_for(Inflow(0, 0.04), 100, counted=True)[0] == 100  # but not within what was not
    assert open_for(Inflow(0, 0.04), 100, counted=False)[0] < 20


def test_an_endless_flow_ends_with_the_batch_timeout() -> None:
    received, seconds = open_for(Inflow(1, 1e-7), 10**9, counted=True, batchTimeout=0.01)
    assert received
    assert seconds < 10


def test_a_batch_is_processed_again_with_the_types_that_it_was_staged_with(broker: Any) -> None:
    broker.send('{"amount": 1}', "x")
    broker.staging("g", FIRST.epoch)

    def read(kind: str) -> list[dict[str, Any]]:
        schema = schema_of(amount=kind, body="binary", error="string")
        options, body = plan_columns(schema, broker.options(), streaming=True)
        reader = PartitionReader(options, JmsPartition("g", FIRST, 100), body=body)
        return [row for batch in reader.read() for row in batch.to_pylist()]

    first = read("int")
    assert [(row["amount"], row["body"], bool(row["error"])) for row in first] == [(1, None, False), (None, b"x", True)]
    assert read("int") == first
    with pytest.raises(StoreError, match="other types: amount cannot be read"):
        read("string")
