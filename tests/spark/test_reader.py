"""The driver's side of a stream: offsets, limits, empty epochs, and the queue monitor."""

import contextlib
import json
import pickle
import shutil
import socket
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from jmsjca import ConnectionFactory, Queue, TextMessage, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidOptionError,
    InvalidURLError,
    NotSupportedError,
    StoreError,
)
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark import SCHEMA, JmsDataSource
from jmsjca.spark import reader as module
from jmsjca.spark.epoch_plans import EmptyEpochBackoff, Offset, Share, plan_shares
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import PartitionReader
from jmsjca.spark.reader import QueueMonitor
from jmsjca.spark.staging import EpochPartition, Staging
from jmsjca.spi import Capabilities
from tests.spark.driving import Driver

TOPIC = Topic("orders")


class Blind:
    """The embedded broker as one that lets nobody look inside."""

    def __init__(self, connection, **lacking: bool) -> None:
        self._connection = connection
        self.capabilities = replace(connection.capabilities, browse=False, **lacking)

    def admin(self) -> None:
        return None

    def close(self) -> None:
        self._connection.close()


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
def test_readers_and_writers_open_no_connection_until_they_must(tmp_path, pair) -> None:
    """To make, pickle and unpickle them asks no broker: nobody connects."""
    text = StructType().add("text", "string")
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = {"url": f"{pair.rpartition('-')[2]}://127.0.0.1:{server.getsockname()[1]}", "destination": "orders"}
        source, sink = JmsDataSource(given | {"stagingLocation": str(tmp_path)}), JmsDataSource(given)
        writers = sink.writer(text, overwrite=False), sink.streamWriter(text, overwrite=False)
        for made in (source.reader(SCHEMA), source.streamReader(SCHEMA), *writers):
            cloudpickle.loads(cloudpickle.dumps(made))
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture
def blind(monkeypatch):
    monkeypatch.setattr(module, "connect", lambda settings, lost: Blind(connect(settings, lost)))


@pytest.fixture
def driver(broker):
    drivers: list[Driver] = []

    def make(**changes) -> Driver:
        drivers.append(Driver(broker, **changes))
        return drivers[-1]

    yield make
    for made in drivers:
        made.reader.stop()


def test_an_empty_queue_opens_no_epoch(driver, broker) -> None:
    made = driver()
    assert made.next() is made.offset
    assert not broker.location.exists()


def test_an_epoch_is_opened_when_messages_wait(driver, broker) -> None:
    made = driver(partitions=3, maxMessagesPerBatch=2)
    broker.send(*"abc")
    end = made.next()
    assert (end["epoch"], end["parts"], end["rows"]) == (1, 2, 2)  # no partition without a share
    assert broker.waiting() == [*"abc"]
    (folder,) = broker.location.glob("v1/*/e-0000000001")  # when the offset is logged, a missing folder was lost
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("limit", "rows"), [(ReadMaxRows(3), 3), (ReadAllAvailable(), 5)])
def test_no_limit_is_no_limitlessness(driver, broker, limit, rows) -> None:
    made = driver(maxMessagesPerBatch=5)
    broker.send(*"abcdefg")
    assert made.reader.latestOffset(made.offset, limit)["rows"] == rows


def test_the_plan_follows_the_offsets_and_not_the_options(driver, broker) -> None:
    end = {"v": 1, "epoch": 3, "gen": "g", "parts": 2, "rows": 5}
    broker.staging("g", 2, 3)
    planned = driver(partitions=9).reader.partitions({"v": 1, "epoch": 1}, end)
    assert [(p.gen, p.part, p.quota, p.value) for p in planned] == [
        ("g", EpochPartition(epoch, number), quota, number) for epoch in (2, 3) for number, quota in ((0, 3), (1, 2))
    ]
    assert sorted(path.name for path in broker.staging().store.folder.glob("e-*")) == ["e-0000000002", "e-0000000003"]


def test_before_the_first_epoch_there_is_nothing_to_plan_or_commit(driver) -> None:
    made = driver()
    assert made.reader.partitions(made.offset, made.offset) == []
    made.reader.commit(made.offset)


