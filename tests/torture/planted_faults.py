"""Plants faults into a copy of the broker, one by one, and proves that the checks find them.

``python -m tests.torture.planted_faults`` plants all of them; with numbers after it, those only.
"""

import argparse
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.torture.planting import copied_source, plant, run_in

__all__ = ["PLACE", "Fault", "Found", "find", "read_faults"]

PATIENCE = 300  # seconds
PLACE = "providers/embedded"


class Check(NamedTuple):
    """A module that looks for faults, and what it prints when it finds one."""

    arguments: str
    evidence: str


CRASH, ERRORS, POWER = "tests.torture.crash_points", "tests.torture.crash_points --errors", "tests.torture.power_loss"
UNIT = "pytest -q -x --timeout 30 tests/unit/providers/embedded/test_"
VIOLATED = r" [1-9]\d* violated.*\n(.*)"
CHECKS = {
    "model": Check("tests.model.run --steps 20000 --seed 1 --no-shrink", "AssertionError: (.*)"),
    "crash points": Check(f"{CRASH} --sample 80 --seed 1", VIOLATED),
    "disk errors": Check(f"{ERRORS} --sample 80 --seed 1", VIOLATED),
    "power loss": Check(f"{POWER} --sample 80 --seed 1", VIOLATED),
    "group points": Check("tests.torture.group_points --rounds 3", VIOLATED),
    "waiting": Check(f"{UNIT}wakeup.py tests/torture/test_found_faults.py", "FAILED (.*)"),
    "processes": Check(f"{UNIT}processes.py", "FAILED (.*)"),
    "hand-overs": Check(f"{UNIT}hand_overs.py tests/contract/test_embedded_memory.py::TestClosing", "FAILED (.*)"),
    "failed releases": Check("tests.torture.failed_releases --sample 300 --seed 1", VIOLATED),
    "late releases": Check(f"{UNIT}failed_releases.py", "FAILED (.*)"),
    "removed files": Check(f"{UNIT}file_location.py -k removed", "FAILED (.*)"),
    "group commit": Check(f"{UNIT}group_commit.py", "FAILED (.*)"),
}


@dataclass(frozen=True)
class Fault:
    """One change of the source.

    Args:
        name: What the broker does wrong then.
        file: Where.
        old: The text that is replaced; it stands there once.
        new: What by.
        check: Who must find it.
    """

    name: str
    file: str
    old: str
    new: str
    check: str


class Found(NamedTuple):
    """What a check said of a fault; None if it found nothing."""

    name: str
    check: str
    said: str | None
    seconds: float

    def __str__(self) -> str:
        said = "NOTHING" if self.said is None else self.said[:150]
        return f"{self.name} — {self.check}, {self.seconds:.0f} s: {said}"


def read_faults() -> list[Fault]:
    """All that can be planted."""
    with (Path(__file__).parent / "faults.toml").open("rb") as file:
        return [Fault(**entry) for entry in tomllib.load(file)["fault"]]


def find(fault: Fault) -> Found:
    """Plant a fault, and let its check look for it."""
    return _look(fault.name, fault.check, fault)


def _look(name: str, check: str, fault: Fault | None) -> Found:
    began = time.monotonic()
    with copied_source() as copy:
        if fault is not None:
            plant(copy, f"{PLACE}/{fault.file}", fault.old, fault.new)
        said = _run(CHECKS[check], copy)
    return Found(name, check, said, time.monotonic() - began)


def _run(check: Check, folder: Path) -> str | None:
    try:
        result = run_in(folder, check.arguments.split(), PATIENCE)
    except subprocess.TimeoutExpired:
        return f"it hangs for {PATIENCE} seconds"
    evidence = re.search(check.evidence, result.stdout + result.stderr)
    if result.returncode and not evidence:
        raise ValueError(f"{check.arguments} failed for another reason:\n{result.stdout}{result.stderr}")
    return evidence[1] if evidence else None


def main() -> int:
    """Print one line for each fault; 0 if all are found, and nothing where there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", type=int, nargs="*", help="which faults; all without")
    options = parser.parse_args()
    faults = read_faults()
    missed = 0
    for fault in [faults[n - 1] for n in options.numbers] or faults:
        found = find(fault)
        missed += found.said is None
        print(found, flush=True)
    for check in dict.fromkeys(fault.check for fault in faults) if not options.numbers else ():
        found = _look("no fault", check, None)
        missed += found.said is not None
        print(found, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
