"""What processes bring a handler that needs the processor: ``jmsjca run --processes``, with 1, 2 and 4 of them.

``python -m tests.benchmarks.workers [BROKER-URL …]``

A handler computes for half a millisecond of processor time, and sends a message in its unit. The rate is that of the
messages between the first and the last tenth, so that the start of the processes does not count. A second part kills
processes of the worker at random moments: each message must be answered once, and each process be restarted.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.management.insight import Insight
from jmsjca.management.presentation import print_rows

MESSAGES, PROCESSES, KILLS, PATIENCE = 4000, (1, 2, 4), 6, 240.0

MODULE = """
import os, time
from jmsjca import Queue, ResourceAdapter, TextMessage
adapter = ResourceAdapter(os.environ["BENCH_URL"])

@adapter.listener(os.environ["BENCH_QUEUE"], concurrency_mode="serial")
def handle(message, session):
    end = time.thread_time() + 0.0005
    while time.thread_time() < end:
        pass
    session.create_producer(Queue(os.environ["BENCH_QUEUE"] + ".done")).send(TextMessage(message.body))
"""


@contextmanager
def worker(folder: Path, url: str, queue: str, processes: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a worker; provide its process, and the file with the events of its supervisor."""
    (folder / "bench_worker.py").write_text(MODULE)
    log = folder / f"{queue}.log"
    environment = {**os.environ, "BENCH_URL": url, "BENCH_QUEUE": queue}
    command = [sys.executable, "-m", "jmsjca", "run", "bench_worker:adapter", "--processes", str(processes)]
    with log.open("wb") as errors:
        running = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            yield running, log
        finally:
            running.terminate()
            running.wait(PATIENCE)


def fill(url: str, queue: str) -> None:
    """Send the messages."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(Queue(queue))
        for number in range(MESSAGES):
            producer.send(TextMessage(str(number)))
        session.commit()


def moment_of(insight: Insight, queue: str, left: int) -> tuple[float, int]:
    """Wait until no more than so many messages are left; return the time, and their number."""
    deadline = time.monotonic() + PATIENCE
    while (now_left := insight.queue_info(queue).depth.total) > left:  # type: ignore[union-attr]  # a queue has one
        assert time.monotonic() < deadline, f"{now_left} messages are left"
        threading.Event().wait(0.01)
    return time.monotonic(), now_left


def rate(folder: Path, url: str, processes: int) -> float:
    """Return the messages in a second."""
    queue, insight = f"bench.{uuid.uuid4().hex}", Insight(url)
    fill(url, queue)
    with worker(folder, url, queue, processes):
        began, first = moment_of(insight, queue, MESSAGES * 9 // 10)
        ended, last = moment_of(insight, queue, MESSAGES // 10)
        moment_of(insight, queue, 0)
    return (first - last) / (ended - began)


def kills(folder: Path, url: str, seed: int) -> tuple[Counter[str], int, int]:
    """Kill processes at random moments; return how often each message was answered, the kills and the restarts."""
    queue, insight, dice, killed = f"bench.{uuid.uuid4().hex}", Insight(url), random.Random(seed), 0
    fill(url, queue)
    with worker(folder, url, queue, 4) as (supervisor, log):
        for number in range(1, KILLS + 1):
            moment_of(insight, queue, MESSAGES - number * MESSAGES // (KILLS + 2))
            threading.Event().wait(dice.uniform(0, 0.01))
            children = _children(supervisor.pid)
            if children:
                os.kill(dice.choice(children), signal.SIGKILL)
                killed += 1
        moment_of(insight, queue, 0)
    events = log.read_text()
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(f"{queue}.done"))
        answered = Counter(message.body for message in iter(lambda: consumer.receive(5), None))
    return answered, killed, events.count("jmsjca: started") - 4


def _children(pid: int) -> list[int]:
    """Return the processes of a worker."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def main(urls: list[str]) -> int:
    """Print the rates and the account of the kills; 0 if no message was lost or answered twice."""
    seed, wrong, rows, accounts = random.randrange(1 << 16), 0, [], []
    with tempfile.TemporaryDirectory(prefix="jmsjca-workers-") as name:
        folder = Path(name)
        for place in [f"embedded://{folder}/broker.db", *urls]:
            rates = [rate(folder, place, processes) for processes in PROCESSES]
            label = place.partition(":")[0]
            shown = {f"{n}": f"{each:.0f} ({each / rates[0]:.2f})" for n, each in zip(PROCESSES, rates, strict=True)}
            rows.append({"broker": label, **shown})
            answered, killed, restarted = kills(folder, place, seed)
            lost, doubled = MESSAGES - len(answered), sum(count - 1 for count in answered.values())
            wrong += lost + doubled
            facts = {"lost": lost, "doubled": doubled, "killed": killed, "started_again": restarted, "seed": seed}
            accounts.append(f"{label}: {json.dumps(facts)}")
    print(f"messages a second with so many processes, on {os.cpu_count()} cores (and the ratio to one process)")
    print_rows(rows, as_json=False)
    print(*accounts, sep="\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