def test_available_now_takes_what_was_there(driver, broker) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcde")
    made.reader.prepareForTriggerAvailableNow()
    batches = []
    while (batch := made.batch()) is not None:
        batches.append(batch)
        broker.send("late")
    assert batches == [["a", "b"], ["c", "d"], ["e"]]
    assert broker.waiting() == ["late"] * 3


def test_available_now_goes_on_after_a_batch_of_duplicates(driver, broker, monkeypatch) -> None:
    """A batch may hold nothing new and still have taken messages off the queue."""
    made = driver(maxMessagesPerBatch=2, partitions=1)
    broker.send(*"abcde")
    with monkeypatch.context() as patch:
        patch.setattr(PartitionReader, "_settle", lambda *_: None)  # a and b come again, as if nobody had had them
        assert made.batch() == ["a", "b"]
    restarted = driver(maxMessagesPerBatch=2, partitions=1)
    restarted.offset = made.offset
    assert restarted.available_now() == ["c", "d", "e"]
    assert broker.depth().total == 0


def test_available_now_leaves_no_message_for_a_duplicate_that_it_received(driver, broker, monkeypatch) -> None:
    """The run takes five messages, and two of them two times."""
    made = driver(maxMessagesPerBatch=2, partitions=1)
    broker.send(*"abcde")
    with monkeypatch.context() as patch:
        patch.setattr(PartitionReader, "_settle", lambda *_: None)  # a and b come again
        made.reader.prepareForTriggerAvailableNow()
        assert made.batch() == ["a", "b"]
    batches = []
    while (batch := made.batch()) is not None:
        batches.append(batch)
    assert batches == [[], ["c", "d"], ["e"]]
    assert broker.depth().total == 0


def test_available_now_ends_when_others_take_the_messages(driver, broker) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcde")
    made.reader.prepareForTriggerAvailableNow()
    assert made.batch() == ["a", "b"]
    assert broker.texts(EpochPartition(1, 0)) == ["c", "d", "e"]
    assert made.batch() is None


def test_a_commit_that_fails_stops_no_query(driver, broker, monkeypatch) -> None:
    made = driver()
    broker.send("a")
    made.batch()
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "_park", lambda *_: open("/nowhere/at/all"))  # noqa: PTH123, SIM115
        made.reader.commit(made.offset | {"epoch": 9})
    made.reader.commit(made.offset | {"epoch": 9})
    assert list(broker.staging(made.offset["gen"]).published()) == []


def test_a_blind_driver_finds_what_comes_and_rests_when_nothing_does(driver, broker, blind) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abc")
    brought = [made.batch() for _ in range(9)]
    assert brought == [["a", "b"], ["c"], [], None, [], None, None, None, []]
    broker.send("d")
    assert [made.batch() for _ in range(8)] == [None] * 7 + [["d"]]


def test_messages_that_others_hold_open_no_endless_row_of_epochs(driver, broker) -> None:
    """A look may see what cannot be received."""
    made = driver()
    broker.send("a")
    made.reader._monitor._can_receive = lambda *_: True
    assert [made.batch() for _ in range(6)] == [["a"], [], None, [], None, None]


def test_a_blind_available_now_ends_when_nothing_is_left(driver, broker, blind) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcde")
    assert sorted(made.available_now()) == [*"abcde"]
    assert broker.depth().total == 0


def test_a_blind_available_now_ends_with_the_first_batch_of_late_messages(driver, broker, blind, caplog) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abc")
    made.reader.prepareForTriggerAvailableNow()
    batches = []
    while (batch := made.batch()) is not None:
        batches.append(batch)
        broker.send("late", "late")
    assert batches == [["a", "b"], ["c", "late"], ["late", "late"]]
    assert "If the clock of the driver is behind" in caplog.text


def test_a_message_with_a_wrong_time_ends_no_available_now(driver, broker, blind) -> None:
    made = driver(maxMessagesPerBatch=2, partitions=1)
    broker.send_at(datetime.now(UTC) + timedelta(days=1), "early")
    broker.send(*"abc")
    assert made.available_now() == ["early", *"abc"]
    assert broker.depth().total == 0


