"""Crashes at marked steps of an epoch in a real Spark: each message is a row once, and nothing stays behind."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashing_query import RunningQuery, run_to_end
from crashing_source import DRIVER_STEPS, MARK, TASK_STEPS, CrashingSource
from spark_cluster import spark_cluster
from spark_session import SUPPORT, spark_session

from jmsjca import Queue, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Depth

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

TEXTS = [f"m{n:02}" for n in range(40)]
PAIRS = ["embedded", "artemis-amqp", "activemq-stomp"]
# The others take minutes, and are run by `make torture`.
WORKER_IN_EVERY_RUN = {("embedded", TASK_STEPS[0]), ("artemis-amqp", "published"), ("activemq-stomp", "confirmed")}
DRIVER_IN_EVERY_RUN = {("activemq-stomp", "confirmed")}
LOCAL = "local[2,4]"
PATIENCE = 500  # seconds


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[object]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        session.dataSource.register(CrashingSource)
        yield session


class Stream:
    """A queue of its own, and a query over it into Parquet."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.url = url
        self.queue = Queue(f"crash.{uuid.uuid4().hex}")

    def send(self, texts) -> None:
        connection = connect(ConnectionSettings(self.url))
        unit = connection.unit(atomic=False)
        for text in texts:
            unit.send(TextMessage(text, properties={"key": text}), self.queue)
        unit.commit()
        connection.close()

    def options(self, **changes: object) -> dict[str, str]:
        options = {
            "url": self.url,
            "destination": self.queue.name,
            "stagingLocation": self.folder / "staging",
            "maxMessagesPerBatch": 10,
            "receiveIdleTimeout": 0.5,
            "dedupKey": "property:key",
        }
        return {name: str(value) for name, value in (options | changes).items()}

    def start(self, spark, step: str, victim: str):
        frame = spark.readStream.format("crashing").options(**self.options(crashStep=step, victim=victim)).load()
        sink = frame.writeStream.format("parquet").option("path", str(self.folder / "out"))
        return sink.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(availableNow=True).start()

    def start_named(self, spark, name: str, kind: str = "jms", **changes: object):
        """Start one of several queries of the queue, which goes on until it is stopped."""
        frame = spark.readStream.format(kind).options(**self.options(stagingName=name, **changes)).load()
        sink = frame.writeStream.format("parquet").option("path", str(self.folder / f"out-{name}"))
        checkpoint = str(self.folder / f"checkpoint-{name}")
        return sink.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()

    def run_apart(self, step: str, victim: str, master: str = LOCAL, *names: str, **changes: object):
        """Run the query in processes of its own; or, if there are names, as many queries at the same time."""
        options = json.dumps(self.options(crashStep=step, victim=victim, **changes))
        command = [sys.executable, "-W", "ignore", "-m", "crashing_query", str(self.folder), master, options, *names]
        return subprocess.run(command, cwd=SUPPORT, capture_output=True, text=True, timeout=500, check=False)

    def texts(self, spark, out: str = "out") -> list[str]:
        return sorted(row.text for row in spark.read.parquet(str(self.folder / out)).select("text").collect())

    @property
    def crashed(self) -> bool:
        return (self.folder / MARK).exists()

    def left(self) -> Depth | None:
        """Return what the queue still has; None if the broker does not tell."""
        connection = connect(ConnectionSettings(self.url))
        try:
            admin = connection.admin()
            return admin and admin.depth(self.queue)
        finally:
            connection.close()


def printed(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """Return the texts that each query has read."""
    read: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.fixture
def make_stream(broker_url, tmp_path):
    return lambda pair: Stream(f"embedded://{tmp_path}/broker.db" if pair == "embedded" else broker_url(pair), tmp_path)


@pytest.mark.parametrize(
    ("pair", "step"),
    [
        pytest.param(pair, step, marks=[] if (pair, step) in WORKER_IN_EVERY_RUN else [pytest.mark.torture])
        for pair in PAIRS
        for step in TASK_STEPS
    ],
)
def test_a_worker_that_dies_loses_and_doubles_nothing(spark, make_stream, pair, step):
    stream = make_stream(pair)
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, step, "worker"))
    assert stream.crashed
    assert stream.texts(spark) == TEXTS
    assert stream.left() in {None, Depth(0, 0, 0)}


@pytest.mark.parametrize(
    ("pair", "step"),
    [
        pytest.param(pair, step, marks=[] if (pair, step) in DRIVER_IN_EVERY_RUN else [pytest.mark.torture])
        for pair in PAIRS
        for step in (*TASK_STEPS, *DRIVER_STEPS)
    ],
)
def test_a_driver_that_dies_with_all_workers_loses_and_doubles_nothing(make_stream, pair, step):
    stream = make_stream(pair)
    stream.send(TEXTS)
    killed = stream.run_apart(step, "everything")
    assert stream.crashed, killed.stderr
    assert killed.returncode < 0
    again = stream.run_apart(step, "everything")
    assert again.returncode == 0, again.stderr
    assert printed(again) == [TEXTS]
    assert stream.left() in {None, Depth(0, 0, 0)}


