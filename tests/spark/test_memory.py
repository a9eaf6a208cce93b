"""The memory of a large partition."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging

FIRST, LARGE = EpochPartition(1, 0), EpochPartition(2, 0)
MESSAGES, SIZE = 2048, 64 * 1024  # 128 MiB, the share of a partition by default


def send(broker, count: int, text: str | None = None) -> None:
    """Send large texts in several units; by default of random digits, which cannot be compressed to nothing."""
    for begin in range(0, count, 64):
        broker.send(*(text or os.urandom(SIZE // 2).hex() for _ in range(min(64, count - begin))))


def growth(folder: Path) -> int:
    """Read a partition, in a process of its own, and return by how many bytes the peak of its memory grew."""
    from tests.spark.conftest import Broker

    broker = Broker(folder)
    options = broker.options(maxBytesPerBatch=MESSAGES * SIZE, batchTimeout=3600, receiveIdleTimeout=60)
    staging = Staging(options.staging(), "g")

    def read(part: EpochPartition, quota: int) -> int:
        staging.create_epoch(part.epoch)
        planned = JmsPartition("g", part, quota, max_bytes=MESSAGES * SIZE)
        return sum(batch.num_rows for batch in PartitionReader(options, planned).read())

    assert read(FIRST, 1) == 1  # what every process loads once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(LARGE, MESSAGES) == MESSAGES
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
def test_a_partition_takes_at_most_twice_the_memory_of_its_bodies(broker, capsys) -> None:
    send(broker, MESSAGES + 1)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.test_memory", str(broker.folder)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    ratio = int(done.stdout) / (MESSAGES * SIZE)
    with capsys.disabled():
        print(f"\npeak memory {ratio:.2f} of the bodies", end="")
    assert ratio <= 2


@pytest.mark.spark
@pytest.mark.torture
@pytest.mark.timeout(1200)
def test_a_partition_may_have_more_than_two_gibibytes_of_text(spark, broker) -> None:
    """An array of Arrow texts cannot: the partition has several."""
    size, count = 1 << 20, 2100
    send(broker, count, "x" * size)
    changes = {"maxBytesPerBatch": 3 << 30, "partitions": 1, "batchTimeout": 3600, "receiveIdleTimeout": 60}
    stream = spark.readStream.format("jms").options(**broker.given(**changes)).load()
    sink = stream.selectExpr("length(text) AS size", "_epoch").writeStream.format("parquet")
    sink = sink.option("path", str(broker.folder / "out")).option("checkpointLocation", str(broker.folder / "c"))
    sink.trigger(availableNow=True).start().awaitTermination()
    (row,) = spark.read.parquet(str(broker.folder / "out")).groupBy("_epoch").sum("size").collect()
    assert tuple(row) == (1, count * size)
    assert broker.depth().total == 0


if __name__ == "__main__":
    print(growth(Path(sys.argv[1])))
