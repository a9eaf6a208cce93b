"""spark-submit on a cluster whose machines have neither jmsjca nor pyarrow: the job brings its environment."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_cluster import spark_cluster
from spark_programs import run_program
from wheels import build_wheel

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(1800)]

JOB = """
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
url = f"embedded://{folder}/broker.db"
table = spark.range(20).selectExpr("cast(id as string) AS text")
table.write.format("jms").option("url", url).mode("append").save("orders")
print(spark.read.format("jms").option("url", url).load("orders").count())

orders = spark.readStream.format("jms").options(url=url, stagingLocation=f"{folder}/staging").load("orders")
sink = orders.writeStream.format("parquet").option("path", f"{folder}/out").trigger(availableNow=True)
ended = False
while not ended:
    try:
        ended = sink.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination() is None
    except StreamingQueryException as error:  # Spark gave up waiting for the start of a process on a busy machine
        if "failed to connect back" not in str(error):
            raise
print(sorted(int(row.text) for row in spark.read.parquet(f"{folder}/out").collect()) == list(range(20)))


def find_modules(_):
    import jmsjca
    import pyarrow

    return all(Path(module.__file__).is_relative_to(Path.cwd() / "environment") for module in (jmsjca, pyarrow))


print(spark.sparkContext.parallelize(range(2), 2).map(find_modules).collect())
spark.stop()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "cluster").mkdir()
    with spark_cluster(tmp_path / "cluster") as url:
        yield url


def pack(folder: Path) -> None:
    """Make an environment and its archive in a folder, as the documentation says."""
    subprocess.run([sys.executable, "-m", "venv", "environment"], cwd=folder, check=True)
    target = f"{build_wheel(folder)}[amqp]"
    install = ["environment/bin/pip", "install", "--quiet", target, "pyarrow"]
    subprocess.run(install, cwd=folder, check=True)
    subprocess.run(["tar", "-czf", "environment.tar.gz", "-C", "environment", "."], cwd=folder, check=True)


def test_a_job_brings_its_environment(cluster: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    pack(folder)
    (folder / "job.py").write_text(JOB)
    arguments = ["--master", cluster, "--archives", "environment.tar.gz#environment"]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m"]
    python = {"PYSPARK_PYTHON": "./environment/bin/python", "PYTHONPATH": ""}
    done = run_program("spark-submit", *arguments, *settings, "job.py", str(tmp_path), folder=folder, **python)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["20", "True", "[True, True]"]
