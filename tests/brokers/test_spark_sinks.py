"""The sinks of Spark on real brokers, without a Spark: a task that fails and is repeated, and rejected rows."""

import uuid
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import StringType, StructType

from jmsjca import ConnectionFactory, Queue
from jmsjca.management import Insight
from jmsjca.spark import ForeachWriter
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.writer import PartitionWriter
from tests.spark.test_rejections import COLUMNS, rejected

TEXT = StructType().add("text", StringType())
ROWS = [str(number) for number in range(2500)]


@pytest.fixture
def queue() -> Queue:
    return Queue(f"spark.{uuid.uuid4().hex}")


def received(url: str, queue: Queue, count: int) -> list[str]:
    """The texts in a queue, of which there should be so many."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer, texts = session.create_consumer(queue), list[str]()
        while message := consumer.receive(60 if len(texts) < count else 1):
            texts.append(message.body)
        return texts


def failing(texts: list[str]) -> Iterator[object]:
    yield pa.RecordBatch.from_pylist([{"text": text} for text in texts])
    raise OSError("the task failed")


# On the others a repeated row is there two times: the transactions that were committed, or each row.
@pytest.mark.parametrize(
    ("pair", "doubled"), [("artemis-amqp", 0), ("activemq-amqp", 2000), ("rabbitmq4-amqp", len(ROWS))]
)
def test_a_task_that_failed_is_recognised_where_the_broker_detects_duplicates(broker_url, queue, pair, doubled) -> None:
    url = broker_url(pair)
    writer = PartitionWriter(SinkOptions.parse({"url": url, "destination": queue.name}), TEXT)
    with pytest.raises(OSError, match="the task failed"):
        writer.write(failing(ROWS), "job")
    task = writer.write(iter([pa.RecordBatch.from_pylist([{"text": text} for text in reversed(ROWS)])]), "job")
    assert task.remembered == (0 if doubled else 20_000)
    counts = Counter(received(url, queue, len(ROWS) + doubled))
    assert sorted(counts) == sorted(ROWS)
    assert sum(counts.values()) - len(ROWS) == doubled


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-amqp"])
def test_a_foreach_writer_that_fails_leaves_nothing(broker_url, queue, pair) -> None:
    url = broker_url(pair)
    for error in (RuntimeError("the task failed"), None):
        writer = ForeachWriter(TEXT, url=url, destination=queue.name)
        writer.open(0, 0)
        for text in ROWS:
            writer.process(Row(text=text))
        writer.close(error)
    assert received(url, queue, len(ROWS)) == ROWS


def test_rejected_rows_of_artemis_are_delayed_and_dead_lettered(broker_url, queue) -> None:
    url = broker_url("artemis-amqp")
    row = {"text": "a", "destination": f"queue:{queue.name}", "message_id": "ID:1", "properties": [("region", "EU")]}
    writer = PartitionWriter(SinkOptions.parse({"url": url}), COLUMNS)
    handling = "1:50; 2:move(queue:dlq.$)"
    for _ in range(2):  # a repeated task
        writer.write(iter([rejected([row], handling)]), "job/1")
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(queue)
        retry = consumer.receive(60)
        assert retry is not None
        assert consumer.receive(1) is None
    again = row | {"message_id": retry.message_id, "properties": [(n, str(v)) for n, v in retry.properties.items()]}
    for _ in range(2):
        writer.write(iter([rejected([again], handling)]), "job/2")
    insight = Insight(url)
    [letter] = insight.dead_letters(f"dlq.{queue.name}")
    assert (letter.origin, letter.original_id, letter.redeliveries) == (queue, "ID:1", 2)
    [change] = insight.replay(f"dlq.{queue.name}")
    assert change.outcome == "done"
    assert received(url, queue, 1) == ["a"]
