"""A query over "crashing" into Parquet, in a process of its own: ``python -m crashing_query FOLDER MASTER OPTIONS``.

``OPTIONS`` are those of the source, as JSON. The query has the trigger AvailableNow.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from crashing_source import DRIVER, CrashingSource
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery
from spark_session import spark_session

# Of two attempts at a partition, on two machines, the second begins soon.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
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

    def stop(self) -> None:
        self._query.stop()


def _check(error: StreamingQueryException) -> None:
    if "failed to connect back" not in str(error):
        raise error


def main(folder: Path, master: str, options: dict[str, str]) -> None:
    """Run the query to its end, unless it is killed."""
    (folder / DRIVER).write_text(str(os.getpid()))
    settings = {} if master.startswith("local") else SPECULATION
    with spark_session(folder, master, settings) as spark:
        spark.dataSource.register(CrashingSource)
        stream = spark.readStream.format("crashing").options(**options).load()
        sink = stream.writeStream.format("parquet").option("path", str(folder / "out"))
        sink = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        run_to_end(sink.start)
        rows = spark.read.parquet(str(folder / "out")).select("text").collect()
        print(json.dumps(sorted(row.text for row in rows)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
