"""Kills a process whose threads commit together, or fails its disk, and proves that each was told the truth.

``python -m tests.torture.group_points`` does so at every write and every sync of a thread that commits for others, in
many rounds: which thread that is, and for whom, differs from run to run. What must hold does not.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier

from jmsjca import JMSError, Queue, TextMessage
from jmsjca.errors import TransactionInDoubtError, TransactionRolledBackError
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection
from tests.torture.crash_points import files_of
from tests.torture.crashed_process import BROKER, Note, Victim, read_journal
from tests.torture.strace import find_strace

__all__ = ["Report", "run"]

THREADS, UNITS, SIZE = 6, 8, 3  # messages of a unit
FAULTS = {
    "pwrite64": ("signal=KILL", "error=ENOSPC:delay_enter=2000"),  # microseconds, in which the others may speak
    "fdatasync": ("signal=KILL", "error=EIO:delay_enter=2000"),
}
WORK = Queue("work")


@dataclass
class Report:
    """One run."""

    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        ends = ", ".join(f"{end} {count}" for end, count in self.ends.items())
        return (
            f"{self.ends.total()} points of threads that commit together visited, {len(self.wrong)} violated "
            f"({ends}; {self.seconds:.0f} s)"
        )


def run(rounds: int, jobs: int, every: int = 1) -> Report:
    """Visit all points, or every so many-th, in each round."""
    report, began = Report(), time.monotonic()
    points = _points()[::every] * rounds
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for end, wrong in pool.map(_visit, *zip(*points, strict=True), chunksize=8):
            report.ends[end] += 1
            report.wrong += wrong
    report.seconds = time.monotonic() - began
    return report


def _points() -> list[tuple[str, str, int]]:
    """What a thread does most often, in a run that nobody disturbs."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-group-") as name:
        folder = Path(name)
        _let_live(folder, "-o", f"{folder}/trace", "-e", f"trace={','.join(FAULTS)}")
        counts = Counter(re.findall(r"^(\d+) +(\w+)\(", (folder / "trace").read_text(), re.MULTILINE))
    most = {call: max(n for (_, other), n in counts.items() if other == call) for call in FAULTS}
    return [(call, fault, n + 1) for call, faults in FAULTS.items() for fault in faults for n in range(most[call])]


def _visit(call: str, fault: str, n: int) -> tuple[str, list[str]]:
    with tempfile.TemporaryDirectory(prefix="jmsjca-group-") as name:
        folder = Path(name)
        inject = f"inject={call}:{fault}:when={n}"
        status = _let_live(folder, "-o", os.devnull, "-e", f"trace={call}", "-e", inject)
        if status not in (0, -signal.SIGKILL):
            return "badly", [f"{fault} at {call} {n}: the process ended with {status}"]
        said = {line.split()[0] for line in read_journal(folder)} & {"undone", "doubt"}
        wrong = [f"{fault} at {call} {n}: {problem}" for problem in _judge(folder)]
        return "killed" if status else " and ".join(sorted(said)) or "no error", wrong


def _let_live(folder: Path, *options: str) -> int:
    victim = Victim(_commit_together, folder)
    with find_strace().tracing(victim.pid, files_of(folder), *options):
        return victim.run()


def _commit_together(folder: Path, note: Note) -> None:
    try:
        connection = _connect(folder)
    except JMSError:
        connection = _connect(folder)
    together = Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(_send, connection, note, f"{n}", together) for n in range(THREADS)]:
            done.result()


def _send(connection: Connection, note: Note, thread: str, together: Barrier) -> None:
    together.wait()
    for n in range(UNITS):
        unit = connection.unit()
        for m in range(SIZE):
            unit.send(TextMessage(f"{thread}.{n}.{m}"), WORK)
        note(f"try {thread}.{n}")
        try:
            unit.commit()
        except TransactionInDoubtError:
            note(f"doubt {thread}.{n}")
        except TransactionRolledBackError:
            note(f"undone {thread}.{n}")
        else:
            note(f"ok {thread}.{n}")


def _judge(folder: Path) -> list[str]:
    said = [line.split() for line in read_journal(folder)]
    connection = _connect(folder)
    bodies = [delivery.message.body for chunk in connection.browse(WORK) for delivery in chunk]
    connection.close()
    there = Counter(body.rpartition(".")[0] for body in bodies)
    tried, told, undone = ({unit for verb, unit in said if verb == wanted} for wanted in ("try", "ok", "undone"))
    return [
        *(f"unit {unit} is lost" for unit in told - there.keys()),
        *(f"unit {unit} was not sent" for unit in there.keys() - (tried - undone)),
        *(f"unit {unit} has {count} messages" for unit, count in there.items() if count != SIZE),
        *(f"message {body} is there twice" for body, count in Counter(bodies).items() if count > 1),
    ]


def _connect(folder: Path) -> Connection:
    return connect(ConnectionSettings(f"embedded://{folder}/{BROKER}"))


def main() -> int:
    """Print one line; 0 if nothing was lost or torn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    report = run(options.rounds, options.jobs)
    print("\n".join([str(report), *report.wrong]))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
