"""Streams and batches through a real Spark session."""

import contextlib
import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from jmsjca import DeliveryMode, Queue
from jmsjca.errors import InvalidOptionError
from jmsjca.spark import SCHEMA, JmsDataSource
from jmsjca.spark.staging_location import repair
from tests.support.s3_server import CREDENTIALS, s3_server

pytestmark = pytest.mark.spark

HIDDEN = "s3cret"


def stream(spark, broker, **changes):
    options = broker.given(receiveIdleTimeout=0.1, **changes)
    return spark.readStream.format("jms").options(**options).load()


def run(query):
    """Run a query until the queue is empty."""
    started = query.trigger(availableNow=True).start()
    try:
        started.awaitTermination()
    finally:
        started.stop()
    return started


def to_parquet(spark, broker, **changes):
    checkpoint, out = str(broker.folder / "checkpoint"), str(broker.folder / "out")
    frame = stream(spark, broker, **changes)
    return run(frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint))


def written(spark, broker):
    return [row.text for row in spark.read.parquet(str(broker.folder / "out")).select("text").collect()]


def forget_commit(broker, batch):
    """What a crash after the sink's commit leaves behind: the batch was done, but the log does not say so."""
    for path in (broker.folder / "checkpoint" / "commits").glob(f"*{batch}*"):
        path.unlink()


class Batches:
    """Collects what foreachBatch sees, and fails when told to."""

    def __init__(self, broker, failures=0):
        self.broker = broker
        self.failures = failures
        self.seen = {}

    def __call__(self, frame, number):
        rows = [tuple(row) for row in frame.orderBy("_epoch", "_partition", "_seq").collect()]
        again = [tuple(row) for row in frame.orderBy("_epoch", "_partition", "_seq").collect()]
        assert rows == again  # a second action reads the staged rows, not the queue
        self.seen.setdefault(number, []).append(rows)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the sink failed")

    def run(self, spark, **changes):
        frame = stream(spark, self.broker, **changes)
        checkpoint = str(self.broker.folder / "checkpoint")
        return run(frame.writeStream.foreachBatch(self).option("checkpointLocation", checkpoint))


def test_a_batch_looks_and_takes_nothing(spark, broker):
    broker.send("a", "b", "c")
    frame = spark.read.format("jms").options(**broker.given()).load()
    assert frame.schema == SCHEMA
    assert [row.text for row in frame.orderBy("_seq").collect()] == ["a", "b", "c"]
    assert frame.count() == frame.count() == 3
    assert broker.depth().ready == 3


@pytest.mark.parametrize("parts", [1, 3])
def test_several_queues_are_browsed_in_several_partitions(spark, broker, parts):
    texts = [f"m{n:02}" for n in range(40)]
    broker.send(*texts)
    rows = [("b1",), ("b2",)]
    spark.createDataFrame(rows, "text string").write.format("jms").options(url=broker.url).mode("append").save("bills")
    options = broker.sink(destination=None, destinations="orders,bills", partitions=parts)
    frame = spark.read.format("jms").options(**options).load()
    assert frame.rdd.getNumPartitions() == 2 * parts
    found = frame.orderBy("destination", "_seq").collect()
    assert [row.text for row in found if row.destination == "queue:orders"] == texts
    assert sorted(row.text for row in found if row.destination == "queue:bills") == ["b1", "b2"]
    used = {row._partition for row in found}
    assert len(used) > parts
    assert broker.depth().ready == 40


def test_a_stream_reads_several_queues(spark, broker):
    broker.send(*"abc")
    table = spark.createDataFrame([("d",)], "text string")
    table.write.format("jms").options(url=broker.url).mode("append").save("bills")
    to_parquet(spark, broker, destination="", destinations="orders,bills")
    assert sorted(written(spark, broker)) == [*"abcd"]


def test_a_checkpoint_is_refused_for_another_queue(spark, broker):
    broker.send("a")
    to_parquet(spark, broker)
    with pytest.raises(Exception, match="This checkpoint belongs to queue:orders at embedded://"):
        to_parquet(spark, broker, destination="bills")


def test_a_lost_epoch_is_named_and_its_loss_can_be_accepted(spark, broker):
    broker.send("a")
    to_parquet(spark, broker)
    forget_commit(broker, 0)
    shutil.rmtree(broker.location)
    broker.send("b")
    with pytest.raises(Exception, match=r"is missing, with the messages of epoch 1.*--accept-loss") as raised:
        to_parquet(spark, broker)
    assert broker.waiting() == ["b"]
    accepted = re.search(r"--accept-loss (\w+/1)", str(raised.value))[1]
    broker.location.mkdir()
    repair(broker.location, [accepted])
    to_parquet(spark, broker)
    assert sorted(written(spark, broker)) == ["a", "b"]  # the sink had the first batch


