"""Crashes at marked steps of an epoch in a real Spark: each message is a row once, and nothing stays behind."""

# ruff: noqa: F811  # fixtures are imported

import pytest
from crashing_query import RunningQuery, run_to_end
from crashing_source import COMMIT_STEPS, DRIVER_STEPS, PREFETCH_STEPS, TASK_STEPS
from crashing_streams import EMPTY, PAIRS, TEXTS, Stream, await_until, cluster, make_stream, spark  # noqa: F401  # fixtures
from pyspark.errors import StreamingQueryException
from spark_cases import cases

from jmsjca import Queue
from jmsjca.spi import Depth
from tests.support.s3_server import CREDENTIALS, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

IN_BUCKET = [step for step in TASK_STEPS if step != "linking"]  # an object has its name at once
SINKS = ["embedded", "artemis-amqp", "activemq-amqp", "activemq-stomp"]  # with transactions of receipts and sends


@pytest.fixture(scope="module")
def s3():
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3, tmp_path):
    """Return the options of a bucket of S3."""
    place = {"stagingLocation": s3.new_bucket(), "stagingEndpoint": s3.endpoint}
    return place | {"stagingCredentials": CREDENTIALS, "crashFolder": tmp_path}


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, TASK_STEPS, keep=3))
def test_a_worker_that_dies_loses_and_doubles_nothing(spark, make_stream, pair, step):
    stream = make_stream(pair)
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, step, "worker"))
    assert stream.crashed
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY
    assert stream.outlived() == []


@pytest.mark.parametrize("step", cases(IN_BUCKET))
def test_a_worker_that_dies_with_a_bucket_loses_and_doubles_nothing(spark, make_stream, bucket, step):
    stream = make_stream("embedded")
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, step, "worker", **bucket))
    assert stream.crashed
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, ("received", "published", "confirmed")))
def test_a_worker_that_dies_loses_nothing_with_at_least_once(spark, make_stream, pair, step):
    stream = make_stream(pair)
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, step, "worker", guarantee="at-least-once"))
    assert stream.crashed
    assert set(stream.texts(spark)) == set(TEXTS)
    assert stream.left() in EMPTY


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, (*TASK_STEPS, *DRIVER_STEPS), keep=1))
def test_a_driver_that_dies_with_all_workers_loses_and_doubles_nothing(make_stream, pair, step):
    kill_and_go_on(make_stream(pair), step, "everything")


@pytest.mark.parametrize("step", cases(IN_BUCKET))
def test_a_driver_that_dies_with_all_workers_and_a_bucket_loses_and_doubles_nothing(make_stream, bucket, step):
    kill_and_go_on(make_stream("embedded"), step, "everything", **bucket)


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, DRIVER_STEPS))
def test_a_planner_that_dies_loses_and_doubles_nothing(spark, make_stream, pair, step):
    """It is the process of Python that Spark's driver asks for epochs; nothing else is killed."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    with pytest.raises(StreamingQueryException):
        run_to_end(lambda: stream.start(spark, step, "worker"))
    assert stream.crashed
    assert stream.outlived()
    run_to_end(lambda: stream.start(spark, step, "worker"))
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY
    assert stream.outlived() == []


@pytest.mark.parametrize(("pair", "step"), cases(SINKS, COMMIT_STEPS))
def test_a_commit_that_dies_writes_each_row_once_with_exactly_once(spark, make_stream, pair, step):
    """It is the process of Python that sends a batch for Spark's driver; nothing else is killed."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    target = Queue(f"{stream.queue.name}.results")
    with pytest.raises(StreamingQueryException):
        run_to_end(lambda: stream.start_exactly_once(spark, step, target))
    assert stream.crashed
    run_to_end(lambda: stream.start_exactly_once(spark, step, target))
    assert sorted(stream.take(target)) == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS[:2], PREFETCH_STEPS))
