"""Rejected rows: retried through their queue, and dead-lettered as a listener does, through the sinks without Spark."""

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from jmsjca import BytesMessage, Hooks, Message, Queue, Reject, ResourceAdapter, TextMessage
from jmsjca.errors import InvalidOptionError, MessageFormatError
from jmsjca.hooks import DeadLetter
from jmsjca.management import Insight
from jmsjca.messages import DUPLICATE_ID
from jmsjca.spark.exactly_once import BatchSender, Rows
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.rejections import RETRY_COUNT
from jmsjca.spark.rows import REJECTION
from jmsjca.spark.schema import ARROW_SCHEMA, SCHEMA
from jmsjca.spark.staging import EpochPartition
from jmsjca.spark.writer import PartitionWriter

PLACES = ("_epoch", "_partition", "_seq")
FIELDS = ("handling", "reason", "error_class", "origin")
COLUMNS = StructType(
    [
        *(field for field in SCHEMA.fields if field.name not in (*PLACES, "redelivered", "delivery_count")),
        StructField(REJECTION, StructType([StructField(name, StringType()) for name in FIELDS])),
    ]
)
ARROW = pa.schema(
    [
        *(ARROW_SCHEMA.field(name) for name in COLUMNS.names if name != REJECTION),
        (REJECTION, pa.struct([(name, pa.string()) for name in FIELDS])),
    ]
)
DLQ = "dlq.orders"
MOVE = "1:move(queue:dlq.$)"
LIVES = 3600.0  # seconds
EXPIRATION = "_JMSJCA_OriginalExpiration"


def rejected(rows: Iterable[dict[str, Any]], handling: str, *, origin: str | None = None) -> Any:
    """What `dead_letter` makes of rows that were read."""
    rejection = {"handling": handling, "reason": "no price", "error_class": "shop.NoPrice", "origin": origin}
    values = [{name: row.get(name) for name in COLUMNS.names} | {REJECTION: rejection} for row in rows]
    return pa.RecordBatch.from_pylist(values, ARROW)


class Job:
    """A job that rejects all that it reads."""

    def __init__(self, broker):
        self.broker = broker
        self.epoch = 0
        self.writer = PartitionWriter(SinkOptions.parse({"url": broker.url}), COLUMNS)
        self.insight = Insight(broker.url)

    def read(self):
        self.epoch += 1
        return self.broker.read(EpochPartition(self.epoch, 0))

    def write(self, rows, handling=MOVE, job=None, **changes):
        batch = rejected(rows, handling, **changes)
        return self.writer.write(iter([batch]), job or f"job/{self.epoch}").messages

    def run(self, handling=MOVE):
        rows = self.read()
        self.write(rows, handling)
        return rows

    def letters(self, queue=DLQ):
        return self.insight.dead_letters(queue)

    def messages(self, queue):
        return list(self.insight.messages(queue))

    def send(self, message: Message, **options):
        with self.broker.factory.create_connection() as connection, connection.create_session() as session:
            session.create_producer(self.broker.queue).send(message, **options)


@pytest.fixture
def job(broker):
    return Job(broker)


def test_a_rejected_row_is_a_dead_letter(job):
    message = TextMessage("a pear", properties={"region": "EU"}, correlation_id="4711")
    message.reply_to, message.type = Queue("answers"), "order"
    job.send(message, priority=7)
    [row] = job.run()
    [letter] = job.letters()
    assert (letter.origin, letter.original_id) == (Queue("orders"), row["message_id"])
    assert (letter.reason, letter.error, letter.stack_trace) == ("shop.NoPrice", "no price", None)
    assert (letter.redeliveries, letter.replays) == (1, 0)
    [copy] = job.messages(DLQ)
    assert (copy.body, copy.properties["region"], copy.correlation_id) == ("a pear", "EU", "4711")
    assert (copy.reply_to, copy.type, copy.priority) == (Queue("answers"), "order", 7)
    assert job.broker.waiting() == []


class Moved(Hooks):
    """Waits for a dead letter of a listener."""

    def __init__(self):
        self.event = threading.Event()

    def dead_lettered(self, endpoint: str, letter: DeadLetter) -> None:
        self.event.set()