def test_a_blind_driver_reports_no_depth(driver, blind) -> None:
    assert "depth" not in driver().reader.reportLatestOffset()


def test_orphans_are_named_and_may_be_ignored(driver, broker) -> None:
    broker.send("a")
    driver().batch()
    broker.send("b")
    with pytest.raises(StoreError, match=r"e-0000000001/p-00000\.arrow.*orphans=ignore"):
        driver().batch()
    assert driver(orphans="ignore").batch() == ["b"]


def test_a_known_generation_is_no_orphan(driver, broker) -> None:
    broker.send("a")
    first = driver()
    first.batch()
    again = driver()
    again.offset = first.offset
    broker.send("b")
    assert again.batch() == ["b"]


def test_a_topic_without_subscription_is_refused(driver) -> None:
    with pytest.raises(InvalidOptionError, match="subscription"):
        driver(destinationType="topic")


def test_a_subscription_exists_from_the_first_look_on(driver, broker) -> None:
    made = driver(destinationType="topic", subscription="s", partitions=2)
    publish(broker, "missed")
    assert made.batch() is None
    publish(broker, *"abcd")
    assert sorted(made.batch()) == [*"abcd"]
    assert made.batch() is None


def test_a_broker_without_shared_subscriptions_is_refused(driver, broker, monkeypatch) -> None:
    monkeypatch.setattr(module, "connect", lambda settings, lost: Blind(connect(settings, lost), shared=False))
    made = driver(destinationType="topic", subscription="s")
    with pytest.raises(NotSupportedError, match="topic:orders cannot be read"):
        made.next()


def publish(broker, *texts: str, to=TOPIC) -> None:
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        for text in texts:
            session.create_producer(to).send(TextMessage(text))


def test_a_selector_leaves_the_others(driver, broker) -> None:
    broker.send("a", correlation_id="1")
    broker.send("b", "c", correlation_id="2")
    made = driver(selector="JMSCorrelationID = '2'")
    assert sorted(made.batch()) == ["b", "c"]
    assert made.batch() is None
    assert broker.waiting() == ["a"]


def test_available_now_with_a_selector_ends(driver, broker) -> None:
    """The depth counts the others, too."""
    broker.send("a", correlation_id="1")
    broker.send("b", "c", "d", correlation_id="2")
    made = driver(selector="JMSCorrelationID = '2'", maxMessagesPerBatch=2, columns="text")
    assert sorted(made.available_now()) == ["b", "c", "d"]


def test_columns_may_change_between_batches_and_shrink_within_one(driver, broker) -> None:
    broker.send("a")
    before = driver(columns="text,_seq")
    planned = before.reader.partitions(before.offset, before.next())
    read = lambda made: [row for part in planned for batch in made.reader.read(part) for row in batch.to_pylist()]  # noqa: E731
    assert read(before) == [{"text": "a", "_seq": 0}]
    assert read(driver(columns="text")) == [{"text": "a"}]
    with pytest.raises(StoreError, match="body cannot be read, because the messages are settled"):
        read(driver(columns="text,body"))


def test_the_depth_is_reported(driver, broker) -> None:
    made = driver()
    broker.send("a", "b")
    assert made.reader.reportLatestOffset()["depth"] == 2


def test_a_reader_that_has_looked_can_be_copied(driver, broker) -> None:
    made = driver()
    broker.send("a")
    made.next()
    copy = cloudpickle.loads(cloudpickle.dumps(made.reader))
    assert copy.latestOffset(made.offset, copy.getDefaultReadLimit())["epoch"] == 1
    copy.stop()
    assert made.batch() == ["a"]


@pytest.mark.timeout(60)
def test_batches_follow_one_another_without_a_pause(driver, broker) -> None:
    """The next look at an empty queue would be in an hour."""
    made = driver(pollInterval=3600, maxMessagesPerBatch=1)
    broker.send(*"abc")
    assert [made.batch() for _ in "abc"] == [["a"], ["b"], ["c"]]


