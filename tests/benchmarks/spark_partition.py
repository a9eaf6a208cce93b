"""How fast one partition of the Spark source reads a queue, beside a plain consumer of the same queue, without Spark.

``python -m tests.benchmarks.spark_partition --rows 10000 --rounds 5 --json figures.json``

The contenders take turns. The plain consumer commits units of 100; "with headers" reads what a row holds. The Spark
partition receives, stages durably, settles, decides about duplicates and yields Arrow batches, all in this process.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jmsjca import ConnectionFactory, Message, Queue
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging

QUEUE = Queue("bench")
UNIT = 100


class Bench:
    """A queue that is filled for each round, and its readers."""

    def __init__(self, folder: Path, url: str | None, rows: int) -> None:
        self._url = url or f"embedded://{folder}/broker.db"
        self._rows = rows
        self._options = SparkOptions(self._url, QUEUE.name, stagingLocation=str(folder / "staging"))
        self._staging = Staging(self._options.staging(), "g")
        self._epoch = 0
        self.contenders: dict[str, Callable[[], int]] = {
            "consumer, body only": lambda: self._consume(lambda message: message.body),
            "consumer, with headers": lambda: self._consume(read_headers),
            "Spark partition": self._partition,
        }

    def seconds(self, name: str) -> float:
        """Fill the queue, and time one contender."""
        self._send()
        begin = time.perf_counter()
        read = self.contenders[name]()
        seconds = time.perf_counter() - begin
        if read != self._rows:
            raise SystemExit(f"{name}: {read} of {self._rows} messages were read; the figures mean nothing.")
        return seconds

    def _send(self) -> None:
        with ConnectionFactory(self._url).create_connection() as connection:
            session = connection.create_session(transacted=True)
            producer = session.create_producer(QUEUE)
            for number in range(self._rows):
                properties = {"region": "EU", "number": number}
                producer.send(session.create_text_message("x" * 1024, properties=properties))
                if number % 1000 == 999:
                    session.commit()
            session.commit()

    def _consume(self, use: Callable[[Message], object]) -> int:
        read = 0
        with ConnectionFactory(self._url).create_connection() as connection:
            session = connection.create_session(transacted=True)
            consumer = session.create_consumer(QUEUE)
            while read < self._rows and (message := consumer.receive(5)) is not None:
                use(message)
                read += 1
                if read % UNIT == 0:
                    session.commit()
            session.commit()
        return read

    def _partition(self) -> int:
        self._epoch += 1
        self._staging.create_epoch(self._epoch)
        reader = PartitionReader(self._options, JmsPartition("g", EpochPartition(self._epoch, 0), self._rows))
        read = sum(batch.num_rows for batch in reader.read())
        self._staging.commit(self._epoch, retain=0, doubt_retention=60)
        return read


def read_headers(message: Message) -> object:
    return (
        *(message.message_id, message.correlation_id, str(message.destination), message.reply_to, message.type),
        *(message.priority, message.timestamp, message.expiration, message.redelivered, message.delivery_count),
        *(dict(message.properties), message.body),
    )


def measure(rows: int, rounds: int, url: str | None) -> dict[str, float]:
    """Return the median rows per second of each contender; a first round that warms up is not counted."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        bench = Bench(Path(folder), url, rows)
        seconds: dict[str, list[float]] = {name: [] for name in bench.contenders}
        for number in range(rounds + 1):
            for name, taken in seconds.items():
                one = bench.seconds(name)
                if number:
                    taken.append(one)
    return {name: rows / statistics.median(taken) for name, taken in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--url", help="a broker on a network; default: an embedded broker in a file")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.rows, arguments.rounds, arguments.url)
    print(f"{arguments.rows} messages of 1 KiB, medians of {arguments.rounds} rounds")
    for name, rate in figures.items():
        print(f"{name:<24}{rate:>10,.0f} rows/s {1e6 / rate:8.1f} us {rate / figures['consumer, body only']:6.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
