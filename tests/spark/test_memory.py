"""The memory of a large partition."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jmsjca import BytesMessage, Message, TextMessage
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.schema import SCHEMA
from jmsjca.spark.staging import EpochPartition, Staging

FIRST, LARGE = EpochPartition(1, 0), EpochPartition(2, 0)
MESSAGES, SIZE = 2048, 64 * 1024  # 128 MiB, the share of a partition by default
HEADERS = 1024  # more than a message has beside its body
ALL = ",".join(SCHEMA.names)


def large_property(value: str) -> Message:
    return TextMessage("t", properties={"large": value})


def send(broker, count: int, message: Callable[[str], Message]) -> None:
    """Send large messages in several units, of random digits, which cannot be compressed to nothing."""
    for begin in range(0, count, 64):
        values = (os.urandom(SIZE // 2).hex() for _ in range(min(64, count - begin)))
        broker.send_messages(*map(message, values))


def measure(folder: Path, columns: str) -> tuple[int, int]:
    """Read a partition, and return its rows, and by how many bytes the peak of the memory of this process grew."""
    from tests.spark.conftest import Broker

    broker = Broker(folder)
    options = broker.options(columns=columns, batchTimeout=3600, receiveIdleTimeout=60)
    staging = Staging(options.staging(), "g")

    def read(part: EpochPartition, quota: int) -> int:
        staging.create_epoch(part.epoch)
        planned = JmsPartition("g", part, quota, max_bytes=MESSAGES * (SIZE + HEADERS))
        return sum(batch.num_rows for batch in PartitionReader(options, planned).read())

    assert read(FIRST, 1) == 1  # what every process loads once
    before = peak()
    rows = read(LARGE, 2 * MESSAGES)
    return rows, peak() - before


def peak() -> int:
    """Return the most memory that this process has had, in bytes; `getrusage` would tell that of its parent, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("message", "columns"),
    [
        pytest.param(TextMessage, ALL, id="texts"),
        pytest.param(lambda text: BytesMessage(text.encode()), "message_id", id="bodies without a column"),
        pytest.param(large_property, ALL, id="properties"),
    ],
)
def test_a_partition_takes_at_most_twice_the_memory_of_its_messages(broker, capsys, message, columns) -> None:
    send(broker, MESSAGES + MESSAGES // 4, message)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.test_memory", str(broker.folder), columns],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    rows, grown = json.loads(done.stdout)
    assert MESSAGES <= rows <= MESSAGES * (1 + HEADERS / SIZE) + 1
    ratio = grown / (rows * SIZE)
    with capsys.disabled():
        print(f"\npeak memory {ratio:.2f} of the messages", end="")
    assert ratio <= 2


@pytest.mark.spark
@pytest.mark.torture
@pytest.mark.timeout(1200)
def test_a_partition_may_have_more_than_two_gibibytes_of_text(spark, broker) -> None:
    """An array of Arrow texts cannot: the partition has several."""
    size, count = 1 << 20, 2100
    for _ in range(0, count, 60):
        broker.send(*["x" * size] * 60)
    changes = {"maxBytesPerBatch": 3 << 30, "partitions": 1, "batchTimeout": 3600, "receiveIdleTimeout": 60}
    stream = spark.readStream.format("jms").options(**broker.given(**changes)).load()
    sink = stream.selectExpr("length(text) AS size", "_epoch").writeStream.format("parquet")
    sink = sink.option("path", str(broker.folder / "out")).option("checkpointLocation", str(broker.folder / "c"))
    sink.trigger(availableNow=True).start().awaitTermination()
    (row,) = spark.read.parquet(str(broker.folder / "out")).groupBy("_epoch").sum("size").collect()
    assert tuple(row) == (1, count * size)
    assert broker.depth().total == 0


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2])))