def test_a_driver_that_dies_in_a_prefetch_loses_and_doubles_nothing(make_stream, pair, step):
    kill_and_go_on(make_stream(pair), step, "everything", prefetchEpochs=1)


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, ("confirmed", "offset logged")))
def test_a_machine_that_loses_power_loses_and_doubles_nothing(make_stream, pair, step):
    """What was not flushed to disk is missing in its staging folder."""
    kill_and_go_on(make_stream(pair), step, "power", retainEpochs=10)


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_driver_that_dies_before_spark_notes_that_the_sink_is_done(make_stream, pair):
    """The batch is repeated, and the sink writes it again under its number."""
    kill_and_go_on(make_stream(pair), "sink written", "everything", sink="batches")


def kill_and_go_on(stream: Stream, step: str, victim: str, **changes: object) -> None:
    """Run a query that is killed at a step, and run it again."""
    stream.send(TEXTS)
    killed = stream.run_apart(step, victim, **changes)
    assert stream.crashed, killed.said
    assert killed.code < 0
    is_kept = "retainEpochs" in changes or "stagingLocation" in changes
    assert is_kept or stream.outlived()
    again = stream.run_apart(step, victim, **changes)
    assert again.code == 0, again.said
    assert again.texts == TEXTS
    assert stream.left() in EMPTY
    assert is_kept or stream.outlived() == []


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_messages_of_three_killed_workers_are_counted_and_not_moved_away(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, "received", "worker", crashes=3))
    assert stream.at("received").marks[2:]
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY
    rows = spark.read.parquet(str(stream.folder / "out")).select("redelivered", "delivery_count").collect()
    assert any(row.redelivered for row in rows)
    if pair != "activemq-stomp":  # which does not count
        assert max(row.delivery_count for row in rows) in {2, 3, 4}


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, ("received", "published"), keep=1))
def test_two_queries_share_a_queue_although_a_worker_dies(spark, make_stream, pair, step):
    """The messages of the killed one are redelivered to the other query, which must recognise those that are staged."""
    stream, running = make_stream(pair), []
    stream.send(TEXTS[:30])

    def start(name, *kind, **changes):
        running.append(RunningQuery(lambda: stream.start_named(spark, name, *kind, **changes)))
        return running[-1]

    def read_all():
        if stream.left() is not None:
            await_until(lambda: stream.left() == Depth(0, 0, 0), *running)
        for query in running:
            query.read_all()

    crashing = {"crashStep": step, "victim": "worker"}
    try:
        await_until(lambda: stream.crashed, start("first", "crashing", **crashing))
        running.pop().stop()
        start("second")
        read_all()
        start("first", "crashing", **crashing)
        stream.send(TEXTS[30:])
        read_all()
    finally:
        for query in running:
            query.stop()
    assert sorted(stream.texts(spark, "out-first") + stream.texts(spark, "out-second")) == TEXTS


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_speculation_leaves_nothing_behind(make_stream, cluster, pair):
    """The first attempt at a partition receives messages and stands still; Spark begins another one and kills it."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    done = stream.run_apart("received", "nobody", cluster, tasks="holding")
    assert done.code == 0, done.said
    assert stream.crashed
    assert done.texts == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, ("received", "published")))
def test_an_executor_that_dies_loses_and_doubles_nothing(make_stream, cluster, pair, step):
    """The cluster has an executor on each of two hosts."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    done = stream.run_apart(step, "executor", cluster)
    assert done.code == 0, done.said
    assert stream.crashed
    assert done.texts == TEXTS
    assert stream.left() in EMPTY
    assert stream.outlived() == []


@pytest.mark.parametrize(("pair", "step"), cases(PAIRS, ("received", "published")))
def test_a_machine_that_dies_loses_and_doubles_nothing_of_two_queries_of_a_queue(make_stream, cluster, pair, step):
    """It dies with a partition of the first query when the second one has a batch; the other machine does the rest."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    after = "second/out/_spark_metadata/0"  # its first batch is committed
    done = stream.run_apart(step, "machine", cluster, "first", "second", crashAfter=after)
    assert done.code == 0, done.said
    assert stream.crashed
    first, second = done.texts_of_each
    assert first
    assert second
    assert sorted(first + second) == TEXTS
    assert stream.left() in EMPTY
    assert "Removing worker" in (stream.folder / "cluster" / "master.log").read_text()
