"""A query from a queue into Parquet, in processes of its own.

``python -m tests.torture.spark_stream FOLDER URL`` goes on until it is killed. With ``--finish`` it ends when
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

from jmsjca.spark import register
from jmsjca.spark.java import find_java

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


def start(spark: SparkSession, folder: Path, url: str, **trigger: object) -> StreamingQuery:
    """Start the query, or let it go on."""
    options = {"url": url, "destination": QUEUE, "stagingLocation": str(folder / "staging")}
    options |= {"maxMessagesPerBatch": "200", "columns": "text"}
    frame = spark.readStream.format("jms").options(**options).load()
    sink = frame.select("text").writeStream.format("parquet").option("path", str(folder / "out"))
    return sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()  # type: ignore[arg-type]


def run(spark: SparkSession, folder: Path, url: str, *, finish: bool) -> None:
    """Run the query; again if it fails, because all four attempts at a task or the driver's worker were killed."""
    trigger: dict[str, object] = {"availableNow": True} if finish else {"processingTime": "0 seconds"}
    while True:
        try:
            start(spark, folder, url, **trigger).awaitTermination()
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
    given = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java())}
    builder = SparkSession.builder.master("local[2,4]").appName("spark kills")
    spark = builder.config(map={**_SETTINGS, "spark.local.dir": str(given.folder / "tmp")}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    run(spark, given.folder, given.url, finish=given.finish)
    if given.finish:
        texts = spark.read.parquet(str(given.folder / "out"))
        print(json.dumps({"rows": texts.count(), "distinct": texts.distinct().count()}))
        spark.stop()


if __name__ == "__main__":
    main()
