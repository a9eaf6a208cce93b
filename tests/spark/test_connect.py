"""Spark Connect: a client reads and writes queues through a server; only the server needs jmsjca."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_cluster import connect_server

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(600)]

CLIENT = """
import sys

sys.modules["jmsjca"] = sys.modules["pyspark_jmsjca"] = None  # the client does not have it
from pyspark.sql import SparkSession

remote, folder = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
url = f"embedded://{folder}/broker.db"
table = spark.range(20).selectExpr("cast(id as string) AS text")
table.write.format("jms").option("url", url).mode("append").save("orders")
print(spark.read.format("jms").option("url", url).load("orders").count())
stream = spark.readStream.format("jms").option("url", url).option("stagingLocation", f"{folder}/staging").load("orders")


def run(writer, name):
    query = writer.option("checkpointLocation", f"{folder}/{name}").trigger(availableNow=True).start()
    query.awaitTermination()


run(stream.writeStream.format("parquet").option("path", f"{folder}/out"), "to-parquet")
print(sorted(int(row.text) for row in spark.read.parquet(f"{folder}/out").collect()) == list(range(20)))
table.write.format("jms").option("url", url).mode("append").save("orders")
sink = stream.select("text").writeStream.format("jms").option("url", url).option("destination", "copies")
run(sink.queryName("copies").option("guarantee", "exactly-once"), "to-copies")
print(spark.read.format("jms").option("url", url).load("copies").count())
print(spark.read.format("jms").option("url", url).load("orders").count())
"""


def test_a_client_reads_and_writes_through_a_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as remote:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CLIENT, remote, str(tmp_path)],
            cwd=tmp_path,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["20", "True", "20", "0"]
