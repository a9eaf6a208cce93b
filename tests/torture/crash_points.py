"""Kills a process at each of its system calls that change the broker's files, and proves that nothing is lost.

``python -m tests.torture.crash_points`` visits every point; ``--sample 200`` some of each workload.
"""

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.model.machine import FAST
from tests.torture.crashed_process import BROKER, Victim, read_account, work
from tests.torture.judge import judge_crash
from tests.torture.strace import find_strace
from tests.torture.workloads import WORKLOADS

__all__ = ["ERRORS", "KILL", "Point", "Report", "enumerate_points", "visit"]

CALLS = (
    "pwrite64",
    "write",
    "fdatasync",
    "fsync",
    "ftruncate",
    "unlink",
    "unlinkat",
    "rename",
    "mkdir",
    "mkdirat",
    "rmdir",
)
KILL = "signal=SIGKILL"
NOT_REACHED = "not reached"
ERRORS = {"fdatasync": "error=EIO", "fsync": "error=EIO", "pwrite64": "error=ENOSPC", "ftruncate": "error=ENOSPC"}
"""What a broken or full disk answers to a system call."""

ATTEMPTS = 5
"""Timing changes the number of system calls: one of the last points may lie beyond the end of a single run."""


class Point(NamedTuple):
    """The n-th of one system call in a workload, and what happens there."""

    workload: str
    call: str
    n: int
    fault: str

    def __str__(self) -> str:
        return f"{self.workload}: {self.fault} at {self.call} {self.n}"


class Visit(NamedTuple):
    """How the process ended at a point, and what was wrong afterwards, if anything."""

    point: Point
    end: str
    wrong: str | None


@dataclass
class Report:
    """One run."""

    total: int
    seed: int
    visits: list[Visit] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        return [f"{visit.point}: {visit.wrong}" for visit in self.visits if visit.wrong]

    def __str__(self) -> str:
        parts = Counter(visit.point.workload for visit in self.visits) + Counter(visit.end for visit in self.visits)
        return (
            f"{len(self.visits)} of {self.total} points visited, {len(self.wrong)} violated "
            f"({', '.join(f'{part} {count}' for part, count in parts.items())}; {self.seconds:.0f} s, seed {self.seed})"
        )


def enumerate_points(workload: str, *, errors: bool = False) -> list[Point]:
    """Run a workload once to count its system calls."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-points-", dir=FAST) as name:
        folder = Path(name)
        status = _run(
            workload, folder, "-o", str(folder / "trace"), "-e", f"trace={','.join(f'?{call}' for call in CALLS)}"
        )
        account = read_account(folder)
        assert (status, account.error) == (0, None), f"{workload} fails by itself: {account}"
        counts = Counter(re.findall(r"^\d+ +(\w+)\(", (folder / "trace").read_text(), re.MULTILINE))
    faults = ERRORS if errors else dict.fromkeys(CALLS, KILL)
    return [Point(workload, call, n + 1, fault) for call, fault in faults.items() for n in range(counts[call])]


def visit(point: Point) -> Visit:
    """Let a process die, or its disk fail, at one point; then look what is left. A run that ends before is repeated."""
    for _ in range(ATTEMPTS):
        visited = _visit_once(point)
        if visited.end != NOT_REACHED or visited.wrong:
            return visited
    return Visit(point, "badly", f"The process has not reached the point in {ATTEMPTS} runs.")


def _visit_once(point: Point) -> Visit:
    with tempfile.TemporaryDirectory(prefix="jmsjca-point-", dir=FAST) as name:
        folder = Path(name)
        inject = f"inject={point.call}:{point.fault}:when={point.n}"
        status = _run(point.workload, folder, "-o", os.devnull, "-e", f"trace={point.call}", "-e", inject)
        account = read_account(folder)
        if status not in ({-signal.SIGKILL, 0} if point.fault == KILL else {0}):
            return Visit(point, "badly", f"The process ended with {status}; {account}")
        end = "killed" if status else account.error or (NOT_REACHED if point.fault == KILL else "no error")
        return Visit(point, end, judge_crash(point.workload, folder, account))


def files_of(folder: Path) -> list[Path]:
    """What a broker writes to."""
    files = [folder / f"{BROKER}{suffix}" for suffix in ("", "-journal", "-wal", "-shm", "-owners")]
    return [*files, *(folder / f"{BROKER}-owners" / f"{n}.lock" for n in range(1, 9))]


def _run(workload: str, folder: Path, *options: str) -> int:
    victim = Victim(partial(work, workload), folder)
    with find_strace().tracing(victim.pid, files_of(folder), *options):
        return victim.run()


def run(points: Sequence[Point], total: int, seed: int, jobs: int) -> Report:
    """Visit points, several at a time."""
    began = time.monotonic()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        visits = list(pool.map(visit, points, chunksize=8))
    return Report(total, seed, visits, time.monotonic() - began)


def all_points(*, errors: bool = False) -> list[Point]:
    """Every point of every workload."""
    return [point for workload in WORKLOADS for point in enumerate_points(workload, errors=errors)]


def sample(points: Sequence[Point], size: int, seed: int) -> list[Point]:
    """Draw some points, as many of each workload."""
    dice = random.Random(seed)
    share = size // len(WORKLOADS)
    groups = [[point for point in points if point.workload == workload] for workload in WORKLOADS]
    return [point for group in groups for point in sorted(dice.sample(group, min(share, len(group))))]


def main() -> int:
    """Print one line; 0 if nothing was lost, doubled or torn at any point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--errors", action="store_true", help="let the disk fail instead of killing")
    parser.add_argument("--sample", type=int, help="visit so many points only")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16), help="which ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    points = all_points(errors=options.errors)
    some = sample(points, options.sample, options.seed) if options.sample else points
    report = run(some, len(points), options.seed, options.jobs)
    print(report)
    for wrong in report.wrong:
        print(wrong)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
