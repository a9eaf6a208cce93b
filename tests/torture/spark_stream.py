"""A query from a queue into Parquet, in processes of its own.

``python -m tests.torture.spark_stream FOLDER URL SOURCE`` goes on until it is killed. With ``--finish`` it ends when
the queue is empty, and prints how many rows there are.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from jmsjca.spark.java import find_java

__all__ = ["ACKNOWLEDGING", "FAILED", "JMS", "QUEUE", "SOURCES"]

QUEUE = "spark.kills"
FAILED = "failed"
JMS, ACKNOWLEDGING = "jms", "acknowledging"
SOURCES = (JMS, ACKNOWLEDGING)
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


def start(spark: SparkSession, folder: Path, url: str, source: str, **trigger: object) -> StreamingQuery:
    """Start the query, or let it go on."""
    options = {"url": url, "destination": QUEUE}
    if source == JMS:
        options |= {"stagingLocation": str(folder / "staging"), "maxMessagesPerBatch": "200", "columns": "text"}
    frame = spark.readStream.format(source).options(**options).load()
    sink = frame.select("text").writeStream.format("parquet").option("path", str(folder / "out"))
    return sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()  # type: ignore[arg-type]


def run(spark: SparkSession, folder: Path, url: str, source: str, *, finish: bool) -> None:
    """Run the query; again if it fails, because all four attempts at a task or the driver's worker were killed."""
    trigger: dict[str, object] = {"availableNow": True} if finish else {"processingTime": "0 seconds"}
    while True:
        try:
            start(spark, folder, url, source, **trigger).awaitTermination()
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
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--finish", action="store_true")
    given = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java())}
    builder = SparkSession.builder.master("local[2,4]").appName("spark kills")
    spark = builder.config(map={**_SETTINGS, "spark.local.dir": str(given.folder / "tmp")}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    _register(spark, given.source)
    run(spark, given.folder, given.url, given.source, finish=given.finish)
    if given.finish:
        texts = spark.read.parquet(str(given.folder / "out"))
        print(json.dumps({"rows": texts.count(), "distinct": texts.distinct().count()}))
        spark.stop()


def _register(spark: SparkSession, source: str) -> None:
    if source == ACKNOWLEDGING:
        from tests.torture.acknowledging_source import AcknowledgingSource  # only then

        spark.dataSource.register(AcknowledgingSource)
    else:
        from jmsjca.spark import register

        register(spark)


if __name__ == "__main__":
    main()
