"""How fast Spark reads and writes a queue, beside plain consumers and producers and Parquet files, in one run.

``python -m tests.benchmarks.spark_table [URL] --rows 50000 --rounds 3 --json figures.json``

``--only producer df.write`` runs some of the contenders.

The contenders take turns in each round. Messages have 1 KiB; plain consumers commit units of 100, plain producers
units of 1,000. A stream has the trigger AvailableNow and batches of 10,000; its time is that of its batches, without
the start of the query. "Of plain" is the ratio to the consumer of bodies, for writers to the producer.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from jmsjca import Queue
from tests.benchmarks.spark_runs import BODY, Goal, consume, empty, fill, read_body, read_headers, session

QUEUE = Queue("jmsjca.bench")
PER_BATCH = 10_000
BODY_ONLY, HEADERS, PRODUCER = "consumer, body only", "consumer, with headers", "producer"
NOOP_1, NOOP_2 = "queue -> noop, 1 partition", "queue -> noop, 2 partitions"
PARQUET_1, PARQUET_2 = "queue -> Parquet, 1 partition", "queue -> Parquet, 2 partitions"
EARLY_1, EARLY_2 = f"{PARQUET_1}, prefetch", f"{PARQUET_2}, prefetch"
FILES, WRITE_1, WRITE_2 = "Parquet -> Parquet", "df.write, 1 partition", "df.write, 2 partitions"
WRITE_ONCE = "df.write exactly once, 1 partition"


WRITERS = (PRODUCER, WRITE_1, WRITE_2, WRITE_ONCE)


class Target(NamedTuple):
    """The ratio that a contender should have to another one.

    Args:
        reference: The other contender.
        goal: The goal.
    """

    reference: str
    goal: Goal


TARGETS = {
    NOOP_1: Target(HEADERS, Goal(1.0)),
    NOOP_2: Target(NOOP_1, Goal(1.5)),
    PARQUET_1: Target(HEADERS, Goal(0.8)),
    PARQUET_2: Target(PARQUET_1, Goal(1.5)),
    WRITE_1: Target(PRODUCER, Goal(0.8)),
    WRITE_ONCE: Target(PRODUCER, Goal(0.8)),
}


class Bench:
    """A session, a queue and folders.

    Args:
        spark: The session.
        folder: Where everything is.
        url: The broker; None for an embedded one in a file.
        rows: How many rows each contender reads or writes.
    """

    def __init__(self, spark: SparkSession, folder: Path, url: str | None, rows: int) -> None:
        self._spark = spark
        self._folder = folder
        self._url = url or f"embedded://{folder}/broker.db"
        self._rows = rows
        self._runs = 0
        self._prepare_files()
        self.contenders: dict[str, Callable[[], float]] = {
            BODY_ONLY: lambda: self._consumer(read_body),
            HEADERS: lambda: self._consumer(read_headers),
            NOOP_1: lambda: self._stream("noop", partitions=1),
            NOOP_2: lambda: self._stream("noop", partitions=2),
            PARQUET_1: lambda: self._stream("parquet", partitions=1),
            PARQUET_2: lambda: self._stream("parquet", partitions=2),
            EARLY_1: lambda: self._stream("parquet", partitions=1, prefetchEpochs=1),
            EARLY_2: lambda: self._stream("parquet", partitions=2, prefetchEpochs=1),
            FILES: self._files,
            PRODUCER: self._producer,
            WRITE_1: lambda: self._write(1),
            WRITE_2: lambda: self._write(2),
            WRITE_ONCE: self._write_once,
        }

    def seconds(self, name: str) -> float:
        """Fill or empty the queue, and time one contender."""
        empty(self._url, QUEUE)
        if name not in (FILES, *WRITERS):
            fill(self._url, QUEUE, self._rows)
        return self.contenders[name]()

    def _prepare_files(self) -> None:
        fill(self._url, QUEUE, self._rows)
        table = self._spark.read.format("jms").options(url=self._url, destination=QUEUE.name).load()
        files = -(-self._rows // PER_BATCH)
        table.repartition(files).write.parquet(str(self._folder / "files"))

    def _consumer(self, use: Callable[..., object]) -> float:
        begin = time.perf_counter()
        read = consume(self._url, QUEUE, self._rows, use)
        seconds = time.perf_counter() - begin
        self._check(read)
        return seconds

    def _producer(self) -> float:
        begin = time.perf_counter()
        fill(self._url, QUEUE, self._rows)
        return time.perf_counter() - begin

    def _stream(self, form: str, **options: int) -> float:
        given = {"url": self._url, "destination": QUEUE.name, "stagingLocation": self._new_folder(), **options}
        given["maxMessagesPerBatch"] = PER_BATCH
        reader = self._spark.readStream.format("jms").options(**{name: str(v) for name, v in given.items()})
        return self._run(reader.load(), form)

    def _files(self) -> float:
        schema = self._spark.read.parquet(str(self._folder / "files")).schema
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return self._run(reader.parquet(str(self._folder / "files")), "parquet")

    def _run(self, frame: DataFrame, form: str) -> float:
        """Run a stream to its end, and return the time of its batches."""
        sink = frame.writeStream.format(form).option("checkpointLocation", self._new_folder())
        if form == "parquet":
            sink = sink.option("path", self._new_folder())
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        self._check(sum(batch["numInputRows"] for batch in batches))
        return float(sum(batch["durationMs"]["triggerExecution"] for batch in batches)) / 1000

    def _write(self, partitions: int, **options: str) -> float:
        table = self._spark.range(self._rows).coalesce(partitions)
        rows = table.select(
            f.lit(BODY).alias("text"),
            f.struct(f.lit("EU").alias("region"), f.col("id").alias("number")).alias("properties"),
        )
        begin = time.perf_counter()
        rows.write.format("jms").options(url=self._url, destination=QUEUE.name, **options).mode("append").save()
        seconds = time.perf_counter() - begin
        self._check(consume(self._url, QUEUE, self._rows, read_body))
        return seconds

    def _write_once(self) -> float:
        self._runs += 1  # batches of one query, as the first one waits for the token of the query
        return self._write(1, guarantee="exactly-once", queryName="bench", batchId=str(self._runs))

    def _check(self, read: int) -> None:
        if read != self._rows:
            raise SystemExit(f"{read} of {self._rows} rows came; the figures mean nothing.")

    def _new_folder(self) -> str:
        self._runs += 1
        return str(self._folder / f"run-{self._runs}")


def measure(rows: int, rounds: int, url: str | None, only: Collection[str] = ()) -> dict[str, float]:
    """Return the median rows per second of each contender; a first round that warms up is not counted.

    Args:
        rows: How many rows each contender reads or writes.
        rounds: How many rounds are counted.
        url: The broker; None for an embedded one in a file.
        only: The contenders that run, by the beginning of their names; empty for all.
    """
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as name:
        spark = session(Path(name))
        try:
            bench = Bench(spark, Path(name), url, rows)
            chosen = [name for name in bench.contenders if not only or name.startswith(tuple(only))]
            seconds: dict[str, list[float]] = {name: [] for name in chosen}
            for number in range(rounds + 1):
                for contender, taken in seconds.items():
                    one = bench.seconds(contender)
                    if number:
                        taken.append(one)
        finally:
            spark.stop()
    return {name: rows / statistics.median(taken) for name, taken in seconds.items()}


def report(figures: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of the table, each with its goal if it has one."""
    for name, rate in figures.items():
        plain = PRODUCER if name in WRITERS else BODY_ONLY
        line = f"{name:<40}{rate:>10,.0f} rows/s"
        if plain in figures:
            line += f" {rate / figures[plain]:6.2f} of plain"
        if name in TARGETS and TARGETS[name].reference in figures:
            reference, goal = TARGETS[name]
            ratio = rate / figures[reference]
            line += f"  {ratio:.2f} of '{reference}', {goal.told(ratio)}"
        yield line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?", help="a broker on a network; default: an embedded broker in a file")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=(), help="contenders, by the beginning of their names")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.rows, arguments.rounds, arguments.url, arguments.only)
    print(f"{arguments.rows} messages of 1 KiB, batches of {PER_BATCH}, medians of {arguments.rounds} rounds")
    print("\n".join(report(figures)))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