def test_its_properties_are_those_of_a_copy_that_a_listener_moves(job):
    job.broker.send("a", "b")
    [row] = job.read()[:1]
    job.write([row])
    [of_job] = job.messages(DLQ)
    moved = Moved()
    adapter = ResourceAdapter(job.broker.url, hooks=[moved])

    @adapter.listener("others", redelivery_handling=MOVE)
    def reject(message: Message) -> None:
        raise Reject("no price")

    with adapter:
        adapter.send("others", "a")
        assert moved.event.wait(60)
    [of_listener] = job.messages("dlq.others")
    extra = {name for name in of_listener.properties if name.endswith("ExceptionStackTrace")}
    extra |= {name for name in of_listener.properties if "JMSX" in name or name.endswith(DUPLICATE_ID)}
    assert set(of_job.properties) - {DUPLICATE_ID} == set(of_listener.properties) - extra
    assert {type(of_job.properties[name]) for name in of_job.properties if name.endswith("RedeliveryCount")} == {
        type(of_listener.properties["_JMSJCA_RedeliveryCount"])
    }


def test_a_retry_carries_its_own_count_until_it_is_dead_lettered(job):
    job.send(TextMessage("a", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 3, DUPLICATE_ID: "d"}))
    first, *later = [job.run("3:move(queue:dlq.$)")[0] for _ in range(3)]
    assert [row["text"] for row in later] == ["a", "a"]
    assert [dict(row["properties"])[RETRY_COUNT] for row in later] == ["1", "2"]
    assert [dict(row["properties"])["JMSXGroupSeq"] for row in later] == ["3", "3"]
    assert len({row["message_id"] for row in (first, *later)}) == 3
    [letter] = job.letters()
    assert (letter.redeliveries, letter.original_id) == (3, first["message_id"])
    [copy] = job.messages(DLQ)
    assert copy.properties["_JMSJCA_OriginalTimestamp"] == round(first["timestamp"].timestamp() * 1000)
    assert RETRY_COUNT not in copy.properties
    assert job.broker.waiting() == []


def test_a_replayed_dead_letter_begins_anew(job):
    job.send(TextMessage("a", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 3}))
    for _ in range(2):
        job.run("2:move(queue:dlq.$)")
    assert [change.outcome for change in job.insight.replay(DLQ)] == ["done"]
    [again] = job.read()
    properties = dict(again["properties"])
    assert (properties["_JMSJCA_ReplayCount"], properties["JMSXGroupID"], RETRY_COUNT in properties) == (
        "1",
        "g",
        False,
    )
    job.write([again], "2:move(queue:dlq.$)")
    job.run("2:move(queue:dlq.$)")
    [letter] = job.letters()
    assert (letter.redeliveries, letter.replays) == (2, 1)


def test_a_delay_is_one_of_the_broker(job):
    job.broker.send("a")
    job.run("1:3600000; 2:move(queue:dlq.$)")
    assert (job.broker.depth().ready, job.broker.depth().scheduled) == (0, 1)


def test_delete_sends_nothing(job):
    job.broker.send("a")
    assert job.write(job.read(), "1:delete") == 0
    assert job.broker.depth().total == 0


def test_a_message_that_cannot_be_decoded_is_never_retried(job):
    row = {"body": b"\xff", "error": "it has no sections", "properties": None}
    job.write([row], "5:move(queue:dlq.$)", origin="queue:orders")
    [letter] = job.letters()
    [copy] = job.messages(DLQ)
    assert (letter.origin, type(copy), copy.body) == (Queue("orders"), BytesMessage, b"\xff")


def test_a_row_without_a_destination_needs_an_origin(job):
    with pytest.raises(MessageFormatError, match="origin="):
        job.write([{"text": "a"}])


def test_a_row_of_a_topic_is_moved_and_not_retried(job):
    row = {"text": "a", "destination": "topic:news"}
    job.write([row], "1:move(same:dlq.$); ")
    job.write([row], "1:move(queue:dlq.$)")
    with pytest.raises(MessageFormatError, match="all subscribers"):
        job.write([row], "2:move(queue:dlq.$)")
    [letter] = job.letters("dlq.news")
    assert str(letter.origin) == "topic:news"