def test_an_epoch_takes_what_waits_in_equal_shares(driver, broker) -> None:
    """One partition would take all of a short queue, and the others would wait for nothing."""
    made = driver(partitions=2, maxMessagesPerBatch=100)
    broker.send(*"abcdef")
    planned = made.reader.partitions(made.offset, made.next())
    assert [(part.quota, part.counted) for part in planned] == [(3, True), (3, True)]


def test_where_nobody_can_count_the_limit_is_the_plan(driver, broker, blind) -> None:
    made = driver(partitions=2, maxMessagesPerBatch=10)
    broker.send("a")
    planned = made.reader.partitions(made.offset, made.next())
    assert [(part.quota, part.counted) for part in planned] == [(5, False), (5, False)]


NONE = {"sameKey": 0, "unmarked": 0, "withoutKey": 0}


def test_the_progress_is_reported(driver, broker, monkeypatch) -> None:
    made = driver(partitions=1)
    broker.send("a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(PartitionReader, "_settle", lambda *_: None)  # a and b come again
        made.batch()
    broker.send("c")
    assert made.batch() == ["c"]
    broker.send("d", "e", "f")
    made.next()
    report = made.reader.reportLatestOffset()
    assert datetime.fromisoformat(report.pop("oldest")).tzinfo == UTC
    assert report == {"depth": 3, "received": 5, "redelivered": 0, "duplicates": 2, "inDoubt": 2} | NONE | {
        "unmarked": 2
    }


def test_available_now_waits_for_a_broker_that_is_away_for_a_moment(driver, broker, monkeypatch) -> None:
    """To Spark, nothing to do is the end of the run."""
    made = driver(maxMessagesPerBatch=2, driverRetryTimeout=3600)
    broker.send(*"abcde")
    made.reader.prepareForTriggerAvailableNow()
    assert made.batch() == ["a", "b"]
    made.reader.stop()  # its connection is lost
    failures = iter([ConnectionLostError("away")] * 3)

    def refuse(settings, lost):
        for failure in failures:
            raise failure
        return connect(settings, lost)

    monkeypatch.setattr(module, "connect", refuse)
    assert made.batch() == ["c", "d"]


def test_available_now_fails_if_the_broker_stays_away(driver, broker, monkeypatch) -> None:
    made = driver(maxMessagesPerBatch=2, driverRetryTimeout=0)
    broker.send(*"abcde")
    made.reader.prepareForTriggerAvailableNow()
    assert made.batch() == ["a", "b"]
    made.reader.stop()
    monkeypatch.setattr(module, "connect", lambda *_: (_ for _ in ()).throw(ConnectionLostError("away")))
    with pytest.raises(ConnectionLostError):
        made.next()


QUEUES = {"destination": "", "destinations": "orders,bills"}


def test_a_stream_reads_several_queues(driver, broker) -> None:
    made = driver(**QUEUES, partitions=3, maxMessagesPerBatch=8)
    broker.send(*"abcd")
    publish(broker, *"ef", to=Queue("bills"))
    end = made.next()
    assert end["plan"] == [
        {"parts": 1, "rows": 2, "counted": 1, "queue": "bills"},
        {"parts": 2, "rows": 4, "counted": 1, "queue": "orders"},
    ]
    planned = made.reader.partitions(made.offset, end)
    read = [(part.queue, row["text"]) for part in planned for b in made.reader.read(part) for row in b.to_pylist()]
    assert sorted(read) == [*(("bills", text) for text in "ef"), *(("orders", text) for text in "abcd")]
    made.offset = end
    publish(broker, "g", to=Queue("bills"))
    assert [share["queue"] for share in made.next()["plan"]] == ["bills"]  # the other one is empty


def test_available_now_empties_all_queues(driver, broker) -> None:
    made = driver(**QUEUES, maxMessagesPerBatch=2)
    broker.send(*"abc")
    publish(broker, *"de", to=Queue("bills"))
    assert sorted(made.available_now()) == [*"abcde"]


def test_a_batch_that_is_repeated_needs_the_queue_of_its_plan(driver, broker) -> None:
    made = driver(**QUEUES)
    publish(broker, "a", to=Queue("bills"))
    end = made.next()
    with pytest.raises(InvalidOptionError, match="belongs to queue:orders, queue:bills"):
        driver().reader.partitions(made.offset, end)
    other = driver(sourceChange="allow")
    (part,) = other.reader.partitions(made.offset, end)
    with pytest.raises(InvalidOptionError, match="planned for bills, which the options do not name: queue:orders"):
        list(other.reader.read(part))


def test_a_batch_that_is_repeated_without_its_folder_is_an_error(driver, broker) -> None:
    made = driver()
    broker.send("a")
    end = made.next()
    again = driver()
    assert len(again.reader.partitions(made.offset, end)) == 1
    folder = broker.staging(str(end["gen"])).store.folder
    (folder / "e-0000000001").rmdir()
    with pytest.raises(StoreError, match="e-0000000001 is missing"):
        again.reader.partitions(made.offset, end)
    shutil.rmtree(folder)
    with pytest.raises(StoreError, match="is missing, with the messages of epoch 1"):
        driver().reader.partitions(made.offset, end)
    assert broker.waiting() == ["a"]


def test_a_checkpoint_without_its_staging_folder_is_an_error(driver, broker) -> None:
    made = driver()
    broker.send("a")
    made.batch()
    shutil.rmtree(broker.location)
    again = driver()
    again.offset = made.offset
    broker.send("b")
    with pytest.raises(StoreError, match="accept-loss"):
        again.batch()
    assert broker.waiting() == ["b"]


def test_an_orderly_run_leaves_no_orphans(driver, broker) -> None:
    broker.send("a")
    assert driver().available_now() == ["a"]
    broker.send("b")
    assert driver().batch() == ["b"]


def test_queries_of_other_queues_share_a_staging_location(driver, broker) -> None:
    broker.send("a")
    publish(broker, "b", to=Queue("bills"))
    assert driver().batch() == ["a"]
    assert driver(destination="bills").batch() == ["b"]


def test_queries_of_one_queue_share_a_staging_location_under_their_names(driver, broker) -> None:
    broker.send("a")
    first = driver(stagingName="one")
    assert first.batch() == ["a"]
    broker.send("b")
    with pytest.raises(StoreError, match="give each a stagingName"):
        driver(stagingName="one").batch()
    assert driver(stagingName="two").batch() == ["b"]
    broker.send("c")
    assert first.batch() == ["c"]


def test_available_now_waits_for_messages_that_a_killed_attempt_holds(driver, broker) -> None:
    """A speculative task received them and was killed; the broker requeues them a moment later."""
    made = driver(maxMessagesPerBatch=2, partitions=1)
    broker.send(*"abcd")
    made.reader.prepareForTriggerAvailableNow()
    holder = connect(ConnectionSettings(broker.url))
    consumer = holder.consumer(broker.queue, window=0)
    held = consumer.receive(2, 60)
    assert made.batch() == ["c", "d"]
    looks = iter(range(3))
    throttle = made.reader._monitor.throttle

    def release_later() -> None:
        throttle()
        if next(looks, None) == 2:
            consumer.release(held)
            holder.close()

    made.reader._monitor.throttle = release_later
    assert made.batch() == ["a", "b"]
    assert made.batch() is None


def test_available_now_does_not_run_for_ever_without_receiving(driver, broker, monkeypatch) -> None:
    """As with a broker that needs longer for its first message than a partition waits."""
    made = driver(receiveIdleTimeout=0.1)
    broker.send("a")
    made.reader.prepareForTriggerAvailableNow()
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedConsumer, "receive", lambda *_: [])
        for _ in range(10):
            assert made.batch() == []
        with pytest.raises(
            IllegalStateError, match=r"have 1 messages that are ready.*receiveIdleTimeout, which is 0\.1 s"
        ):
            made.next()
    assert made.available_now() == ["a"]


