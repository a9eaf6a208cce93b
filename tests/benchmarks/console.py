"""How soon the console shows its pages over an embedded broker with very many destinations and messages.

``python -m tests.benchmarks.console [--destinations 10000] [--messages 1000000]``
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from starlette.testclient import TestClient

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.management.console import Console

BOUND = 300.0  # milliseconds for the first page of the destinations
ROUNDS = 20
UNIT = 1000  # messages of a transaction
MEGABYTE = 1024 * 1024


def fill(url: str, destinations: int, messages: int) -> None:
    """Send the messages, spread over all queues; each queue has one at least."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(None)
        for number in range(max(destinations, messages)):
            producer.send(TextMessage("x" * 100), Queue(f"queue.{number % destinations:05}"))
            if number % UNIT == UNIT - 1:
                session.commit()
        session.commit()


def milliseconds(act: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def main() -> int:
    """Print the figures; 1 if the first page is too slow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--destinations", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"embedded://{Path(folder)}/broker.db"
        filling = milliseconds(lambda: fill(url, options.destinations, options.messages)) / 1000
        print(f"{options.destinations} queues and {options.messages} messages, sent in {filling:.0f} s")
        console = Console(url)
        client = TestClient(console, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {console.token}"})
        pages = {
            "first page of the destinations": "/destinations",
            "last page of the destinations": f"/destinations?page={-(-options.destinations // 50)}",
            "search for a destination": "/destinations?search=07777",
            "messages of a queue": "/messages?queue=queue.00007",
        }
        process, medians = psutil.Process(), dict[str, float]()
        for name, path in pages.items():
            assert client.get(path).status_code == 200
            before, spent = process.memory_info().rss, time.process_time()
            times = [milliseconds(lambda path=path: client.get(path)) for _ in range(ROUNDS)]
            processor = (time.process_time() - spent) / ROUNDS * 1000
            grown = (process.memory_info().rss - before) / MEGABYTE
            medians[name] = statistics.median(times)
            print(
                f"{name}: {medians[name]:.0f} ms (median of {ROUNDS}, {min(times):.0f} at best), "
                f"{processor:.0f} ms of the processor, {grown:+.1f} MiB"
            )
    first = medians["first page of the destinations"]
    print(f"bound of the first page: {BOUND:.0f} ms")
    return 1 if first > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
