"""Streams whose queries crash: their queues, their queries, and the fixtures of the tests."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from crash import PATIENCE, Crash
from crashing_query import RunningQuery
from crashing_source import EPOCH, CrashingSource
from spark_cluster import spark_cluster
from spark_session import SUPPORT, spark_session

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Depth

__all__ = ["EMPTY", "PAIRS", "TEXTS", "Run", "Stream", "await_until", "cluster", "make_stream", "spark"]

TEXTS = [f"m{n:02}" for n in range(40)]
PAIRS = ["embedded", "artemis-amqp", "activemq-stomp"]
LOCAL = "local[2,4]"
EMPTY = {None, Depth(0, 0, 0)}  # None from a broker that does not report it


class Run:
    """A query in processes of its own.

    Args:
        folder: Where the query has its files.
        module: The module that runs the query.
        arguments: Its arguments.
    """

    def __init__(self, folder: Path, module: str, *arguments: str) -> None:
        self._log = folder / f"log-{uuid.uuid4().hex}"
        command = [sys.executable, "-W", "ignore", "-m", module, str(folder), *arguments]
        # Into files: the pipes of a process would stay open as long as one of its workers lives.
        with self._log.open("wb") as log, self._log.with_suffix(".error").open("wb") as error:
            self._process = psutil.Popen(command, cwd=SUPPORT, stdin=subprocess.DEVNULL, stdout=log, stderr=error)

    def wait(self) -> "Run":
        """Wait for the end of the query."""
        self._process.wait(PATIENCE)
        return self

    @property
    def code(self) -> int | None:
        """The exit code; None while the query runs."""
        return self._process.poll()

    @property
    def texts(self) -> list[str]:
        """What is in the output at the end of the query."""
        (texts,) = self.texts_of_each
        return texts

    @property
    def texts_of_each(self) -> list[list[str]]:
        """The same for each of several queries."""
        return json.loads(self._log.read_text().splitlines()[-1])

    @property
    def said(self) -> str:
        """The error output."""
        return self._log.with_suffix(".error").read_text(errors="replace")

    def end(self) -> None:
        """Kill what still runs."""
        if self._process.poll() is None:
            for each in (*self._process.children(recursive=True), self._process):
                each.kill()
            self._process.wait()


def await_until(is_so: Callable[[], object], *queries: RunningQuery) -> None:
    """Wait for something, while queries run."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        for query in queries:
            query.check()
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.05)