class Fragile:
    """A connection that is lost when it is asked for the depths."""

    def __init__(self, connection, lost) -> None:
        self._connection = connection
        self._lost = lost

    def admin(self) -> None:
        self._lost(ConnectionLostError("lost"))
        raise ConnectionLostError("lost")

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


@pytest.mark.parametrize("patience", [60.0, 0.0])
def test_available_now_does_not_end_when_the_broker_cannot_tell_what_is_left(
    driver, broker, monkeypatch, patience
) -> None:
    monkeypatch.setattr("jmsjca.spark.reader._HELD_PATIENCE", patience)
    made = driver(maxMessagesPerBatch=2, driverRetryTimeout=0)
    broker.send("a", "b")
    made.reader.prepareForTriggerAvailableNow()
    with contextlib.closing(connect(ConnectionSettings(broker.url))) as holder:
        holder.consumer(broker.queue, window=0).receive(2, 60)
        made.reader.stop()
        connections = iter([connect(ConnectionSettings(broker.url))])

        def connect_once(settings, lost):
            for connection in connections:
                return Fragile(connection, lost)
            raise ConnectionLostError("refused")

        monkeypatch.setattr(module, "connect", connect_once)
        with pytest.raises(ConnectionLostError, match="refused" if patience else "lost"):
            made.next()


