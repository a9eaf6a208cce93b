"""Kills processes of a real Spark that reads a queue into Parquet: each message becomes a row once.

``python -m tests.torture.spark_kills --messages 20000 --kills 100 embedded artemis-amqp``

Spark runs in processes of its own. While messages come, one of its Python processes is killed at random: a worker of a
task, the one that plans the epochs, or the daemon that forks them. Every tenth time it is everything: driver, JVM and
workers. At the end the query runs until the queue is empty. ``--minutes 30`` kills nothing later, and reports the kills
that there were. With ``--settle-after 1`` each task waits for a second between staging its messages and settling them,
and with ``--kind worker`` only workers of tasks are killed, so that a few kills are enough to hit that time.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from pyarrow.parquet import read_metadata

from jmsjca import ConnectionFactory, Queue, TextMessage
from tests.torture.spark_stream import FAILED, QUEUE

__all__ = ["Report", "run"]

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
EVERYTHING = 10  # every so many kills
AHEAD = 400  # messages, which are two batches: a kill that finds an empty queue hits nothing


class Report(NamedTuple):
    """One run."""

    name: str
    sent: int
    rows: int
    distinct: int
    left: int
    kills: Counter[str]
    failed: int
    seconds: float
    seed: int

    @property
    def good(self) -> bool:
        """True if each message is a row once."""
        return self.sent == self.rows == self.distinct and not self.left

    def __str__(self) -> str:
        killed = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        return (
            f"{self.name}: {self.sent} sent, {self.rows} rows, {self.distinct} distinct, {self.left} left; "
            f"{self.kills.total()} kills ({killed}), the query failed {self.failed} times"
            f" ({self.seconds:.0f} s, seed {self.seed})"
        )


class Spark:
    """The processes of Spark.

    Args:
        folder: The folder of the run.
        url: The broker.
        settle_after: The seconds between staging messages and settling them, besides those that are needed.
    """

    def __init__(self, folder: Path, url: str, settle_after: float) -> None:
        self._folder = folder
        self._command = [sys.executable, "-W", "ignore", "-m", "tests.torture.spark_stream", str(folder), url]
        self._command += ["--settle-after", str(settle_after)]
        self._process: psutil.Popen | None = None

    def start(self) -> None:
        """Start the driver, unless it runs."""
        if self._process is None or self._process.poll() is not None:
            with (self._folder / "log").open("ab") as log:
                self._process = psutil.Popen(self._command, cwd=ROOT, stdout=log, stderr=log)

    def finish(self) -> dict[str, int]:
        """Run the query until the queue is empty, and return the numbers of rows."""
        command = [*self._command, "--finish"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=1800, check=True)
        figures: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
        return figures

    def kill_one(self, dice: random.Random, only: str | None) -> str | None:
        """Kill a Python process below the JVM, of one kind or of any, and return its kind; None if there is none."""
        workers = {process: kind for process in self._tree() if (kind := _kind(process)) and only in (None, kind)}
        if not workers:
            return None
        victim = dice.choice(list(workers))
        with suppress(psutil.NoSuchProcess):
            victim.kill()
            return workers[victim]
        return None

    def kill_everything(self) -> str:
        """Kill driver, JVM and workers."""
        tree = self._tree()
        for process in tree:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(tree, timeout=PATIENCE)
        return "everything"

    def _tree(self) -> list[psutil.Process]:
        if self._process is None or self._process.poll() is not None:
            return []
        with suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self._process.pid)
            return [driver, *driver.children(recursive=True)]
        return []


class Sink:
    """What the query has written for good: any broker can be asked for it, while few tell how much waits in a queue.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "out" / "_spark_metadata"
        self._rows: dict[str, int] = {}

    def count(self) -> int:
        """Return the number of rows of the files in Spark's log; files of killed tasks are not there."""
        for entry in self._log.glob("[0-9]*"):
            for line in entry.read_text().splitlines()[1:]:
                path = json.loads(line)["path"]
                if path not in self._rows:
                    self._rows[path] = read_metadata(path.removeprefix("file:")).num_rows
        return sum(self._rows.values())


def _kind(process: psutil.Process) -> str | None:
    """Return what a process of Python is for; None for the driver and the JVM."""
    with suppress(psutil.NoSuchProcess, IndexError):
        words = " ".join(process.cmdline())
        parent = process.parent()
        if "pyspark.daemon" not in words:
            return "planner" if "source_runner" in words or "pyspark.sql" in words else None
        return "worker" if parent is not None and "pyspark.daemon" in " ".join(parent.cmdline()) else "daemon"
    return None