def test_a_message_that_cannot_be_decoded_hides_nothing(spark, broker):
    broker.send("a", "poison", "c")
    with contextlib.closing(sqlite3.connect(broker.folder / "broker.db")) as db:
        db.execute("UPDATE message SET headers = 'no JSON' WHERE body = CAST('poison' AS BLOB)")
        db.commit()
    rows = spark.read.format("jms").options(**broker.given()).load().orderBy("_seq").collect()
    assert [(row.text, row.body and bytes(row.body)) for row in rows] == [("a", None), (None, b"poison"), ("c", None)]
    assert "is damaged" in rows[1].error
    to_parquet(spark, broker)
    assert sorted(written(spark, broker), key=str) == [None, "a", "c"]


def test_a_stream_empties_the_queue_and_leaves_no_consumer(spark, broker):
    texts = [str(n) for n in range(50)]
    broker.send(*texts)
    to_parquet(spark, broker, maxMessagesPerBatch=20)
    assert sorted(written(spark, broker), key=int) == texts
    assert broker.depth().total == 0


def test_a_repeated_batch_has_the_same_rows_and_new_messages_wait(spark, broker):
    broker.send("a", "b", "c")
    batches = Batches(broker)
    batches.run(spark)
    broker.send("d")
    forget_commit(broker, 0)
    batches.run(spark)
    assert batches.seen[0][0] == batches.seen[0][1]
    texts = [row[SCHEMA.names.index("text")] for row in batches.seen[1][0]]
    assert texts == ["d"]


def test_a_sink_that_fails_once_gets_the_same_rows_again(spark, broker):
    broker.send("a", "b", "c")
    batches = Batches(broker, failures=1)
    with pytest.raises(Exception, match="the sink failed"):
        batches.run(spark)
    batches.run(spark)
    assert len(batches.seen[0]) == 2
    assert batches.seen[0][0] == batches.seen[0][1]
    assert broker.depth().total == 0


def test_a_store_without_conditional_creation_needs_the_weaker_guarantee(spark, broker):
    broker.send("a", "b", "c")
    with s3_server("plain") as server:
        broker.bucket = {
            "stagingLocation": server.new_bucket(),
            "stagingEndpoint": server.endpoint,
            "stagingCredentials": CREDENTIALS,
        }
        with pytest.raises(Exception, match="or set guarantee=at-least-once"):
            Batches(broker).run(spark)
        broker.bucket["guarantee"] = "at-least-once"
        shutil.rmtree(broker.folder / "checkpoint")
        batches = Batches(broker, failures=1)
        with pytest.raises(Exception, match="the sink failed"):
            batches.run(spark)
        batches.run(spark)
    place = SCHEMA.names.index("text")
    assert batches.seen[0][0] == batches.seen[0][1]
    assert sorted(row[place] for row in batches.seen[0][0]) == ["a", "b", "c"]
    assert broker.depth().total == 0


def test_a_repeated_batch_keeps_its_partitions_whatever_the_options_say(spark, broker):
    broker.send(*"abcdef")
    batches = Batches(broker)
    batches.run(spark, partitions=3)
    forget_commit(broker, 0)
    batches.run(spark, partitions=1)
    assert batches.seen[0][0] == batches.seen[0][1]


def test_available_now_ends_although_messages_keep_coming(spark, broker):
    broker.send(*"abcd")

    def process(frame, number):
        broker.send("more", "and more")  # as many as each batch takes
        frame.collect()

    checkpoint = str(broker.folder / "checkpoint")
    frame = stream(spark, broker, maxMessagesPerBatch=2)
    query = run(frame.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint))
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 4
    assert broker.depth().ready == 4


def test_staged_messages_of_a_lost_checkpoint_are_not_passed_over(spark, broker):
    broker.send("a")
    with pytest.raises(Exception, match="the sink failed"):
        Batches(broker, failures=1).run(spark)
    (broker.folder / "checkpoint").rename(broker.folder / "lost")
    broker.send("b")
    with pytest.raises(Exception, match=r"p-00000\.arrow"):
        to_parquet(spark, broker)
    to_parquet(spark, broker, orphans="ignore")
    assert written(spark, broker) == ["b"]


