"""A query over "crashing" into Parquet, in a process of its own: ``python -m crashing_query FOLDER MASTER OPTIONS``.

``OPTIONS`` are those of the source, as JSON. The query has the trigger AvailableNow. With ``"sink": "batches"`` a
function of the driver writes each batch under its number, and then passes the step "sink written". Further arguments
are names: then there is a query for each of them at the same time, in a folder of its own; only the first may crash.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crash import DRIVER, Crash
from crashing_source import CRASH_OPTIONS, SINK_STEP, CrashingSource
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from spark_session import spark_session

EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
# Of two attempts at a partition, on two machines, the second begins soon.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1",
}


def run_to_end(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Run a query to its end, and return it.

    It is started again if Spark gave up waiting for the start of a process, as on a busy machine.
    """
    while True:
        try:
            query = start()
            query.awaitTermination()
        except StreamingQueryException as error:
            _check(error)
        else:
            return query


class RunningQuery:
    """A query that goes on until it is stopped; it is started again if Spark gave up waiting for a process."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._query = start()

    def check(self) -> None:
        """Raise the error with which the query has ended."""
        if error := self._query.exception():
            _check(error)
            self._query = self._start()

    def read_all(self) -> None:
        """Wait until the query has read what is there."""
        while True:
            try:
                self._query.processAllAvailable()
            except StreamingQueryException:
                self.check()
            else:
                return

    def await_end(self) -> None:
        """Wait for the end of a query that ends by itself, and raise the error with which it failed."""
        while True:
            try:
                self._query.awaitTermination()
            except StreamingQueryException:
                self.check()
            else:
                return

    def stop(self) -> None:
        self._query.stop()


def _check(error: StreamingQueryException) -> None:
    if "failed to connect back" not in str(error):
        raise error


def main(folder: Path, master: str, options: dict[str, str], names: Sequence[str]) -> None:
    """Run the queries to their ends, unless they are killed, and print the texts of each."""
    (folder / DRIVER).write_text(str(os.getpid()))
    settings = {} if master.startswith("local") else EXECUTORS
    if settings and options["victim"] != "machine":  # whose attempt waits, and must not be ended by a second one
        settings |= SPECULATION
    sink = None
    if options.pop("sink", "parquet") == "batches":
        sink = write_batches(folder / "out", Crash(options["crashStep"], options["victim"], folder))
    quiet = {name: text for name, text in options.items() if name not in CRASH_OPTIONS}

    with spark_session(folder, master, settings) as spark, ThreadPoolExecutor() as pool:
        spark.dataSource.register(CrashingSource)
        queries = []
        for name in names:
            kind, given = ("jms", quiet) if queries else ("crashing", options)
            queries.append(pool.submit(_run, spark, folder / name, kind, given | {"stagingName": name}, sink))
        print(json.dumps([query.result() for query in queries]))


def _run(
    spark: SparkSession, folder: Path, kind: str, options: dict[str, str], sink: Callable[[DataFrame, int], None] | None
) -> list[str]:
    """Run a query to its end, and return its texts."""
    out = str(folder / "out")
    query = spark.readStream.format(kind).options(**options).load().writeStream
    query = query.foreachBatch(sink) if sink else query.format("parquet").option("path", out)
    run_to_end(query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start)
    return sorted(row.text for row in spark.read.parquet(out).select("text").collect())


def write_batches(out: Path, crash: Crash) -> Callable[[DataFrame, int], None]:
    """Return a sink that writes each batch under its number, and may crash before Spark notes the second batch."""

    def write(batch: DataFrame, number: int) -> None:
        batch.select("text").write.mode("overwrite").parquet(str(out / f"batch={number}"))
        if number == 1:
            crash.pass_step(SINK_STEP)

    return write


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:] or [""])
