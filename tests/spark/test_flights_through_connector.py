"""The flights through a connector, in one process and on Spark: the same objects, copies and failures in both."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from jmsjca.connector import EventPipeline
from tests.spark import flights_connector as flights

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
FAILING = 2  # the batch whose subscriber fails after it has written


@pytest.fixture(scope="module")
def file() -> Path:
    """The flights that the environment names, or else those of the demo's tests."""
    folder = os.environ.get("JMSJCA_DATA")
    return Path(folder, "flights-20k.json") if folder else ROOT / "tests" / "demo" / "data" / "flights.csv"


def in_one_process(folder: Path, file: Path) -> tuple[str, dict[str, object], int]:
    """Poll the flights by a process that is killed in the middle, and by another one to their end."""
    folder.mkdir()
    url, journal = f"embedded://{folder}/broker.db", folder / "journal"
    count = flights.send(url, file)
    for kill_at, code in ((count // 2, -signal.SIGKILL), (0, 0)):
        command = [sys.executable, "-m", flights.__name__, url, str(journal), str(kill_at)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr[-2000:]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len(lines) - len({line[0] for line in lines}) <= 1  # the event that the kill left in doubt
    return url, {attributes["number"]: [verb, attributes] for _, verb, attributes in lines}, count


def on_spark(folder: Path, file: Path, spark: SparkSession) -> tuple[str, dict[str, object]]:
    """Run the pipeline until a subscriber fails, and again to the end."""
    folder.mkdir()
    url, table, failed = f"embedded://{folder}/broker.db", f"{folder}/flights", False
    count = flights.send(url, file)

    def save(batch: DataFrame, number: int) -> None:
        nonlocal failed
        batch.write.mode("overwrite").parquet(f"{table}/batch={number}")
        if number == FAILING and not failed:
            failed = True
            raise OSError("the disk is full")

    pipeline = EventPipeline(flights.config(url), {"Flight": save}, collaboration=flights.subscription())
    options = {"maxMessagesPerBatch": max(count // 5, 1), "receiveIdleTimeout": 0, "pollInterval": 0}
    for attempt in range(2):
        writer = pipeline.write_stream(spark, f"{folder}/checkpoint", options=options).trigger(availableNow=True)
        query = writer.start()
        if attempt == 0:
            with pytest.raises(StreamingQueryException, match="the disk is full"):
                query.awaitTermination()
        else:
            query.awaitTermination()
    rows = [row.asDict() for row in spark.read.parquet(table).drop("batch", "_event_id").collect()]
    assert len(rows) == len({row["number"] for row in rows})
    return url, {row["number"]: [row.pop("_verb"), row] for row in rows}


def test_both_have_the_same_result(
    tmp_path: Path, file: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    one_url, one, count = in_one_process(tmp_path / "one", file)
    spark_url, other = on_spark(tmp_path / "spark", file, spark)
    expected, found = flights.routed(one_url), flights.routed(spark_url)
    figures = {name: sum(copies.values()) for name, copies in expected.items()}
    with capsys.disabled():
        print(f"\nflights through the connector: {count} sent, {len(one)} delivered, {figures}")
    assert figures["flights"] == 0
    assert sum(figures.values()) == count
    assert figures["archive"] == len(one)
    assert all(figures[name] for name in flights.ROUTES.values())
    assert {name: sum(copies.values()) for name, copies in found.items()} == figures
    for name, copies in expected.items():
        assert not (copies - found[name]), f"{name}: {next(iter(copies - found[name]))} is not on Spark"
        assert not (found[name] - copies), f"{name}: {next(iter(found[name] - copies))} is on Spark only"
    assert other == one
