"""How fast one partition of the Spark source reads a queue, beside a plain consumer of the same queue, without Spark.

``python -m tests.benchmarks.spark_partition [URL] --rows 10000 --rounds 5 --json figures.json``

The contenders take turns. The plain consumer commits units of 100; "with headers" reads what a row holds. The Spark
partition receives, stages durably, settles, decides about duplicates and yields Arrow batches, all in this process.
"Rows and Arrow" is the part of it that decodes messages that were received, and makes Arrow columns of them; it is the
time of the processor, the others elapsed time. "N waiting" is the Spark partition on a queue of N messages.
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jmsjca import Message, Queue, spi
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark.columns import ColumnBuilder, key_reader
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging
from tests.benchmarks.spark_runs import Goal, consume, empty, fill, read_body, read_headers

QUEUE, DEEP_QUEUE = Queue("jmsjca.bench"), Queue("jmsjca.bench.deep")
BODY_ONLY, HEADERS, PARTITION, ARROW, DEEP = (
    *("consumer, body only", "consumer, with headers"),
    *("Spark partition", "rows and Arrow", "N waiting"),
)
SPEED, FLAT = Goal(1.0), Goal(0.9)
EMBEDDED, NETWORK = (Goal(bound, at_most=True, unit=" us") for bound in (12, 25))


class Bench:
    """A queue that is filled for each round, and its readers.

    Args:
        folder: The folder of the staged files.
        url: The broker; None for an embedded one in a file.
        rows: How many messages each contender reads.
        waiting: How many wait in the deep queue.
    """

    def __init__(self, folder: Path, url: str | None, rows: int, waiting: int) -> None:
        self._url = url or f"embedded://{folder}/broker.db"
        self._rows = rows
        self._missing = waiting  # in the deep queue
        self._options = SourceOptions(self._url, QUEUE.name, stagingLocation=str(folder / "staging"))
        self._staging = Staging(self._options.staging(), "g")
        self._epoch = 0
        self.contenders: dict[str, Callable[[], float]] = {
            BODY_ONLY: lambda: self._consumer(read_body),
            HEADERS: lambda: self._consumer(read_headers),
            PARTITION: lambda: self._partition(QUEUE),
            DEEP: lambda: self._partition(DEEP_QUEUE),
            ARROW: self._arrow,
        }
        empty(self._url, DEEP_QUEUE)

    def seconds(self, name: str) -> float:
        """Fill the queue, and time one contender."""
        empty(self._url, QUEUE)
        if name == DEEP:
            fill(self._url, DEEP_QUEUE, self._missing)
            self._missing = self._rows
        else:
            fill(self._url, QUEUE, self._rows)
        return self.contenders[name]()

    def _consumer(self, use: Callable[[Message], object]) -> float:
        begin = time.perf_counter()
        read = consume(self._url, QUEUE, self._rows, use)
        return self._elapsed(begin, read)

    def _partition(self, queue: Queue) -> float:
        self._epoch += 1
        self._staging.create_epoch(self._epoch)
        begin = time.perf_counter()
        options = replace(self._options, destination=queue.name)
        reader = PartitionReader(options, JmsPartition("g", EpochPartition(self._epoch, 0), self._rows))
        read = sum(batch.num_rows for batch in reader.read())
        self._staging.commit(self._epoch, retain=0, doubt_retention=60)
        return self._elapsed(begin, read)

    def _arrow(self) -> float:
        connection = connect(ConnectionSettings(self._url))
        try:
            received = self._receive(connection)
            gc.disable()
            columns = ColumnBuilder(self._options.columns, key_reader(self._options.dedupKey))
            begin = time.thread_time()
            columns.extend(received)
            self._check(columns.staged(1, 0, set()).table.num_rows)
            return time.thread_time() - begin
        finally:
            gc.enable()
            connection.close()

    def _receive(self, connection: spi.Connection) -> list[spi.Delivery]:
        consumer = connection.consumer(QUEUE, order=spi.Order.PREFIX, window=0)
        received: list[spi.Delivery] = []
        while len(received) < self._rows and (chunk := consumer.receive(self._rows - len(received), 5)):
            received += chunk
        return received

    def _elapsed(self, begin: float, read: int) -> float:
        seconds = time.perf_counter() - begin
        self._check(read)
        return seconds

    def _check(self, read: int) -> None:
        if read != self._rows:
            raise SystemExit(f"{read} of {self._rows} messages were read; the figures mean nothing.")


def measure(rows: int, rounds: int, url: str | None, waiting: int) -> dict[str, float]:
    """Return the median rows per second of each contender; a first round that warms up is not counted."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        bench = Bench(Path(folder), url, rows, waiting)
        seconds: dict[str, list[float]] = {name: [] for name in bench.contenders}
        for number in range(rounds + 1):
            for name, taken in seconds.items():
                one = bench.seconds(name)
                if number:
                    taken.append(one)
    return {name: rows / statistics.median(taken) for name, taken in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?", help="a broker on a network; default: an embedded broker in a file")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--waiting", type=int, default=200_000, help="messages in the deep queue")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.rows, arguments.rounds, arguments.url, arguments.waiting)
    goals = {
        PARTITION: f"of the consumer with headers, {SPEED.told(figures[PARTITION] / figures[HEADERS])}",
        DEEP: f"of the Spark partition, {FLAT.told(figures[DEEP] / figures[PARTITION])}",
        ARROW: (NETWORK if arguments.url else EMBEDDED).told(1e6 / figures[ARROW]),
    }
    print(f"{arguments.rows} messages of 1 KiB, medians of {arguments.rounds} rounds; N is {arguments.waiting}")
    for name, rate in figures.items():
        ratio = rate / figures[{PARTITION: HEADERS, DEEP: PARTITION}.get(name, BODY_ONLY)]
        print(f"{name:<24}{rate:>10,.0f} rows/s {1e6 / rate:8.1f} us {ratio:6.2f} {goals.get(name, '')}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
