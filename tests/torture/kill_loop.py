"""Kills processes that share one embedded broker, over and over, and proves that no message is lost or doubled.

``python -m tests.torture.kill_loop --messages 20000 --kills 100``
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.torture.supervisor import Herd, kill_at_random
from tests.torture.verdict import Verdict, judge, rows_left

__all__ = ["KILLS", "MESSAGES", "Report", "run"]

MESSAGES = 20_000
KILLS = 100
SIZES = {"producer": 3, "consumer": 2, "listener": 2, "concurrent": 2}
DRAIN_PATIENCE = 30.0


@dataclass
class Report:
    """One run."""

    seed: int
    kills: int
    seconds: float
    stuck: int
    verdict: Verdict
    crashed: list[str]
    complaints: str

    @property
    def good(self) -> bool:
        return self.verdict.good and not self.crashed and not self.stuck

    def __str__(self) -> str:
        figures = {"kills": self.kills, **vars(self.verdict), "stuck": self.stuck, "crashed": len(self.crashed)}
        del figures["faults"]
        line = ", ".join(f"{name.replace('_', ' ')} {figure}" for name, figure in figures.items())
        return f"{line} ({self.seconds:.0f} s, seed {self.seed})"


def run(messages: int, kills: int, seed: int, folder: Path) -> Report:
    """Run the loop.

    Args:
        messages: How many messages must have been committed at least.
        kills: How many processes are killed at least.
        seed: Which processes are killed and what the workers do; not when the scheduler runs them.
        folder: An empty folder for the broker's file and the journals.
    """
    began = time.monotonic()
    herd = Herd(folder, seed, SIZES)
    with herd.guarded():
        killed = kill_at_random(herd, random.Random(seed), lambda n: n >= kills and _committed(herd) >= messages)
        herd.stop("producer")
        stuck = _drain(herd)
        herd.stop("consumer")
        herd.stop("listener")
        herd.stop("concurrent")
    verdict = judge(folder, herd.outlawed)
    return Report(seed, killed, time.monotonic() - began, stuck, verdict, herd.crashed, herd.complaints())


def _committed(herd: Herd) -> int:
    return herd.counts["producer ok"]


def _drain(herd: Herd) -> int:
    """Wait until the living have consumed all; gives how many messages somebody keeps to himself."""
    end = time.monotonic() + DRAIN_PATIENCE
    while (left := rows_left(herd.folder, "work")) and time.monotonic() < end:
        time.sleep(0.1)
        herd.count()
    return left


def main() -> int:
    """Run once, print one line; 0 if nothing was lost or doubled and every process could open the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--keep", action="store_true", help="keep the folder even if all is well")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="jmsjca-torture-"))
    report = run(options.messages, options.kills, options.seed, folder)
    print(report)
    if report.good and not options.keep:
        shutil.rmtree(folder)
        return 0
    for fault in [*report.verdict.faults, report.complaints]:
        print(fault)
    again = f"--messages {options.messages} --kills {options.kills} --seed {options.seed}"
    print(f"Kept: {folder}\nReplay: python -m tests.torture.kill_loop {again}")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
