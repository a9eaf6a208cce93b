"""A repeated task: its rows come in another order, and a broker with duplicate detection drops those that it has."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from jmsjca.spark.options import SinkOptions
from jmsjca.spark.rows import RowIds
from jmsjca.spark.writer import JmsBatchWriter, JmsStreamWriter, PartitionWriter, Sent

SCHEMA = StructType([StructField("text", StringType())])


def batches(texts: Iterable[str]) -> Iterator[Any]:
    yield pa.RecordBatch.from_pylist([{"text": text} for text in texts])


def failing(texts: Iterable[str]) -> Iterator[Any]:
    yield from batches(texts)
    raise OSError("the task was killed")


def attempt(broker, rows: Iterator[Any]) -> int:
    return PartitionWriter(SinkOptions.parse(broker.sink()), SCHEMA).write(rows, "job").messages


@pytest.mark.parametrize("texts", [[str(n) for n in range(1500)], ["same"] * 1500, ["a", "b", "b"] * 500])
def test_a_task_that_is_repeated_in_another_order_loses_no_row_and_doubles_none(broker, texts) -> None:
    with pytest.raises(OSError, match="killed"):
        attempt(broker, failing(texts))  # a transaction of 1,000 rows is committed
    attempt(broker, batches(reversed(texts)))
    assert Counter(broker.waiting()) == Counter(texts)


@pytest.mark.parametrize(("second", "warned"), [(40_000, False), (40_001, True)])
def test_a_batch_with_more_messages_than_the_broker_remembers_is_told(broker, caplog, second, warned) -> None:
    options = SinkOptions.parse(broker.sink())
    remembered = PartitionWriter(options, SCHEMA).write(batches(["a"]), "job").remembered
    tasks = [Sent(60_000, remembered), None, Sent(second, remembered)]
    JmsBatchWriter(options, SCHEMA).commit(tasks)
    JmsStreamWriter(options, SCHEMA).commit(tasks, 7)
    told = [record.getMessage() for record in caplog.records if "remembers the last 100000 ids" in record.getMessage()]
    assert len(told) == (2 if warned else 0)
    assert all("had 100001 messages" in each for each in told)


def in_batch(monkeypatch, query: str, number: int) -> None:
    """Run what follows as a task of a batch of a streaming query."""
    context = object.__new__(TaskContext)
    properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(number)}
    TaskContext.__init__(context, partitionId=0, localProperties=properties)
    monkeypatch.setattr(TaskContext, "_taskContext", context)


def write_table(broker, schema: StructType = SCHEMA, **options: object) -> None:
    """Write a table as Spark does within foreachBatch."""
    writer = JmsBatchWriter(SinkOptions.parse(broker.sink(**options)), schema)
    writer.commit([writer.write(iter([pa.RecordBatch.from_pylist([dict.fromkeys(schema.names, "a")])]))])


def warnings_of(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if "if Spark repeats the batch" in r.getMessage()]


def test_a_table_of_a_batch_without_a_name_is_told_once_for_each_query(broker, monkeypatch, caplog) -> None:
    for query in ("q1", "q2"):
        for number in (0, 0, 1):
            in_batch(monkeypatch, query, number)
            write_table(broker)
    assert len(broker.waiting()) == 6
    assert [
        (f"query {query} has no queryName" in told)
        for query, told in zip(("q1", "q2"), warnings_of(caplog), strict=True)
    ] == [True, True]


@pytest.mark.parametrize(("options", "columns"), [({"queryName": "named"}, ["text"]), ({}, ["text", "duplicate_id"])])
def test_a_table_of_a_batch_that_is_recognised_is_written_once(broker, monkeypatch, caplog, options, columns) -> None:
    in_batch(monkeypatch, "q3", 0)
    for _ in range(2):
        write_table(broker, StructType([StructField(name, StringType()) for name in columns]), **options)
    assert broker.waiting() == ["a"]
    assert warnings_of(caplog) == []


def test_a_table_that_is_of_no_batch_is_never_repeated(broker, caplog) -> None:
    write_table(broker)
    assert warnings_of(caplog) == []


def test_rows_that_changed_between_two_attempts_are_both_sent(broker) -> None:
    attempt(broker, batches(["a", "b"]))
    attempt(broker, batches(["a", "c"]))
    assert sorted(broker.waiting()) == ["a", "b", "c"]


def test_equal_rows_have_different_ids_which_are_the_same_in_each_order() -> None:
    rows = [{"text": "a"}, {"text": "b"}, {"text": "a"}, {"text": "a", "body": b"\x00"}, {"text": None}, {"text": ""}]
    first, second = RowIds("job/0"), RowIds("job/0")
    ids = [first.take(row) for row in rows]
    assert len(set(ids)) == len(rows)
    assert {second.take(row) for row in reversed(rows)} == set(ids)
    assert all(each.startswith("job/0/") for each in ids)


def test_half_a_surrogate_pair_has_an_id() -> None:
    assert RowIds("job").take({"text": "\ud800"}) != RowIds("job").take({"text": "?"})


def test_ids_beyond_the_bound_are_never_an_earlier_one() -> None:
    ids = RowIds("job", bound=2)
    rows = [{"text": text} for text in "abcabc"]
    taken = [ids.take(row) for row in rows]
    assert len(set(taken)) == len(rows)
    again = RowIds("job", bound=2)
    assert [again.take(row) == known for row, known in zip(rows, taken, strict=True)] == [
        True, True, False, True, True, False,
    ]  # fmt: skip