def test_writing_a_table_keeps_the_types_of_properties(spark, broker):
    row = f.struct(f.lit(5).cast("short").alias("level"), f.lit(2**40).alias("big"), f.lit("EU").alias("region"))
    table = spark.range(1).select(f.lit("hello").alias("text"), row.alias("properties"), f.lit(7).alias("priority"))
    table.write.format("jms").options(**broker.sink()).mode("append").save()
    with broker.factory.create_connection() as connection:
        (message,) = connection.create_session().create_browser(broker.queue)
    assert (message.body, message.priority) == ("hello", 7)
    assert [(k, type(v).__name__) for k, v in message.properties.items() if k != "_AMQ_DUPL_ID"] == [
        ("level", "Short"),
        ("big", "Long"),
        ("region", "str"),
    ]


def test_a_table_written_twice_is_there_once(spark, broker):
    table = spark.range(20).select(
        f.col("id").cast("string").alias("text"), f.concat(f.lit("row "), "id").alias("duplicate_id")
    )
    for _ in range(2):
        table.write.format("jms").options(**broker.sink()).mode("append").save()
    assert sorted(broker.waiting(), key=int) == [str(n) for n in range(20)]


def test_a_repeated_batch_of_a_stream_is_written_once(spark, broker):
    texts = [str(n) for n in range(10)]
    broker.send(*texts)
    target = broker.sink(destination="results")

    def forward():
        frame = stream(spark, broker).select("text")
        checkpoint = str(broker.folder / "checkpoint")
        run(frame.writeStream.format("jms").options(**target).option("checkpointLocation", checkpoint))

    forward()
    forget_commit(broker, 0)
    forward()
    results = spark.read.format("jms").options(**target).load()
    assert sorted((row.text for row in results.collect()), key=int) == texts


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"url": "embedded://memory"}, "embedded:///folder/file.db"),
        ({"partitons": 3}, "did you mean partitions"),
        ({"destinationType": "topic"}, "through a subscription"),
    ],
)
def test_wrong_options_say_what_is_right(spark, broker, changes, remedy):
    with pytest.raises(Exception, match=remedy):
        to_parquet(spark, broker, **changes)


def test_a_stream_needs_a_staging_location(spark, broker):
    options = broker.given()
    options.pop("stagingLocation")
    frame = spark.readStream.format("jms").options(**options).load()
    with pytest.raises(Exception, match="stagingLocation"):
        run(frame.writeStream.format("noop").option("checkpointLocation", str(broker.folder / "checkpoint")))


def test_nothing_is_overwritten(spark, broker):
    with pytest.raises(Exception, match="append"):
        spark.range(1).selectExpr("'x' AS text").write.format("jms").options(**broker.sink()).mode("overwrite").save()


def test_readers_open_nothing_until_they_must(broker):
    source = JmsDataSource(broker.given())
    text = StructType().add("text", "string")
    sink = JmsDataSource(broker.sink()).streamWriter(text, overwrite=False)
    for reader in (source.reader(SCHEMA), source.streamReader(SCHEMA), sink):
        cloudpickle.loads(cloudpickle.dumps(reader))
    assert list(Path(broker.folder).iterdir()) == []


def test_offsets_hold_no_secret(broker):
    reader = JmsDataSource(broker.given(userName="me", password=HIDDEN)).streamReader(SCHEMA)
    broker.send("a")
    offset = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    reader.stop()
    assert HIDDEN not in json.dumps(offset)
    with pytest.raises(InvalidOptionError):
        JmsDataSource({"url": "embedded:///x/y.db"}).reader(SCHEMA)


def test_only_the_wanted_columns_are_there(spark, broker):
    broker.send("a", "b")
    frame = stream(spark, broker, columns="text, _seq, error", partitions=1)
    assert frame.columns == ["text", "_seq", "error"]
    checkpoint, out = str(broker.folder / "checkpoint"), str(broker.folder / "out")
    run(frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint))
    assert sorted(map(tuple, spark.read.parquet(out).collect())) == [("a", 0, None), ("b", 1, None)]


def test_places_are_enough_columns(spark, broker):
    """Arrow counts the rows of a batch by its columns, and these are added later."""
    broker.send("a", "b")
    table = spark.read.format("jms").options(**broker.sink(columns="_seq,_epoch")).load()
    assert sorted(map(tuple, table.collect())) == [(0, 0), (1, 0)]
    frame = stream(spark, broker, columns="_seq", partitions=1)
    checkpoint, out = str(broker.folder / "checkpoint"), str(broker.folder / "out")
    run(frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint))
    assert sorted(map(tuple, spark.read.parquet(out).collect())) == [(0,), (1,)]
    assert broker.depth().total == 0


