"""The Spark streaming query over the queue, in a process of its own: ``python -m jmsjca.management.demo.query FILE``.

Each micro-batch writes what it did under its own number, so that a batch that Spark repeats after a crash replaces what
it wrote before; what it sends again carries the same ids, by which the broker recognises it.
"""

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource

from jmsjca.links import ConnectionSettings, connect
from jmsjca.management.demo.settings import DEAD_LETTERS, FLIGHTS, RESULTS, DemoSettings
from jmsjca.spark import JmsDataSource

__all__ = ["run_query"]

_EVENT = "id string, date string, delay int, distance int, origin string, destination string, broken string"
_READ = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "broken"}


class _Batches:
    """What is done with each micro-batch."""

    def __init__(self, settings: DemoSettings, spark: SparkSession) -> None:
        self._settings = settings
        self._spark = spark
        self._airports = _airports(spark, settings.airports)

    def process(self, batch: DataFrame, number: int) -> None:
        """Write one batch: to Parquet, to the topic, to the dead-letter queue."""
        begin = time.time()
        parsed = batch.withColumn("event", f.from_json("text", _EVENT, _READ)).withColumn("reason", _reason()).persist()
        events = self._settings.events / f"batch={number}"
        flights = _flights(parsed).join(self._airports, "origin", "left")
        flights.write.mode("overwrite").parquet(str(events))
        # From what was written, so that the results say what Parquet says.
        results = _results(self._spark.read.schema(flights.schema).parquet(str(events)))
        results.drop("ids").write.mode("overwrite").parquet(str(self._settings.delays / f"batch={number}"))
        self._send(_as_messages(results, f"{self._settings.run}/{number}"), RESULTS.name, "topic")
        self._send(_as_dead_letters(parsed, self._settings.run), DEAD_LETTERS.name, "queue")
        rows = parsed.count()
        parsed.unpersist()
        with self._settings.batches.open("a") as file:
            file.write(json.dumps({"batch": number, "rows": rows, "begin": begin, "end": time.time()}) + "\n")

    def _send(self, messages: DataFrame, destination: str, kind: str) -> None:
        options = {"url": self._settings.url, "destination": destination, "destinationType": kind}
        messages.write.format("jms").options(**options).mode("append").save()


def run_query(settings: DemoSettings, source: type[DataSource] = JmsDataSource) -> None:
    """Run the query until everything that was sent is processed.

    Args:
        settings: The run.
        source: The data source to register as "jms".
    """
    spark = _session()
    spark.dataSource.register(source)
    batches = _Batches(settings, spark)
    query = (
        spark.readStream.format("jms")
        .options(url=settings.url, destination=FLIGHTS.name, stagingLocation=str(settings.path("staging")))
        .option("maxMessagesPerBatch", settings.batch)
        .load()
        .writeStream.foreachBatch(batches.process)
        .option("checkpointLocation", str(settings.checkpoint))
        .start()
    )
    _await_end(settings, query)
    query.stop()
    spark.stop()


def _await_end(settings: DemoSettings, query: Any) -> None:
    """Return when all is sent, the queue is empty and the last batch is committed."""
    parent = os.getppid()
    connection = connect(ConnectionSettings(settings.url))
    admin = connection.admin()
    while not (settings.all_sent.exists() and admin is not None and admin.depth(FLIGHTS).total == 0):
        if query.awaitTermination(timeout=1) or os.getppid() != parent:
            raise RuntimeError("The query, or the run that it belongs to, ended before its work did.")
    query.processAllAvailable()
    connection.close()


def _session() -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("jmsjca demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _airports(spark: SparkSession, path: str | None) -> DataFrame:
    if path is None:
        return spark.sql("SELECT '' AS origin, '' AS airport_name, '' AS city WHERE false")
    airports = spark.read.option("header", "true").csv(path)
    return f.broadcast(airports.select(f.col("iata").alias("origin"), f.col("name").alias("airport_name"), "city"))


def _reason() -> Column:
    """Why a message is no flight; null if it is one."""
    return (
        f.when(f.col("error").isNotNull(), f.col("error"))
        .when(f.col("event.broken").isNotNull(), f.lit("The body is not the JSON of a flight."))
        .when(f.col("event.id").isNull() | f.col("event.delay").isNull(), f.lit("The flight lacks id or delay."))
    )


def _flights(parsed: DataFrame) -> DataFrame:
    return parsed.where("reason is null").select("event.*").drop("broken")


def _results(flights: DataFrame) -> DataFrame:
    return flights.groupBy(f.col("origin").alias("airport")).agg(
        f.first("airport_name").alias("name"),
        f.count("*").alias("flights"),
        f.sum("delay").alias("delay"),
        f.collect_list("id").alias("ids"),
    )


def _as_messages(results: DataFrame, batch: str) -> DataFrame:
    return results.select(
        f.to_json(f.struct("airport", "name", "flights", "delay", "ids")).alias("text"),
        f.struct("airport", "flights", "delay").alias("properties"),
        f.concat_ws("/", f.lit(batch), "airport").alias("duplicate_id"),
    )


def _as_dead_letters(parsed: DataFrame, run: str) -> DataFrame:
    event_id = f.col("properties")["event_id"]
    return parsed.where("reason is not null").select(
        "text",
        f.struct(event_id.alias("event_id"), "reason", f.col("message_id").alias("original_id")).alias("properties"),
        f.concat_ws("/", f.lit(run), event_id).alias("duplicate_id"),
    )


if __name__ == "__main__":
    run_query(DemoSettings.load(sys.argv[1]))
