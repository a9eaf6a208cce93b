"""Tasks that fail, queries that go on, and what is left at the broker, through a real Spark session."""

import json
import os
import shutil
from contextlib import suppress
from functools import reduce
from pathlib import Path

import pyspark
import pytest
from crashing_query import run_to_end
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, StaleEpochError
from jmsjca.spi import Depth

pytestmark = pytest.mark.spark


class Stream:
    """One query into Parquet."""

    def __init__(self, spark, broker) -> None:
        self._spark = spark
        self._broker = broker
        self.checkpoint = broker.folder / "checkpoint"
        self.out = str(broker.folder / "out")

    def frame(self, **changes):
        options = self._broker.given(receiveIdleTimeout=0.1, **changes)
        return self._spark.readStream.format("jms").options(**options).load()

    def start(self, frame, **trigger):
        sink = frame.writeStream.format("parquet").option("path", self.out)
        return sink.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger).start()

    def run(self, frame) -> None:
        run_to_end(lambda: self.start(frame, availableNow=True))

    def rows(self) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in self._spark.read.parquet(self.out).collect())

    def texts(self) -> list[str]:
        return sorted(row.text for row in self._spark.read.parquet(self.out).select("text").collect())


@pytest.fixture
def stream(spark, broker) -> Stream:
    return Stream(spark, broker)


def die_once(mark: str):
    """A column expression whose first evaluation, in the middle of a partition, ends the worker process."""

    def evaluate(text: str) -> str:
        if text == "m7" and not Path(mark).exists():
            Path(mark).touch()
            os._exit(1)
        return text

    return f.udf(evaluate, StringType(), useArrow=False)


def test_a_task_whose_worker_dies_is_tried_again_with_the_same_rows(stream, broker) -> None:
    texts = [f"m{n}" for n in range(10)]
    broker.send(*texts)
    mark = broker.folder / "died"
    frame = stream.frame(maxMessagesPerBatch=10)
    stream.run(frame.withColumn("text", die_once(str(mark))("text")))
    assert mark.exists()
    assert stream.texts() == texts
    assert broker.depth() == Depth(0, 0, 0)


def test_a_batch_repeated_into_parquet_changes_nothing(stream, broker) -> None:
    broker.send("a", "b", "c")
    stream.run(stream.frame())
    rows = stream.rows()
    assert len(rows) == 3
    broker.send("d")
    (stream.checkpoint / "commits" / "0").unlink()
    (stream.checkpoint / "commits" / ".0.crc").unlink()
    shutil.rmtree(stream.out)  # the sink crashed, too, and lost the batch
    stream.run(stream.frame())
    assert [row for row in stream.rows() if row in rows] == rows
    assert stream.texts() == ["a", "b", "c", "d"]


def test_a_query_follows_the_queue(stream, broker) -> None:
    broker.send(*"abcde")
    query = stream.start(stream.frame(maxMessagesPerBatch=2), processingTime="0 seconds")
    try:
        query.processAllAvailable()
        assert stream.texts() == [*"abcde"]
        broker.send(*"fg")
        query.processAllAvailable()
        assert stream.texts() == [*"abcdefg"]
        assert query.lastProgress["sources"][0]["endOffset"]
    finally:
        query.stop()
    assert broker.depth() == Depth(0, 0, 0)


@pytest.mark.parametrize("trigger", ["once", "availableNow"])
def test_the_last_batch_is_no_orphan_if_spark_asked_for_a_next_one(stream, broker, trigger) -> None:
    """With the trigger once it does not, so nobody knows that it was committed, and the error says so."""
    broker.send("a")
    stream.start(stream.frame(), **{trigger: True}).awaitTermination()
    stream.checkpoint = broker.folder / "another"
    broker.send("b")
    if trigger == "once":
        with pytest.raises(Exception, match=r"p-0000\d\.arrow.*with trigger once"):
            stream.start(stream.frame(), availableNow=True).awaitTermination()
    stream.run(stream.frame(orphans="ignore" if trigger == "once" else "fail"))
    assert stream.texts() == ["a", "b"]


def test_the_progress_has_the_batches_before(stream, broker) -> None:
    broker.send(*"abcde")
    query = stream.start(stream.frame(maxMessagesPerBatch=2, partitions=1), availableNow=True)
    query.awaitTermination()
    figures = [json.loads(progress["sources"][0]["latestOffset"]) for progress in query.recentProgress]
    assert [found["received"] for found in figures if found["depth"]] == [0, 2, 4]