def process_of(mark: Path) -> psutil.Process | None:
    """Return the process that made a mark; None if it has ended."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(mark.read_text()))
        if process.create_time() <= mark.stat().st_mtime:  # a later process may have its number
            return process
    return None


class Stream:
    """A queue of its own, and queries over it into Parquet."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.url = url
        self.queue = Queue(f"crash.{uuid.uuid4().hex}")
        self._runs: list[Run] = []

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

    def start(self, spark, step: str, victim: str, **changes: object):
        frame = spark.readStream.format("crashing").options(**self._crashing(step, victim, **changes)).load()
        sink = frame.writeStream.format("parquet").option("path", str(self.folder / "out"))
        return sink.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(availableNow=True).start()

    def start_exactly_once(self, spark, step: str, target: Queue):
        """Start a query into a queue; the process that commits its batches may be killed at a step."""
        frame = spark.readStream.format("jms").options(**self.options()).load().select("text")
        sink = frame.writeStream.format("crashing").queryName(target.name).option("guarantee", "exactly-once")
        sink = sink.options(url=self.url, destination=target.name, crashFolder=str(self.folder))
        sink = sink.options(crashStep=step, victim="worker").option(
            "checkpointLocation", str(self.folder / "checkpoint")
        )
        return sink.trigger(availableNow=True).start()

    def start_named(self, spark, name: str, kind: str = "jms", **changes: object):
        """Start one of several queries of the queue, which goes on until it is stopped."""
        frame = spark.readStream.format(kind).options(**self.options(stagingName=name, **changes)).load()
        sink = frame.writeStream.format("parquet").option("path", str(self.folder / f"out-{name}"))
        checkpoint = str(self.folder / f"checkpoint-{name}")
        return sink.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()

    def start_apart(self, step: str, victim: str, master: str = LOCAL, *names: str, **changes: object) -> Run:
        """Start the query in processes of its own; or, if there are names, as many queries at the same time."""
        options = json.dumps(self._crashing(step, victim, **changes))
        return self.start_module("crashing_query", master, options, *names)

    def start_module(self, module: str, *arguments: str) -> Run:
        """Start a module that runs a query in processes of its own."""
        self._runs.append(Run(self.folder, module, *arguments))
        return self._runs[-1]

    def run_apart(self, step: str, victim: str, master: str = LOCAL, *names: str, **changes: object) -> Run:
        """Run the query in processes of its own, to its end."""
        return self.start_apart(step, victim, master, *names, **changes).wait()

    def has_rows(self, out: str = "out") -> bool:
        """Return True if a batch is written."""
        return (self.folder / out / "_spark_metadata" / "0").exists()

    def has_read(self, spark, number: int, out: str = "out") -> bool:
        """Return True if so many rows are written."""
        return self.has_rows(out) and len(self.texts(spark, out)) >= number

    def texts(self, spark, out: str = "out") -> list[str]:
        return sorted(row.text for row in spark.read.parquet(str(self.folder / out)).select("text").collect())

    def take(self, queue: Queue) -> list[str]:
        """Receive what is in a queue."""
        with ConnectionFactory(self.url).create_connection() as connection, connection.create_session() as session:
            consumer = session.create_consumer(queue)
            return [message.body for message in iter(lambda: consumer.receive(2), None)]

    def outlived(self) -> list[str]:
        """Return what should be removed at the end: temporary files, and the epochs up to that of the crash."""
        epochs = {f"e-{number:010}" for number in range(1, EPOCH + 1)}
        found = (self.folder / "staging").rglob("*")
        return sorted(str(path) for path in found if path.suffix == ".tmp" or path.name in epochs)

    @property
    def crashed(self) -> bool:
        return any(self.folder.glob("crashed at *"))

    def crashes(self, step: str) -> list[psutil.Process]:
        """The processes that stand still at a step, or went on from there."""
        return [process for mark in self.at(step).marks if (process := process_of(mark))]

    def at(self, step: str) -> Crash:
        """The crash at a step, as its processes see it."""
        return Crash(step, "nobody", self.folder)

    def left(self) -> Depth | None:
        """Return what the queue still has; None if the broker does not report it."""
        connection = connect(ConnectionSettings(self.url))
        try:
            admin = connection.admin()
            return admin and admin.depth(self.queue)
        finally:
            connection.close()

    def consumers(self) -> int | None:
        """Return the number of consumers of the queue."""
        connection = connect(ConnectionSettings(self.url))
        try:
            return connection.admin().activity(self.queue).consumers
        finally:
            connection.close()

    def end(self) -> None:
        """Kill what still runs."""
        for run in self._runs:
            run.end()
        for mark in self.folder.glob("crashed at *") if self._runs else ():
            if process := process_of(mark):
                process.kill()

    def _crashing(self, step: str, victim: str, **changes: object) -> dict[str, str]:
        return self.options(crashStep=step, victim=victim, **changes)


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[object]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        session.dataSource.register(CrashingSource)
        yield session


@pytest.fixture
def make_stream(broker_url, tmp_path) -> Iterator[object]:
    made: list[Stream] = []

    def make(pair: str) -> Stream:
        url = f"embedded://{tmp_path}/broker.db" if pair == "embedded" else broker_url(pair)
        made.append(Stream(url, tmp_path))
        return made[-1]

    yield make
    for stream in made:
        stream.end()


@pytest.fixture
def cluster(tmp_path) -> Iterator[str]:
    (tmp_path / "cluster").mkdir()
    with spark_cluster(tmp_path / "cluster") as url:
        yield url