def test_a_repeated_batch_is_there_once(job):
    job.broker.send("a", "b", "a")
    rows = job.read()
    for order in (rows, rows[::-1]):
        job.write(order, job="query/7")
    assert sorted(message.body for message in job.messages(DLQ)) == ["a", "a", "b"]
    for order in (rows, rows[::-1]):
        job.write(order, "2:delete", job="query/7")
    assert sorted(job.broker.waiting()) == ["a", "a", "b"]


@pytest.mark.parametrize("options", [{}, {"timeToLive": "60"}], ids=["plain", "timeToLive"])
def test_the_time_to_live_goes_on_in_a_retry_and_is_recorded_in_a_dead_letter(job, options):
    job.writer = PartitionWriter(SinkOptions.parse({"url": job.broker.url, **options}), COLUMNS)
    job.send(TextMessage("a"), time_to_live=LIVES)
    [row] = job.read()
    job.write([row])
    job.write([row], "2:delete")
    [retry], [copy] = job.messages("orders"), job.messages(DLQ)
    assert abs(retry.expiration - row["expiration"]) < timedelta(seconds=LIVES / 2)
    assert (copy.expiration, copy.properties[EXPIRATION]) == (None, round(row["expiration"].timestamp() * 1000))


def test_a_dead_letter_stays_and_a_retry_does_not_once_the_time_is_over(job):
    row = {"text": "a", "destination": "queue:orders", "expiration": datetime(2020, 1, 1, tzinfo=UTC)}
    job.write([row])
    job.write([row], "2:delete")
    assert [(copy.expiration, copy.properties[EXPIRATION]) for copy in job.messages(DLQ)] == [(None, 1_577_836_800_000)]
    assert job.read() == []


def test_a_life_of_millennia_is_shortened(job):
    row = {"text": "a", "destination": "queue:orders", "expiration": datetime(9000, 1, 1, tzinfo=UTC)}
    job.write([row], "2:delete")
    [retry] = job.messages("orders")
    assert retry.expiration - datetime.now(UTC) > timedelta(days=365 * 300)


def test_names_that_only_other_clients_can_set_are_kept(job):
    row = {"text": "a", "destination": "queue:orders", "properties": [("a-b", "1"), ("JMSXDeliveryCount", "4")]}
    job.write([row])
    [copy] = job.messages(DLQ)
    assert copy.properties["a-b"] == "1"
    job.write([row], "2:delete")
    [again] = job.read()
    assert ("a-b", "1") in again["properties"]


@pytest.mark.parametrize("name", ["JMSXGroupSeq", "JMSXDeliveryCount", RETRY_COUNT, "_JMSJCA_ReplayCount"])
@pytest.mark.parametrize("value", ["abc", "99999999999"])
def test_a_count_that_is_no_number_hinders_nothing(job, name, value):
    row = {"text": "a", "destination": "queue:orders", "properties": [(name, value), ("region", "EU")]}
    job.write([row])
    job.write([row], "2:delete")
    [copy], [retry] = job.messages(DLQ), job.messages("orders")
    assert (copy.properties["region"], retry.properties["region"], retry.properties[RETRY_COUNT]) == ("EU", "EU", 1)


def test_the_exactly_once_sink_takes_rejected_rows(job):
    job.broker.send("a", "b")
    given = {"url": job.broker.url, "queryName": "q", "guarantee": "exactly-once"}
    sender = BatchSender(SinkOptions.parse(given), COLUMNS)
    rows = job.read()
    for sent in (True, False):
        assert sender.send([Rows.collect(iter([rejected(rows, MOVE)]))], 0) is sent
    assert len(job.letters()) == 2


def test_an_option_destination_is_refused(job):
    with pytest.raises(InvalidOptionError, match="leave out the option 'destination'"):
        PartitionWriter(SinkOptions.parse(job.broker.sink()), COLUMNS)