def test_no_task_holds_more_than_it_reads(stream, broker) -> None:
    """Between batches no consumer is left, and what a batch did not take is there for others."""
    broker.send(*"abcdef")
    depths = []
    frame = stream.frame(maxMessagesPerBatch=2, partitions=2)
    sink = frame.writeStream.foreachBatch(lambda batch, _: (batch.collect(), depths.append(broker.depth())))
    sink.option("checkpointLocation", str(stream.checkpoint)).trigger(availableNow=True).start().awaitTermination()
    assert depths == [Depth(4, 0, 0), Depth(2, 0, 0), Depth(0, 0, 0)]


def test_the_next_batch_follows_new_options(stream, broker) -> None:
    broker.send(*"abcd")
    stream.run(stream.frame(partitions=1))
    broker.send(*"efgh")
    stream.run(stream.frame(partitions=4))
    rows = stream._spark.read.parquet(stream.out)
    assert [tuple(row) for row in rows.groupBy("_epoch").agg(f.max("_partition")).orderBy("_epoch").collect()] == [
        (1, 0),
        (2, 3),
    ]
    assert stream.texts() == [*"abcdefgh"]


def test_a_copied_checkpoint_may_not_go_on_with_the_same_files(stream, broker) -> None:
    broker.send("a")
    stream.run(stream.frame())
    metadata = stream.checkpoint / "metadata"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"id": "00000000-0000-4000-8000-000000000000"}))
    (stream.checkpoint / ".metadata.crc").unlink()
    broker.send("b")
    with pytest.raises(Exception, match="each query needs a checkpoint of its own"):
        stream.run(stream.frame())
    assert broker.waiting() == ["b"]


def test_a_table_used_twice_in_one_query_gives_each_row_twice(stream, broker) -> None:
    broker.send("a", "b")
    frame = stream.frame()
    stream.run(frame.union(frame))
    assert stream.texts() == ["a", "a", "b", "b"]


def test_altered_rows_end_the_query_and_do_not_change_its_result(stream, broker) -> None:
    broker.send("original")
    stream.run(stream.frame())
    (stream.checkpoint / "commits" / "0").unlink()
    (stream.checkpoint / "commits" / ".0.crc").unlink()
    shutil.rmtree(stream.out)
    (staged,) = [path for path in broker.location.glob("v1/*/e-*/*.arrow") if b"original" in path.read_bytes()]
    staged.write_bytes(staged.read_bytes().replace(b"original", b"0riginal"))
    with pytest.raises(Exception, match="the checksum of the rows does not match"):
        stream.run(stream.frame())


def test_an_attempt_at_a_batch_that_is_over_takes_nothing(stream, broker) -> None:
    broker.send(*"abcdef")
    frame = stream.frame(maxMessagesPerBatch=2, retainEpochs=0)
    stream.run(frame)
    broker.send("g")
    (generation,) = broker.location.glob("v1/*")
    late = PartitionReader(broker.options(), JmsPartition(generation.name, EpochPartition(1, 0), 10))
    with suppress(StaleEpochError):
        list(late.read())
    assert broker.waiting() == ["g"]
    stream.run(frame)
    assert stream.texts() == [*"abcdefg"]


def test_a_source_may_have_a_name(spark, broker):
    """Sources are added to a query and removed from it, and its checkpoint stays; Spark 4.2 refuses another number."""
    query = Stream(spark, broker)
    has_evolution = not pyspark.__version__.startswith("4.2.")

    def source(queue):
        given = broker.given(destination=queue, stagingLocation=broker.location / queue, receiveIdleTimeout=0.1)
        return spark.readStream.name(queue).format("jms").options(**given).load()

    def read(*queues):
        query.run(reduce(DataFrame.union, map(source, queues)))
        return sorted(row.text for row in spark.read.parquet(query.out).select("text").collect())

    spark.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    try:
        broker.send("a")
        assert read("orders") == ["a"]
        broker.send("b")
        broker.factory.send("returns", "c")
        if not has_evolution:
            with pytest.raises(StreamingQueryException, match=r"There are \[1\] sources in the checkpoint"):
                read("returns", "orders")
            assert read("orders") == ["a", "b"]
            return
        assert read("returns", "orders") == ["a", "b", "c"]
        broker.factory.send("returns", "d")
        assert read("returns") == ["a", "b", "c", "d"]
    finally:
        spark.conf.unset("spark.sql.streaming.queryEvolution.enableSourceEvolution")
