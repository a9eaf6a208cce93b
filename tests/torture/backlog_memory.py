"""Does a listener stay small in front of a huge backlog?

``python -m tests.torture.backlog_memory --messages 1000000``
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from jmsjca import ConnectionFactory, Queue

__all__ = ["BOUND", "MESSAGES", "Report", "run"]

ROOT = Path(__file__).parents[2]
MESSAGES = 1_000_000
BOUND = 200 * 1024 * 1024
BODY = "x" * 200
BATCH = 10_000
HANDLED = 5_000


@dataclass
class Report:
    """One run; sizes in bytes."""

    messages: int
    handled: int
    left: int
    file_size: int
    peak: int
    fill_seconds: float
    handle_seconds: float

    @property
    def good(self) -> bool:
        return self.peak <= BOUND and self.left <= self.messages - self.handled

    def __str__(self) -> str:
        return (
            f"backlog {self.messages} messages ({_mib(self.file_size)} MiB, filled in {self.fill_seconds:.0f} s), "
            f"handled {self.messages - self.left} in {self.handle_seconds:.1f} s, "
            f"listener peak {_mib(self.peak)} MiB (bound {_mib(BOUND)} MiB)"
        )


def run(messages: int, folder: Path, handled: int = HANDLED) -> Report:
    """Fill a queue, let a listener in a process of its own handle a part, measure that process.

    Args:
        messages: How many wait.
        folder: Where the broker's file is made.
        handled: How many the listener handles at least.
    """
    file = folder / "broker.db"
    url = f"embedded://{file}"
    began = time.monotonic()
    fill(url, messages)
    filled = time.monotonic()
    command = [sys.executable, "-m", "tests.torture.backlog_listener", url, str(handled)]
    peak = int(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    ended = time.monotonic()
    return Report(messages, handled, depth(url), file.stat().st_size, peak, filled - began, ended - filled)


def fill(url: str, messages: int) -> None:
    """Send in large transactions."""
    with (
        ConnectionFactory(url).create_connection() as connection,
        connection.create_session(transacted=True) as session,
    ):
        producer = session.create_producer(Queue("backlog"))
        for first in range(0, messages, BATCH):
            for n in range(first, min(first + BATCH, messages)):
                producer.send(session.create_text_message(BODY, properties={"number": n}))
            session.commit()


def depth(url: str) -> int:
    """How many messages are left, held ones included."""
    with ConnectionFactory(url).create_connection() as connection:
        assert connection.admin is not None
        return connection.admin.depth(Queue("backlog")).total


def _mib(size: int) -> int:
    return round(size / 1024 / 1024)


def main() -> int:
    """Print the figures; 1 if the listener grew over the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-backlog-") as folder:
        report = run(options.messages, Path(folder))
    print(report)
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
