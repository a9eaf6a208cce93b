"""Plants a fault for each sentence of the manual, each public method and some former defects; runs the test of each.

``python -m tests.torture.documentation_faults`` plants all of them; texts after it choose those whose sentence, method
or test contains one of the texts. Tests run on the embedded broker in memory, each alone.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.docs.manual_rows import node_id, read_rows
from tests.torture.planting import copied_source, plant, run_in

__all__ = ["JOBS", "Fault", "Report", "cited_tests", "must_fail", "plant_all", "read_faults"]

JOBS = 2
TEST_TIMEOUT, PROCESS_TIMEOUT = 120, 900  # seconds; tests with a Spark session have a longer timeout of their own
PYTEST = ["pytest", "-x", "-q", "-rf", "-p", "no:cacheprovider", f"--timeout={TEST_TIMEOUT}", "--timeout-method=thread"]
LAST_LINES = 20  # that are shown of a run whose test did not fail
ELSEWHERE = "brokers/"  # tests that need a broker of their own
LACKING = {"JMSJCA_CONFORMANCE": "", "JMSJCA_DATA": ""}  # a fresh clone has no such files


@dataclass(frozen=True)
class Fault:
    """One change of the source, which breaks what a sentence or a public method promises, and nothing else.

    Args:
        file: Path of the changed file below ``jmsjca``.
        old: The text that is replaced; it occurs once in the file.
        new: The replacement.
        sentence: First cell of a row of ``docs/reference/inbound-manual.md`` or ``docs/reference/outbound-manual.md``.
        method: Public method, such as ``Session.commit``, for a fault that belongs to no row.
        defect: What was wrong once, for a fault that repeats a defect that other clients or brokers showed.
        test: The test that must fail, as the row cites it. None stands for every test that the row cites.
        hangs: True if the promise is that something ends, so that a test which does not end has failed.
    """

    file: str
    old: str
    new: str
    sentence: str = ""
    method: str = ""
    defect: str = ""
    test: str | None = None
    hangs: bool = False

    @property
    def subject(self) -> str:
        """The sentence, the method or the defect."""
        return self.sentence or self.method or self.defect


class Report(NamedTuple):
    """The result of the faults that were planted: for each fault the reasons why it counts as missed."""

    missed: dict[Fault, list[str]]
    total: int

    def __str__(self) -> str:
        planted = len(self.missed)
        caught = sum(not reasons for reasons in self.missed.values())
        return f"documentation faults: caught {caught} / planted {planted} / total {self.total}"

    @property
    def complaints(self) -> list[str]:
        """One text for each test that did not fail."""
        return [f"{fault.subject}: {why}" for fault, reasons in self.missed.items() for why in reasons]


def read_faults() -> list[Fault]:
    """Return all faults, in the order of their files."""
    files = sorted((Path(__file__).parent / "manual_faults").glob("*.toml"))
    return [Fault(**entry) for file in files for entry in tomllib.loads(file.read_text()).get("fault", ())]


def cited_tests(sentence: str) -> list[str]:
    """Return the tests that the row of a sentence cites; without those that need a broker of their own."""
    rows = [row for row in read_rows() if row.sentence == sentence]
    return [test for row in rows for test in row.tests if not test.startswith(ELSEWHERE)]


def must_fail(fault: Fault) -> list[str]:
    """Return the tests of which each must fail on the fault, alone."""
    return [fault.test] if fault.test else cited_tests(fault.sentence)


def plant_all(faults: Sequence[Fault], total: int, jobs: int = JOBS, *, verbose: bool = False) -> Report:
    """Plant faults one by one, and run their tests.

    Args:
        faults: The faults.
        total: The number of faults that there are.
        jobs: Number of copies at the same time.
        verbose: True prints a line for each fault.
    """
    missed = {}
    with ThreadPoolExecutor(jobs) as pool:
        for fault, reasons in zip(faults, pool.map(_reasons_missed, faults), strict=True):
            missed[fault] = reasons
            if verbose:
                print(f"{fault.subject}: {'; '.join(reasons) or 'caught'}", flush=True)
    return Report(missed, total)


def _reasons_missed(fault: Fault) -> list[str]:
    with copied_source() as copy:
        try:
            plant(copy, fault.file, fault.old, fault.new)
        except ValueError as error:
            return [str(error)]
        return [reason for test in must_fail(fault) if (reason := _reason_missed(copy, fault, test))]


def _reason_missed(copy: Path, fault: Fault, test: str) -> str | None:
    """Return why a test proves nothing; None if it failed. A test that hangs, or cannot start, has not failed."""
    try:
        done = run_in(copy, [*PYTEST, node_id(test)], PROCESS_TIMEOUT, **LACKING)
    except subprocess.TimeoutExpired:
        return f"{test} does not end"
    if " Timeout " in done.stdout + done.stderr:
        return None if fault.hangs else f"{test} hangs"
    if done.returncode == 1 and re.search(r"^FAILED ", done.stdout, re.MULTILINE):
        return None
    said = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])
    return f"{test} does not fail, but ends with {done.returncode}:\n{said}"


def _unplanted_failures(faults: Sequence[Fault]) -> list[str]:
    """Return what pytest says of the tests on the source as it is, if they do not all pass."""
    tests = dict.fromkeys(node_id(test) for fault in faults for test in must_fail(fault))
    with copied_source() as copy:
        done = run_in(copy, ["pytest", "-q", "-rfEs", "-p", "no:cacheprovider", *tests], 1800, **LACKING)
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "SKIPPED"))]
    return said or ([done.stdout + done.stderr] if done.returncode else [])


def main() -> int:
    """Print one line for each fault; return 0 if all are caught, and the tests pass without them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="parts of the sentences, methods or tests; all faults without")
    parser.add_argument("--jobs", type=int, default=JOBS, help="copies at the same time")
    options = parser.parse_args()
    faults = read_faults()
    chosen = [
        fault
        for fault in faults
        if not options.texts or any(text in f"{fault.subject} {must_fail(fault)}" for text in options.texts)
    ]
    report = plant_all(chosen, len(faults), options.jobs, verbose=True)
    wrong = report.complaints + _unplanted_failures(chosen)
    print(report, *wrong, sep="\n")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