def test_available_now_leaves_what_others_hold_for_long(driver, broker, monkeypatch, caplog) -> None:
    monkeypatch.setattr("jmsjca.spark.reader._HELD_PATIENCE", 0.0)
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcd")
    made.reader.prepareForTriggerAvailableNow()
    with contextlib.closing(connect(ConnectionSettings(broker.url))) as holder:
        holder.consumer(broker.queue, window=0).receive(2, 60)
        assert made.batch() == ["c", "d"]
        assert made.batch() is None
    assert "although other consumers hold 2 messages" in caplog.text


def test_the_first_offset_is_always_the_same_and_names_no_generation() -> None:
    assert Offset().to_json() == {"v": 1, "epoch": 0}
    assert Offset.from_json({"v": 1, "epoch": 0}) == Offset()


def test_each_first_epoch_begins_a_generation_and_the_next_ones_keep_it() -> None:
    first, other = Offset().next([Share(2, 10)]), Offset().next([Share(2, 10)])
    assert first.gen != other.gen
    assert first.next([Share(3, 7)]) == Offset(2, first.gen, (Share(3, 7),))


SHARES = st.builds(Share, st.integers(1, 64), st.integers(1, 10**6), st.integers(0, 1), st.text(max_size=9))


@given(
    st.builds(
        Offset,
        *(st.integers(1, 10**9), st.uuids().map(lambda u: u.hex), st.lists(SHARES, min_size=1).map(tuple)),
    )
)
def test_spark_keeps_it_as_text(offset: Offset) -> None:
    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@given(st.integers(1, 64), st.integers(0, 1000))
def test_the_partitions_share_the_rows(parts: int, more: int) -> None:
    share = Share(parts, parts + more)
    shares = [share.quota(partition) for partition in range(parts)]
    assert sum(shares) == parts + more
    assert max(shares) - min(shares) <= 1
    assert min(shares) >= 1


def test_offsets_of_earlier_releases_are_read() -> None:
    assert Offset.from_json({"v": 1, "epoch": 3, "gen": "g", "parts": 2, "rows": 5}) == Offset(3, "g", (Share(2, 5),))


WAITING = st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 10**6), min_size=1, max_size=9)


@given(WAITING, st.integers(1, 20), st.integers(1, 10**5))
def test_the_queues_share_an_epoch(waiting, parts: int, rows: int) -> None:
    shares = {share.queue: share for share in plan_shares(waiting, parts, rows)}
    assert shares.keys() == waiting.keys()
    assert sum(share.rows for share in shares.values()) <= max(rows, len(waiting))
    assert sum(share.parts for share in shares.values()) <= max(parts, len(waiting))
    for queue, share in shares.items():
        assert 1 <= share.parts <= share.rows
        assert share.rows <= (waiting[queue] or rows)
        assert share.counted == bool(waiting[queue])


