"""Takes the power away at every moment of a workload, and proves that what was committed is on the disk.

``python -m tests.torture.power_loss`` looks at every image; ``--sample 200`` at some of each workload. The process runs
under strace, which tells its writes and syncs; the images are what a disk may hold that kept only what was synced, that
and the first of the rest, or that and any of the rest, some of it torn.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.model.machine import FAST
from tests.torture.crashed_process import BROKER
from tests.torture.judge import judge_image
from tests.torture.lossy_disk import Disk, Image
from tests.torture.strace import Event, record
from tests.torture.workloads import WORKLOADS

__all__ = ["Report", "run"]

LOCK_FILE = b"jmsjca-handover1".ljust(4096, b"\0")  # without a message that was handed over
PROCESSES = 9  # more than use the file in any workload
LAST = 64  # of the writes before a sync, each is the first that is lost


class Cut(NamedTuple):
    """The power is gone: how many words had begun and ended, and how to make what the disk holds."""

    kind: str
    begun: int
    ended: int
    image: Callable[[], Image]


def cuts(events: Sequence[Event], seed: int) -> Iterator[Cut]:
    """Every moment of a workload. An image is to be made before the next is asked for."""
    disk, dice = Disk(), random.Random(seed)
    begun = ended = 0
    for event in events:
        said = event.data if event.what == "say" else b""
        begun, ended = begun + (said == b"begin\n"), ended + (said == b"end\n")
        if event.what == "sync" or said == b"end\n":
            for count in range(max(0, disk.pending - LAST), disk.pending):
                yield Cut("prefix", begun, ended, partial(disk.prefix, count))
        disk.apply(event)
        if said or event.what == "sync":
            yield Cut("bare", begun, ended, disk.bare)
        if disk.pending:
            yield Cut("torn", begun, ended, partial(disk.torn, random.Random(dice.random())))


@dataclass
class Report:
    """One run."""

    seed: int
    total: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {count}" for part, count in self.seen.items())
        return (
            f"{self.seen.total()} of {self.total} images opened, {len(self.wrong)} violated "
            f"({parts}; {self.seconds:.0f} s, seed {self.seed})"
        )


def run(size: int | None, seed: int, jobs: int) -> Report:
    """Look at so many images, the same number of each workload; None for all."""
    report, began = Report(seed), time.monotonic()
    recorded = {workload: _record(workload) for workload in WORKLOADS}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for workload, events in recorded.items():
            total = sum(1 for _ in cuts(events, seed))
            share = total if size is None else min(total, size // len(WORKLOADS))
            some = sorted(random.Random(seed).sample(range(total), share))
            report.total += total
            for seen, wrong in pool.map(partial(_look, workload, events, seed), (some[n::jobs] for n in range(jobs))):
                report.seen += seen
                report.wrong += wrong
    report.seconds = time.monotonic() - began
    return report


def _record(workload: str) -> list[Event]:
    with tempfile.TemporaryDirectory(prefix="jmsjca-power-", dir=FAST) as folder:
        return record(workload, Path(folder))


def _look(workload: str, events: Sequence[Event], seed: int, which: Sequence[int]) -> tuple[Counter[str], list[str]]:
    """Open the images of these numbers."""
    seen, wrong, numbers = Counter[str](), list[str](), set(which)
    for number, cut in enumerate(cuts(events, seed)):
        if number in numbers:
            seen[cut.kind] += 1
            problem = _open(workload, cut)
            wrong += [f"{workload}: {cut.kind} image {number} after {cut.ended} words: {problem}"] if problem else []
    return seen, wrong


def _open(workload: str, cut: Cut) -> str | None:
    with tempfile.TemporaryDirectory(prefix="jmsjca-image-", dir=FAST) as folder:
        for name, content in cut.image().items():
            Path(folder, name).write_bytes(content)
        locks = Path(folder, f"{BROKER}-owners")
        locks.mkdir()
        for owner in range(1, PROCESSES):  # synced before a process claims anything; the slots are lost
            Path(locks, f"{owner}.lock").write_bytes(LOCK_FILE)
        return judge_image(workload, Path(folder), cut.begun, cut.ended)


def main() -> int:
    """Print one line; 0 if nothing that was committed is missing, doubled or torn in any image."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="open so many images only")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16), help="which ones, and how they are torn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    report = run(options.sample, options.seed, options.jobs)
    print(report)
    for wrong in report.wrong:
        print(wrong)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
