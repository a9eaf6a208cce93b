"""Declarative pipelines of Spark: flows read queues into tables, and a sink writes them to a queue."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_cluster import connect_server

from jmsjca import ConnectionFactory
from jmsjca.management import Insight

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(600)]

RUN = """
import sys
from pathlib import Path

sys.modules["jmsjca"] = sys.modules["pyspark_jmsjca"] = None  # the client does not have it
from pyspark.pipelines.cli import run
from pyspark.sql import SparkSession

run(Path(sys.argv[1]), [], False, [], False)
spark = SparkSession.builder.getOrCreate()
print(sorted(row.text for row in spark.read.table("bills").collect()))
"""
SPEC = """
name: orders
storage: file://{folder}/storage
libraries:
  - glob:
      include: flows.py
"""
FLOWS = """
from pyspark import pipelines as dp

URL = {url!r}


def queue(name):
    staging = {folder!r} + "/staging"
    return spark.readStream.format("jms").options(url=URL, stagingLocation=staging, columns="text").load(name)


dp.create_sink("copies", "jms", {{"url": URL, "destination": "copies", "guarantee": "exactly-once"}})


@dp.append_flow(target="copies")
def copied():
    return queue("orders")


@dp.table
def bills():
    return queue("bills")
"""


def test_a_pipeline_reads_and_writes_queues(tmp_path: Path) -> None:
    url = f"embedded://{tmp_path}/broker.db"
    factory = ConnectionFactory(url)
    for text in ("a", "b"):
        factory.send("orders", text)
        factory.send("bills", text.upper())
    factory.close()
    (tmp_path / "flows.py").write_text(FLOWS.format(url=url, folder=str(tmp_path)))
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    with connect_server(tmp_path) as remote:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", RUN, str(tmp_path / "spark-pipeline.yml")],
            cwd=tmp_path,
            env=os.environ | {"SPARK_REMOTE": remote},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['A', 'B']"
    assert sorted(message.body for message in Insight(url).messages("copies")) == ["a", "b"]
