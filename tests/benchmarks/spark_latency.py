"""How late a row of a slow queue is in Spark, and what a tiny batch costs beside a trivial source of Python.

``python -m tests.benchmarks.spark_latency --seconds 30 --batches 40 --json figures.json``

Latency is the time from before a message is sent until ``foreachBatch`` has its row, with the trigger ProcessingTime 0
and the default options, while messages are sent at a steady rate. A tiny batch has one row and goes to the sink "noop";
both sources take turns. The first messages and batches of each query are not counted: they warm up.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from jmsjca import ConnectionFactory, Queue
from tests.benchmarks.spark_runs import Goal, fill, session

RATES = (1, 7, 20, 200)
PERCENTILES = {"median": Goal(0.5, at_most=True, unit=" s"), "p95": Goal(1.0, at_most=True, unit=" s"), "p99": None}
FLOOR = Goal(1.2, at_most=True)
WARM_UP = 3
PATIENCE = 300.0


class TrivialReader(DataSourceStreamReader):
    """Reads one row in each batch, from nowhere."""

    def __init__(self, batches: int) -> None:
        self._batches = batches

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        del limit
        return {"n": start["n"] + 1} if start["n"] < self._batches else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        del start
        return [InputPartition(end["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield (str(partition.value),)

    def commit(self, end: dict[str, int]) -> None:
        pass


class TrivialSource(DataSource):
    """The source "trivial"; option ``batches``."""

    @classmethod
    def name(cls) -> str:
        return "trivial"

    def schema(self) -> str:
        return "text string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        del schema
        return TrivialReader(int(self.options["batches"]))


class Bench:
    """A session, a broker in a file, and queries over its queues.

    Args:
        spark: The session.
        folder: The folder of the broker and the queries.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._url = f"embedded://{folder}/broker.db"
        self._number = itertools.count()
        spark.dataSource.register(TrivialSource)

    def latencies(self, rate: float, seconds: float) -> list[float]:
        """Return the latency of each message in seconds, at so many messages a second."""
        queue, seen = Queue(f"latency.{next(self._number)}"), dict[int, float]()

        def note(batch: DataFrame, _: int) -> None:
            rows = batch.collect()
            seen.update({row.number: time.perf_counter() for row in rows})

        frame = self._jms(queue).selectExpr("CAST(text AS INT) AS number")
        query = frame.writeStream.foreachBatch(note).trigger(processingTime="0 seconds")
        running = query.option("checkpointLocation", self._checkpoint()).start()
        try:
            sent = self._send(queue, rate, int(rate * seconds) + WARM_UP, seen)
            self._await(running, seen, len(sent))
        finally:
            running.stop()
        return [seen[number] - at for number, at in sent.items()][WARM_UP:]

    def tiny_batches(self, source: str, batches: int) -> float:
        """Return the median time of a batch of one row, in seconds."""
        queue = Queue(f"tiny.{next(self._number)}")
        if source == "jms":
            fill(self._url, queue, batches)
            frame = self._jms(queue, partitions=1, maxMessagesPerBatch=1)
        else:
            frame = self._spark.readStream.format("trivial").option("batches", batches).load()
        sink = frame.writeStream.format("noop").trigger(processingTime="0 seconds")
        query = sink.option("checkpointLocation", self._checkpoint()).start()
        try:
            query.processAllAvailable()
            took = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
        finally:
            query.stop()
        if len(took) != batches:
            raise SystemExit(f"{source}: {len(took)} of {batches} batches had a row; the figures mean nothing.")
        return float(statistics.median(took[WARM_UP:])) / 1000

    def _jms(self, queue: Queue, **options: object) -> DataFrame:
        staging = self._folder / f"staging-{queue.name}"
        given = {"url": self._url, "destination": queue.name, "stagingLocation": staging, **options}
        return self._spark.readStream.format("jms").options(**{name: str(v) for name, v in given.items()}).load()

    def _checkpoint(self) -> str:
        return str(self._folder / f"checkpoint-{next(self._number)}")

    def _send(self, queue: Queue, rate: float, count: int, seen: Mapping[int, float]) -> dict[int, float]:
        """Send numbered messages at a steady rate once the first ones are read, and return when each was sent."""
        sent: dict[int, float] = {}
        with ConnectionFactory(self._url).create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(queue)
            begin = time.perf_counter()
            for number in range(count):
                if number == WARM_UP:
                    _wait(lambda: len(seen) == WARM_UP)
                    begin = time.perf_counter()
                time.sleep(max(begin + (number - WARM_UP) / rate - time.perf_counter(), 0))
                sent[number] = time.perf_counter()
                producer.send(session.create_text_message(str(number)))
        return sent

    def _await(self, query: StreamingQuery, seen: Mapping[int, float], count: int) -> None:
        _wait(lambda: len(seen) >= count or not query.isActive)
        if len(seen) != count:
            raise SystemExit(f"{len(seen)} of {count} messages were read; the figures mean nothing.")


def _wait(done: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("The messages were not read; the figures mean nothing.")
        time.sleep(0.02)


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Return the median and the percentiles 95 and 99."""
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {"median": cuts[49], "p95": cuts[94], "p99": cuts[98]}


def measure(seconds: float, batches: int, rounds: int) -> dict[str, Any]:
    """Return the percentiles for each rate, and the median time of a tiny batch of each source, in seconds."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as name:
        spark = session(Path(name))
        try:
            bench = Bench(spark, Path(name))
            tiny: dict[str, list[float]] = {"jms": [], "trivial": []}
            for _ in range(rounds):
                for source, times in tiny.items():
                    times.append(bench.tiny_batches(source, batches + WARM_UP))
            rates = {str(rate): percentiles(bench.latencies(rate, seconds)) for rate in RATES}
        finally:
            spark.stop()
    return {"latency": rates, "tiny": {source: statistics.median(times) for source, times in tiny.items()}}


def report(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table, each with its goal."""
    for rate, found in figures["latency"].items():
        for name, goal in PERCENTILES.items():
            told = "" if goal is None else goal.told(found[name])
            yield f"{rate + ' messages/s':<16}{name:<8}{found[name]:8.2f} s  {told}"
    jms, trivial = figures["tiny"]["jms"], figures["tiny"]["trivial"]
    yield f"{'tiny batch':<16}{'trivial':<8}{trivial:8.3f} s"
    yield f"{'tiny batch':<16}{'jms':<8}{jms:8.3f} s  {jms / trivial:.2f} of trivial, {FLOOR.told(jms / trivial)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30, help="how long messages are sent at each rate")
    parser.add_argument("--batches", type=int, default=40, help="tiny batches in each round")
    parser.add_argument("--rounds", type=int, default=3, help="in which the sources of tiny batches take turns")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.seconds, arguments.batches, arguments.rounds)
    print(f"Messages sent for {arguments.seconds:g} s at each rate; {arguments.rounds} rounds of tiny batches")
    print("\n".join(report(figures)))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