def test_a_short_queue_leaves_its_room_to_a_long_one() -> None:
    assert plan_shares({"long": 5000, "short": 10}, 4, 1000) == [Share(1, 9, 1, "short"), Share(3, 991, 1, "long")]
    assert plan_shares({"a": 10, "b": 30}, 4, 1000) == [Share(1, 10, 1, "a"), Share(3, 30, 1, "b")]


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


@pytest.fixture
def probe(url):
    with contextlib.closing(QueueMonitor(SourceOptions(url, "q", pollInterval=0, driverRetryTimeout=0))) as probe:
        yield probe


def send(url, body="hello"):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(session.create_text_message(body))


def test_it_sees_messages_and_takes_none(probe, url):
    assert not probe.find_waiting()
    send(url)
    assert probe.find_waiting()
    assert probe.depths()[""].total == 1


def test_a_message_that_cannot_be_decoded_is_a_message(probe, url, tmp_path):
    """Otherwise one poison message at the head of the queue would stop the stream for ever."""
    send(url)
    with contextlib.closing(sqlite3.connect(tmp_path / "broker.db")) as db:
        db.execute("UPDATE message SET headers = 'no JSON'")
        db.commit()
    assert probe.find_waiting()


def test_an_outage_is_put_up_with_for_a_time(url, monkeypatch, caplog):
    probe = QueueMonitor(SourceOptions(url, "q", pollInterval=0, driverRetryTimeout=1e9))

    def refuse(*_):
        raise ConnectionLostError("the broker is down")

    monkeypatch.setattr(module, "connect", refuse)
    assert not any(probe.find_waiting() for _ in range(5))
    assert len(caplog.records) == 1
    probe = QueueMonitor(SourceOptions(url, "q", pollInterval=0, driverRetryTimeout=0))
    with pytest.raises(ConnectionLostError):
        any(probe.find_waiting() for _ in range(1_000_000))


def test_a_wrong_url_is_not_put_up_with(tmp_path):
    probe = QueueMonitor(SourceOptions(f"embedded://{tmp_path}/missing/broker.db", "q", pollInterval=0))
    with pytest.raises(InvalidURLError):
        probe.find_waiting()


class BlindMonitor:
    """A connection to a broker that lets nobody look."""

    capabilities = Capabilities()

    def close(self):
        pass


def test_where_nobody_can_look_messages_may_wait(url, monkeypatch):
    """But the connection is watched: no epoch is opened while the broker is down."""
    opened = []
    monkeypatch.setattr(module, "connect", lambda settings, lost: opened.append(lost) or BlindMonitor())
    probe = QueueMonitor(SourceOptions(url, "q", pollInterval=0))
    assert probe.find_waiting()
    assert probe.find_waiting()
    assert len(opened) == 1
    opened[0](ConnectionLostError("the broker went away"))
    assert probe.find_waiting()
    assert len(opened) == 2


def test_a_copy_has_no_connection(probe, url):
    assert not probe.find_waiting()
    copy = pickle.loads(pickle.dumps(probe))  # noqa: S301
    assert copy._connection is None


def looks_left_out(rest: EmptyEpochBackoff) -> int:
    count = 0
    while rest.must_skip():
        count += 1
    return count


def test_nothing_is_left_out_at_first() -> None:
    assert looks_left_out(EmptyEpochBackoff()) == 0


def test_each_empty_epoch_lengthens_the_rest_up_to_a_bound() -> None:
    rest = EmptyEpochBackoff()
    lengths = []
    for _ in range(7):
        rest.record_epoch(0)
        lengths.append(looks_left_out(rest))
    assert lengths == [1, 3, 7, 15, 31, 31, 31]


def test_an_epoch_with_messages_ends_the_rest() -> None:
    rest = EmptyEpochBackoff()
    rest.record_epoch(0)
    rest.record_epoch(0)
    rest.record_epoch(5)
    assert looks_left_out(rest) == 0
    rest.record_epoch(0)
    assert looks_left_out(rest) == 1
