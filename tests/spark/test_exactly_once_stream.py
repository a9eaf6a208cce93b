"""The exactly-once sink in a real Spark: streaming queries, and tables that foreachBatch writes."""

import pytest

from tests.spark.test_stream import forget_commit, run, stream

pytestmark = pytest.mark.spark

TEXTS = [str(n) for n in range(10)]


def sink(broker, **changes):
    return broker.sink(destination="results", guarantee="exactly-once", **changes)


def results(spark, broker):
    table = spark.read.format("jms").options(**broker.sink(destination="results")).load()
    return sorted((row.text for row in table.collect()), key=int)


def checkpoint(broker):
    return str(broker.folder / "checkpoint")


def forward(spark, broker, parts=2, name="forward"):
    """Copy the queue; another number of parts has the rows in another order and divides them in another way."""
    frame = stream(spark, broker).select("text").repartition(parts)
    query = frame.writeStream.format("jms").queryName(name).options(**sink(broker))
    run(query.option("checkpointLocation", checkpoint(broker)))


def test_a_repeated_batch_is_recognised_as_a_whole(spark, broker):
    broker.send(*TEXTS)
    forward(spark, broker)
    forget_commit(broker, 0)
    broker.send("10")
    forward(spark, broker, parts=3)
    assert results(spark, broker) == [*TEXTS, "10"]


def test_a_new_checkpoint_needs_a_new_name(spark, broker):
    broker.send("1")
    forward(spark, broker)
    (broker.folder / "checkpoint").rename(broker.folder / "old")
    broker.send("2")
    with pytest.raises(Exception, match=r"belongs to the query .*its checkpoint is a new one"):
        forward(spark, broker)
    forward(spark, broker, name="forward-2")
    assert results(spark, broker) == ["1", "2"]


def test_a_row_that_cannot_be_sent_leaves_nothing_of_its_batch(spark, broker):
    table = spark.createDataFrame([("1", "queue:results"), ("2", None)], "text string, destination string").coalesce(1)
    target = sink(broker, queryName="rows", batchId=0) | {"destination": ""}
    with pytest.raises(Exception, match="destination of a row is null"):
        table.write.format("jms").options(**target).mode("append").save()
    assert results(spark, broker) == []
    table.where("destination is not null").write.format("jms").options(**target).mode("append").save()
    assert results(spark, broker) == ["1"]


class Fails:
    """Writes each batch as a table and then fails once, so that Spark repeats the batch."""

    def __init__(self, target, *names, numbered=False):
        self.target = target
        self.names = names
        self.numbered = numbered
        self.numbers = []
        self.failures = 1

    def __call__(self, frame, number):
        for name in self.names:
            options = {"queryName": name, "batchId": number} if self.numbered else {"queryName": name}
            frame.select("text").write.format("jms").options(**self.target, **options).mode("append").save()
        self.numbers.append(number)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("what follows failed")

    def run(self, spark, broker):
        query = stream(spark, broker).writeStream.foreachBatch(self)
        run(query.option("checkpointLocation", checkpoint(broker)))


@pytest.mark.parametrize(
    ("guarantee", "numbered"), [("at-least-once", False), ("exactly-once", False), ("exactly-once", True)]
)
def test_a_table_of_a_repeated_batch_is_written_once(spark, broker, guarantee, numbered):
    broker.send(*TEXTS)
    batches = Fails(broker.sink(destination="results", guarantee=guarantee), "results", numbered=numbered)
    with pytest.raises(Exception, match="what follows failed"):
        batches.run(spark, broker)
    batches.run(spark, broker)
    assert batches.numbers == [0, 0]
    assert results(spark, broker) == TEXTS


def test_two_tables_of_a_batch_have_a_name_each(spark, broker):
    broker.send("1", "2")
    batches = Fails(sink(broker), "first", "second")
    with pytest.raises(Exception, match="what follows failed"):
        batches.run(spark, broker)
    batches.run(spark, broker)
    assert results(spark, broker) == ["1", "1", "2", "2"]


@pytest.mark.parametrize("second", ["others", "results"])
def test_two_tables_of_a_batch_with_one_name_are_refused_in_each_run(spark, broker, second):
    """Tables of equal size, as they are written by mistake; then the job is corrected."""
    broker.send("1")
    names = ["same", "same"]

    def process(frame, number):
        for name, destination, text in zip(names, ("results", second), ("1", "2"), strict=True):
            options = sink(broker, queryName=name) | {"destination": destination}
            table = frame.selectExpr(f"'{text}' AS text")
            table.write.format("jms").options(**options).mode("append").save()

    def write():
        query = stream(spark, broker).writeStream.foreachBatch(process)
        run(query.option("checkpointLocation", checkpoint(broker)))

    for _ in range(2):
        with pytest.raises(Exception, match=r"queue:results \(text\), and this is a second table.*a queryName each"):
            write()
        assert results(spark, broker) == ["1"]
    names[1] = "other"
    write()
    found = [row.text for row in spark.read.format("jms").options(**broker.sink(destination=second)).load().collect()]
    assert sorted(found) == (["2"] if second == "others" else ["1", "2"])


def test_the_number_is_that_of_the_batch(spark, broker):
    broker.send("1")

    def process(frame, number):
        target = sink(broker, queryName="results", batchId=7)
        frame.select("text").write.format("jms").options(**target).mode("append").save()

    query = stream(spark, broker).writeStream.foreachBatch(process)
    with pytest.raises(Exception, match="'batchId' is 7, and the streaming query processes batch 0"):
        run(query.option("checkpointLocation", checkpoint(broker)))
    assert results(spark, broker) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"guarantee": "exactly-once"}, "needs a name"),
        ({"queryName": "results"}, "The table results has no number"),
        ({"queryName": "results", "guarantee": "exactly-once"}, "The table results has no number"),
        ({"batchId": 1}, "no effect without 'queryName'"),
        ({"batchId": "x", "queryName": "results"}, "'batchId' must be a number"),
        ({"guarantee": "exactly-once", "batchId": 1, "queryName": "a b"}, "cannot be part of the name of a queue"),
        ({"guarantee": "exactly once"}, "'at-least-once' or 'exactly-once'"),
    ],
)
def test_options_that_do_not_go_together(spark, broker, changes, problem):
    table = spark.range(1).selectExpr("'x' AS text")
    with pytest.raises(Exception, match=problem):
        table.write.format("jms").options(**broker.sink(**changes)).mode("append").save()
    assert not broker.folder.joinpath("broker.db").exists()


def test_a_column_by_which_a_broker_drops_rows_is_refused(spark, broker):
    table = spark.range(1).selectExpr("'x' AS text", "'id' AS duplicate_id")
    with pytest.raises(Exception, match="recognises a batch as a whole"):
        table.write.format("jms").options(**sink(broker, queryName="a", batchId=1)).mode("append").save()


def test_a_stream_needs_a_name_and_no_number(spark, broker):
    query = stream(spark, broker).select("text").writeStream.format("jms").options(**sink(broker))
    with pytest.raises(Exception, match="needs a name"):
        run(query.option("checkpointLocation", checkpoint(broker)))
    numbered = query.option("batchId", 1).queryName("results")
    with pytest.raises(Exception, match="Spark numbers the batches"):
        run(numbered.option("checkpointLocation", checkpoint(broker) + "2"))
