"""A query from a queue into Parquet, in processes of its own.

``python -m tests.torture.spark_stream FOLDER URL`` goes on until it is killed. With ``--finish`` it ends when
the queue is empty, and prints how many rows there are. With ``--settle-after SECONDS`` each task waits so long between
staging its messages and settling them.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from jmsjca import spi
from jmsjca.spark import JmsDataSource, register
from jmsjca.spark.java import find_java
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, Lease, PartitionReader
from jmsjca.spark.reader import JmsStreamReader

__all__ = ["FAILED", "QUEUE"]

QUEUE = "spark.kills"
FAILED = "failed"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


class SlowPartition(PartitionReader):
    """Settles its messages late: kills hit the time in which they are staged and not settled."""

    def __init__(self, options: SourceOptions, partition: JmsPartition, seconds: float) -> None:
        super().__init__(options, partition)
        self._seconds = seconds

    def _settle(self, lease: Lease, received: Sequence[spi.Delivery]) -> None:
        threading.Event().wait(self._seconds)
        super()._settle(lease, received)


class SlowReader(JmsStreamReader):
    """Has partitions that settle late."""

    def __init__(self, options: SourceOptions, seconds: float) -> None:
        super().__init__(options)
        self._seconds = seconds

    def read(self, partition: JmsPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return SlowPartition(self._options, partition, self._seconds).read()


class SlowSource(JmsDataSource):
    """The data source "slow": "jms" with the option ``settleAfter``, in seconds."""

    def __init__(self, options: dict[str, str]) -> None:
        given = {name.lower(): text for name, text in options.items()}
        self._seconds = float(given.pop("settleafter"))
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "slow"

    def streamReader(self, schema: StructType) -> JmsStreamReader:  # noqa: N802
        del schema
        return SlowReader(SourceOptions.parse(self._given), self._seconds)


def start(spark: SparkSession, folder: Path, url: str, settle_after: float, **trigger: object) -> StreamingQuery:
    """Start the query, or let it go on."""
    options = {"url": url, "destination": QUEUE, "stagingLocation": str(folder / "staging")}
    options |= {"maxMessagesPerBatch": "200", "columns": "text"}
    kind = "slow" if settle_after else "jms"
    options |= {"settleAfter": str(settle_after)} if settle_after else {}
    frame = spark.readStream.format(kind).options(**options).load()
    sink = frame.select("text").writeStream.format("parquet").option("path", str(folder / "out"))
    return sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()  # type: ignore[arg-type]


def run(spark: SparkSession, folder: Path, url: str, settle_after: float, *, finish: bool) -> None:
    """Run the query; again if it fails, because all four attempts at a task or the driver's worker were killed."""
    trigger: dict[str, object] = {"availableNow": True} if finish else {"processingTime": "0 seconds"}
    while True:
        try:
            start(spark, folder, url, settle_after, **trigger).awaitTermination()
        except StreamingQueryException as error:
            with (folder / FAILED).open("a") as file:
                file.write(f"{str(error).splitlines()[0]}\n")
        else:
            return


def main() -> None:
    """Run the query."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--finish", action="store_true")
    parser.add_argument("--settle-after", type=float, default=0)
    given = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java())}
    builder = SparkSession.builder.master("local[2,4]").appName("spark kills")
    spark = builder.config(map={**_SETTINGS, "spark.local.dir": str(given.folder / "tmp")}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    spark.dataSource.register(SlowSource)
    run(spark, given.folder, given.url, given.settle_after, finish=given.finish)
    if given.finish:
        texts = spark.read.parquet(str(given.folder / "out"))
        print(json.dumps({"rows": texts.count(), "distinct": texts.distinct().count()}))
        spark.stop()


if __name__ == "__main__":
    main()