def run(
    name: str,
    url: str,
    folder: Path,
    *,
    messages: int,
    kills: int,
    seed: int,
    seconds: float = math.inf,
    settle_after: float = 0,
    kind: str | None = None,
) -> Report:
    """Send messages and kill processes meanwhile.

    Args:
        name: The name of the broker, for the report.
        url: The broker.
        folder: An empty folder.
        messages: How many messages are sent.
        kills: How many kills.
        seed: Which processes are killed; not when the scheduler runs them.
        seconds: The time after which nothing is killed any more.
        settle_after: The seconds between staging messages and settling them, besides those that are needed.
        kind: What is killed, as "worker"; None for anything.
    """
    began, dice, killed = time.monotonic(), random.Random(seed), Counter[str]()
    spark, sink = Spark(folder, url, settle_after), Sink(folder)
    sent = read = 0
    try:
        for number in range(1, kills + 1):
            if time.monotonic() - began > seconds:
                break
            spark.start()
            until = messages * number // kills
            most = min(messages, until + AHEAD)
            _send(url, range(sent, most))
            sent = most
            _await_rows(sink, until - int((until - read) * dice.random()), spark)
            read = until
            threading.Event().wait(dice.uniform(0, 0.3))  # at any moment of a batch
            killed[_kill(spark, dice, kind, everything=number % EVERYTHING == 0)] += 1
        killed[spark.kill_everything()] += 1
        _send(url, range(sent, messages))
        figures = spark.finish()
    finally:
        spark.kill_everything()
    failed = (folder / FAILED).read_text().count("\n") if (folder / FAILED).exists() else 0
    left, taken = _left(url), time.monotonic() - began
    return Report(name, messages, **figures, left=left, kills=killed, failed=failed, seconds=taken, seed=seed)


def _kill(spark: Spark, dice: random.Random, only: str | None, *, everything: bool) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        if everything:
            return spark.kill_everything()
        if kind := spark.kill_one(dice, only):
            return kind
        spark.start()  # the last kill ended the driver, if that was just planning
        assert time.monotonic() < deadline, "Spark has no Python process"
        threading.Event().wait(0.01)


def _send(url: str, numbers: range) -> None:
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        producer = session.create_producer(Queue(QUEUE))
        for number in numbers:
            producer.send(TextMessage(str(number)))
        session.commit()


def _left(url: str) -> int:
    """Return how many messages are left, and take them."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(QUEUE))
        return sum(1 for _ in iter(lambda: consumer.receive(5), None))


def _await_rows(sink: Sink, rows: int, spark: Spark) -> None:
    """Wait until there are so many rows, as long as there is progress."""
    most, deadline = -1, time.monotonic() + PATIENCE
    while (written := sink.count()) < rows:
        if written > most:
            most, deadline = written, time.monotonic() + PATIENCE
        assert time.monotonic() < deadline, f"{written} of {rows} rows are written, and none comes"
        spark.start()
        threading.Event().wait(0.05)


@contextmanager
def broker(name: str, folder: Path) -> Iterator[str]:
    """Start a broker, and yield its URL."""
    if name == "embedded":
        yield f"embedded://{folder}/broker.db"
        return
    from brokers import registry  # only with tests/support on the path

    product, _, protocol = name.partition("-")
    try:
        yield registry.own(product).start().url(protocol)
    finally:
        registry.discard_own()


def main() -> int:
    """Print one line for each broker; 0 if each message is a row once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["embedded"], help="embedded, or a pair of a broker and a protocol")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--settle-after", type=float, default=0)
    parser.add_argument("--kind", choices=["worker", "planner", "daemon"])
    given = parser.parse_args()
    good = True
    for name in given.names:
        folder = Path(tempfile.mkdtemp(prefix="jmsjca-spark-kills-"))
        with broker(name, folder) as url:
            report = run(
                name,
                url,
                folder,
                messages=given.messages,
                kills=given.kills,
                seed=given.seed,
                seconds=60 * given.minutes,
                settle_after=given.settle_after,
                kind=given.kind,
            )
        print(report, flush=True)
        good = good and report.good
        if report.good:
            shutil.rmtree(folder)
        else:
            print(f"Kept: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