@pytest.mark.parametrize("step", ["published", pytest.param("received", marks=pytest.mark.torture)])
@pytest.mark.parametrize("pair", ["embedded", pytest.param("artemis-amqp", marks=pytest.mark.torture)])
def test_two_queries_share_a_queue_although_a_worker_dies(spark, make_stream, pair, step):
    """The messages of the killed one are redelivered to the other query, which must recognise those that are staged."""
    stream, running = make_stream(pair), []
    stream.send(TEXTS[:30])

    def start(name, *kind, **changes):
        running.append(RunningQuery(lambda: stream.start_named(spark, name, *kind, **changes)))
        return running[-1]

    crashing = {"crashStep": step, "victim": "worker"}
    try:
        await_until(lambda: stream.crashed, [start("first", "crashing", **crashing)])
        running.pop().stop()
        start("second")
        await_until(lambda: stream.left() == Depth(0, 0, 0), running)
        start("first", "crashing", **crashing)
        stream.send(TEXTS[30:])
        await_until(lambda: stream.left() == Depth(0, 0, 0), running)
        for query in running:
            query.read_all()
    finally:
        for query in running:
            query.stop()
    assert sorted(stream.texts(spark, "out-first") + stream.texts(spark, "out-second")) == TEXTS


def await_until(is_so, queries) -> None:
    """Wait for something while queries run."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        for query in queries:
            query.check()
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("kind", "protocol"), [("artemis", "amqp"), pytest.param("activemq", "stomp", marks=pytest.mark.torture)]
)
def test_available_now_fails_if_it_loses_the_broker(spark, own_broker, tmp_path, kind, protocol):
    """It never ends well with messages left, and the next run reads them."""
    broker = own_broker(kind)
    stream = Stream(broker.url(protocol), tmp_path)
    stream.send(TEXTS)
    out = tmp_path / "out"

    def run(kill_in: int | None) -> None:
        def sink(frame, number: int) -> None:
            frame.select("text").write.mode("overwrite").parquet(str(out / f"batch={number}"))
            if number == kill_in:
                broker.kill()

        frame = spark.readStream.format("jms").options(**stream.options(driverRetryTimeout=1)).load()
        query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(query.trigger(availableNow=True).start)

    with pytest.raises(Exception, match=r"jmsjca\.errors\.\w+"):
        run(kill_in=1)
    assert len(stream.texts(spark)) == 20
    broker.start()
    run(kill_in=None)
    assert stream.texts(spark) == TEXTS


@pytest.fixture
def cluster(tmp_path) -> Iterator[str]:
    (tmp_path / "cluster").mkdir()
    with spark_cluster(tmp_path / "cluster") as url:
        yield url


@pytest.mark.torture
@pytest.mark.parametrize("pair", ["embedded", "artemis-amqp"])
def test_speculation_leaves_nothing_behind(make_stream, cluster, pair):
    """The first attempt at a partition receives messages and stands still; Spark begins another one and kills it."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    done = stream.run_apart("received", "nobody", cluster)
    assert done.returncode == 0, done.stderr
    assert stream.crashed
    assert printed(done) == [TEXTS]
    assert stream.left() in {None, Depth(0, 0, 0)}


@pytest.mark.torture
@pytest.mark.parametrize("step", ["published", "received"])
def test_an_executor_that_dies_loses_and_doubles_nothing(make_stream, cluster, step):
    stream = make_stream("embedded")
    stream.send(TEXTS)
    done = stream.run_apart(step, "executor", cluster)
    assert done.returncode == 0, done.stderr
    assert stream.crashed
    assert printed(done) == [TEXTS]
    assert stream.left() in {None, Depth(0, 0, 0)}


@pytest.mark.torture
@pytest.mark.parametrize("step", ["published", "received"])
@pytest.mark.parametrize("pair", ["embedded", "artemis-amqp"])
def test_a_machine_that_dies_loses_and_doubles_nothing_of_two_queries_of_a_queue(make_stream, cluster, pair, step):
    """It dies with a partition of the first query when the second one has a batch; the other machine does the rest."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    after = "second/out/_spark_metadata/0"  # its first batch is committed
    done = stream.run_apart(step, "machine", cluster, "first", "second", crashAfter=after)
    assert done.returncode == 0, done.stderr
    assert stream.crashed
    first, second = printed(done)
    assert first
    assert second
    assert sorted(first + second) == TEXTS
    assert stream.left() in {None, Depth(0, 0, 0)}
    assert "Removing worker" in (stream.folder / "cluster" / "master.log").read_text()