def test_a_path_is_the_destination(spark, broker):
    table = spark.range(2).selectExpr("cast(id as string) AS text")
    table.write.format("jms").option("url", broker.url).mode("append").save("orders")
    loaded = spark.read.format("jms").option("url", broker.url).load("orders")
    assert sorted(row.text for row in loaded.collect()) == ["0", "1"]
    assert broker.waiting() == ["0", "1"] or broker.waiting() == ["1", "0"]


def test_a_selector_with_substitution(spark, broker):
    rows = [("a", {"region": "EU", "n": "7"}), ("b", {"region": "US", "n": "9"}), ("c", {"region": "O'Hare", "n": "1"})]
    table = spark.createDataFrame(rows, "text string, properties map<string,string>")
    table.write.format("jms").options(**broker.sink()).mode("append").save()
    options = broker.sink(selector="region = ${Where}") | {"selector.where": "O'Hare"}
    assert [row.text for row in spark.read.format("jms").options(**options).load().collect()] == ["c"]
    to_parquet(spark, broker, selector="region IN ('EU', 'US')")
    assert sorted(written(spark, broker)) == ["a", "b"]
    assert broker.waiting() == ["c"]


def test_each_row_has_its_destination_and_options(spark, broker):
    columns = "text string, destination string, delivery_mode string, time_to_live double, delivery_delay int, "
    columns += "group_id string, group_sequence int, priority int"
    rows = [
        ("a", "queue:first", "NON_PERSISTENT", 60.0, None, "g", 1, 9),
        ("b", "second", "PERSISTENT", None, 3600, "g", 2, None),
        ("c", None, None, None, None, None, None, None),
    ]
    table = spark.createDataFrame(rows, columns)
    table.write.format("jms").options(**broker.sink(timeToLive="1 hour")).mode("append").save()
    with broker.factory.create_connection() as connection:
        session = connection.create_session()
        found = {name: list(session.create_browser(Queue(name))) for name in ("first", "orders")}
        depth = connection.admin.depth(Queue("second"))
    (a,), (c,) = found["first"], found["orders"]
    assert (a.body, a.delivery_mode, a.priority) == ("a", DeliveryMode.NON_PERSISTENT, 9)
    assert (a.properties["JMSXGroupID"], a.properties["JMSXGroupSeq"]) == ("g", 1)
    assert (a.expiration - a.timestamp).total_seconds() == 60
    assert (c.body, c.delivery_mode, (c.expiration - c.timestamp).total_seconds()) == (
        "c",
        DeliveryMode.PERSISTENT,
        3600,
    )
    assert (depth.ready, depth.scheduled) == (0, 1)


def test_a_table_that_was_read_names_its_destination_once(spark, broker):
    """Otherwise a copy of a queue to another one would send every message back."""
    broker.send("a")
    table = spark.read.format("jms").options(**broker.sink()).load()
    with pytest.raises(Exception, match="would override the option 'destination', queue:copies"):
        table.write.format("jms").options(**broker.sink(destination="copies")).mode("append").save()
    table.drop("destination").write.format("jms").options(**broker.sink(destination="copies")).mode("append").save()
    copies = spark.read.format("jms").options(**broker.sink(destination="copies")).load()
    assert [row.text for row in copies.collect()] == ["a"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stagingLocation": "/s"}, "A jms sink has no option 'stagingLocation', which is for a source"),
        ({"partitions": 2, "orphans": "fail"}, "no option 'orphans', 'partitions'"),
        ({"destination": None}, "Messages need a destination"),
    ],
)
def test_a_sink_refuses_what_it_cannot_use(spark, broker, changes, problem):
    table = spark.range(1).selectExpr("'x' AS text")
    with pytest.raises(Exception, match=problem):
        table.write.format("jms").options(**broker.sink(**changes)).mode("append").save()
    assert not broker.folder.joinpath("broker.db").exists()  # found when the job was planned


def test_a_source_refuses_what_it_cannot_use(spark, broker):
    with pytest.raises(Exception, match="A jms source has no option 'timeToLive'"):
        spark.read.format("jms").options(**broker.sink(timeToLive=5)).load().count()


def test_a_topic_is_read_through_a_shared_subscription(spark, broker):
    def publish(*texts):
        table = spark.createDataFrame([(text,) for text in texts], "text string")
        table.write.format("jms").options(**broker.sink(destinationType="topic")).mode("append").save()

    changes = {"destinationType": "topic", "subscription": "spark", "partitions": 2}
    publish("before the subscription")
    to_parquet(spark, broker, **changes)  # creates it
    publish(*"abcdef")
    to_parquet(spark, broker, **changes)
    assert sorted(written(spark, broker)) == [*"abcdef"]
