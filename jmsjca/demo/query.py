"""The Spark streaming query over the queue, in a separate process: ``python -m jmsjca.demo.query FILE``.

Each micro-batch writes its results under its own number, so a batch that Spark repeats after a crash overwrites its
earlier results. The repeated messages carry the same ids, so the broker or the consumer drops them as duplicates.
"""

import os
import sys
import time
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource

from jmsjca.demo.progress import Batch, StallDetector, count_recognised, note, sum_up
from jmsjca.demo.settings import DemoSettings
from jmsjca.destinations import Destination
from jmsjca.spark import JmsDataSource

__all__ = ["run_query"]

_EVENT = "id string, date string, delay int, distance int, origin string, destination string, broken string"
_GLANCE = 0.2
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # the start of the JVM dominates a short run
_READ = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "broken"}


class _Batches:
    """Processes the micro-batches of the query."""

    def __init__(self, settings: DemoSettings, spark: SparkSession) -> None:
        self._settings = settings
        self._spark = spark
        self._airports = _airports(spark, settings.airports)

    def process(self, batch: DataFrame, number: int) -> None:
        """Write one batch to Parquet, to the topic and to the dead-letter queue."""
        begin = time.time()
        parsed = batch.withColumn("event", f.from_json("text", _EVENT, _READ)).withColumn("reason", _reason()).persist()
        counts = Observation()  # counts during the write, without an extra job
        counted = parsed.observe(counts, f.count("*").alias("rows"), f.count("reason").alias("dead"))
        events = self._settings.events / f"batch={number}"
        flights = _flights(counted).join(self._airports, "origin", "left")
        flights.write.mode("overwrite").parquet(str(events))
        # Read back from Parquet, so that the results agree with the files.
        results = _results(self._spark.read.schema(flights.schema).parquet(str(events)))
        results.drop("ids").write.mode("overwrite").parquet(str(self._settings.delays / f"batch={number}"))
        self._send(results, parsed, f"{self._settings.run}/{number}")
        rows, dead = counts.get["rows"], counts.get["dead"]
        parsed.unpersist()
        again = count_recognised(self._settings.staging)
        note(self._settings.batches, Batch(number, rows - dead, dead, again, begin, time.time()))

    def _send(self, results: DataFrame, parsed: DataFrame, ids: str) -> None:
        """Send results and dead letters in one job. Each row names its destination."""
        messages = _to(self._settings.results, _as_messages(results, ids)).unionByName(
            _to(self._settings.dead_letters, _as_dead_letters(parsed, ids)), allowMissingColumns=True
        )
        messages.write.format("jms").option("url", self._settings.url).mode("append").save()


def run_query(settings: DemoSettings, source: type[DataSource] = JmsDataSource) -> None:
    """Run the query until all events that were sent are processed.

    Args:
        settings: The settings of the run.
        source: The data source to register as "jms".
    """
    spark = _session()
    spark.dataSource.register(source)
    batches = _Batches(settings, spark)
    query = (
        spark.readStream.format("jms")
        .options(url=settings.url, destination=settings.flights.name, stagingLocation=str(settings.staging))
        .options(maxMessagesPerBatch=settings.batch, columns="message_id,properties,text,error")
        .load()
        .writeStream.foreachBatch(batches.process)
        .option("checkpointLocation", str(settings.checkpoint))
        .start()
    )
    _await_end(settings, query)
    query.stop()
    spark.stop()


def _await_end(settings: DemoSettings, query: Any) -> None:
    """Wait until all events are processed and the last batch is committed, or until progress has stalled."""
    parent = os.getppid()
    patience = StallDetector(settings.patience)
    while not (_is_done(settings) or _is_stalled(settings, query, patience)):
        if query.awaitTermination(timeout=_GLANCE) or os.getppid() != parent:
            raise RuntimeError("The query, or the run that it belongs to, ended before its work did.")
    query.processAllAvailable()


def _is_stalled(settings: DemoSettings, query: Any, patience: StallDetector) -> bool:
    """Return True if progress has stalled; a query that is still starting has no time limit."""
    return query.lastProgress is not None and patience.is_over(sum_up(settings.batches).events)


def _is_done(settings: DemoSettings) -> bool:
    if not settings.all_sent.exists():
        return False
    return sum_up(settings.batches).events >= len(settings.journal.read_text().splitlines())


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
        .config("spark.driver.extraJavaOptions", _JAVA)
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
    """Return the reason why a message is not a flight; null for a flight."""
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


def _to(destination: Destination, messages: DataFrame) -> DataFrame:
    return messages.withColumn("destination", f.lit(str(destination)))


def _as_messages(results: DataFrame, batch: str) -> DataFrame:
    return results.select(
        f.to_json(f.struct("airport", "name", "flights", "delay", "ids")).alias("text"),
        f.struct("airport", "flights", "delay").alias("properties"),
        f.concat_ws("/", f.lit(batch), "airport").alias("duplicate_id"),
    )


def _as_dead_letters(parsed: DataFrame, batch: str) -> DataFrame:
    event_id = f.col("properties")["event_id"]
    return parsed.where("reason is not null").select(
        "text",
        f.struct(event_id.alias("event_id"), "reason", f.col("message_id").alias("original_id")).alias("properties"),
        f.concat_ws("/", f.lit(batch), event_id).alias("duplicate_id"),
    )


if __name__ == "__main__":
    run_query(DemoSettings.load(sys.argv[1]))
