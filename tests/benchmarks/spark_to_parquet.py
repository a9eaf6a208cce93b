"""How fast Spark empties a queue into Parquet, beside Spark reading the same rows from files, in one run.

``python -m tests.benchmarks.spark_to_parquet --rows 50000 --rounds 3 --json figures.json``

All three contenders are streams with the trigger AvailableNow and write the same columns; they take turns within every
round. Reading a queue does more than reading a file: it stages durably what it takes, and settles it.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jmsjca import ConnectionFactory, Queue
from jmsjca.spark import SCHEMA
from tests.benchmarks.spark_runs import session

PER_BATCH = 10_000


class Bench:
    """The rows, in a queue and in files, and a folder for what is written."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark = spark
        self.folder = folder
        self.rows = rows
        self.url = f"embedded://{folder}/broker.db"
        self._send()
        table = spark.read.format("jms").options(url=self.url, destination="bench").load()
        files = -(-rows // PER_BATCH)
        table.repartition(files).write.parquet(str(folder / "parquet"))
        table.repartition(files).write.json(str(folder / "json"))
        self._empty()
        self.contenders: dict[str, Callable[[], DataFrame]] = {
            "queue": self._queue,
            "Parquet files": lambda: self._files("parquet"),
            "JSON files": lambda: self._files("json"),
        }

    def seconds(self, name: str) -> float:
        """Time one contender, from start to the end of the stream."""
        if name == "queue":
            self._send()
        for left in ("out", "checkpoint", "staging"):
            shutil.rmtree(self.folder / left, ignore_errors=True)
        begin = time.perf_counter()
        query = (
            self.contenders[name]()
            .writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        seconds = time.perf_counter() - begin
        written = self.spark.read.parquet(str(self.folder / "out")).count()
        if written != self.rows:
            raise SystemExit(f"{name}: {written} of {self.rows} rows arrived; the figures mean nothing.")
        return seconds

    def _empty(self) -> None:
        with ConnectionFactory(self.url).create_connection() as connection:
            assert connection.admin is not None
            connection.admin.purge(Queue("bench"))

    def _send(self) -> None:
        with ConnectionFactory(self.url).create_connection() as connection:
            session = connection.create_session(transacted=True)
            producer = session.create_producer(Queue("bench"))
            for number in range(self.rows):
                properties = {"region": "EU", "number": number}
                producer.send(session.create_text_message("x" * 200, properties=properties))
                if number % 1000 == 0:
                    session.commit()
            session.commit()

    def _queue(self) -> DataFrame:
        options = {"url": self.url, "destination": "bench", "stagingLocation": str(self.folder / "staging")}
        return self.spark.readStream.format("jms").options(**options, maxMessagesPerBatch=PER_BATCH).load()

    def _files(self, form: str) -> DataFrame:
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return stream.format(form).load(str(self.folder / form))


def measure(rows: int, rounds: int) -> dict[str, float]:
    """The median rows per second of each contender; a first round that warms up is not counted."""
    folder = Path(tempfile.mkdtemp(prefix="jmsjca-bench-"))
    spark = session(folder)
    try:
        bench = Bench(spark, folder, rows)
        seconds: dict[str, list[float]] = {name: [] for name in bench.contenders}
        for number in range(rounds + 1):
            for name, taken in seconds.items():
                one = bench.seconds(name)
                if number:
                    taken.append(one)
        return {name: rows / statistics.median(taken) for name, taken in seconds.items()}
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.rows, arguments.rounds)
    print(f"{arguments.rows} rows into Parquet, batches of {PER_BATCH}, medians of {arguments.rounds} rounds")
    for name, rate in figures.items():
        print(f"{name:<16}{rate:>12,.0f} rows/s {rate / figures['Parquet files']:8.2f} of Parquet files")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
