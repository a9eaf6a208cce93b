"""Samples of each torture run, small enough for every test run."""

import importlib.util
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture import failed_releases, relay_kills, replay_kills, stop_moments
from tests.torture.kill_loop import KILLS, run
from tests.torture.planted_faults import CHECKS, PLACE, find, read_faults
from tests.torture.strace import whole_calls

SAMPLE = 8


def test_kills_lose_and_double_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(1500, SAMPLE, seed=20, folder=tmp_path)
    with capsys.disabled():
        print(f"\nkills {report.kills} of {KILLS} (sample): {report}")
    assert report.good, f"{report}\n{report.verdict.faults}\n{report.complaints}"


def test_relays_that_are_killed_send_each_message_once(capsys: pytest.CaptureFixture[str]) -> None:
    report = relay_kills.run("embedded", rows=600, kills=3, seed=20)
    with capsys.disabled():
        print(f"\nkills of relays (sample of 100): {report}")
    assert not report.wrong, f"{report}"
    assert (report.lost, report.doubled) == (0, 0)


def test_dead_letters_whose_replay_is_killed_are_replayed_once(capsys: pytest.CaptureFixture[str]) -> None:
    report = replay_kills.run("embedded", letters=500, kills=2, seed=20)
    with capsys.disabled():
        print(f"\nkills of replays (sample of 10000 letters): {report}")
    assert report.kills > 0, f"{report}"
    assert not report.wrong, f"{report}"


def test_the_account_of_a_stop_is_that_of_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    report = stop_moments.run("embedded", moments=6, seed=20)
    with capsys.disabled():
        print(f"\nstops at random moments (sample of 200): {report}")
    assert not report.wrong, f"{report}: {report.wrong}"
    assert report.total("finished") > 0


def test_no_message_stays_held_whichever_statement_fails(capsys: pytest.CaptureFixture[str]) -> None:
    points = failed_releases.all_points()
    report = failed_releases.run(random.Random(20).sample(points, 200), len(points), seed=20)
    with capsys.disabled():
        print(f"\nfailed releases: {report}")
    assert not report.wrong, "\n".join(report.wrong[:10])


PLANTED_SAMPLE = {
    "the count starts at zero when a message is redelivered",
    "a unit settles in one transaction and sends in the next",
    "a send waits for the disk no longer than a receipt does",
}


@pytest.mark.parametrize("fault", [f for f in read_faults() if f.name in PLANTED_SAMPLE], ids=lambda fault: fault.check)
def test_planted_fault_is_found(fault) -> None:
    assert find(fault).said is not None


FUZZ_SAMPLE = 30_000
WHOLE = 10_000_000


def test_frames_are_read_as_an_independent_reader_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("atheris") is None:
        _missing(f"atheris has no wheel for Python {sys.version_info.major}.{sys.version_info.minor}: no fuzzing here")
    command = [sys.executable, "-m", "tests.torture.fuzz_stomp", "--runs", str(FUZZ_SAMPLE), "--seed", "20"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    with capsys.disabled():
        print(f"\nfuzz executions {executed[1] if executed else 'unknown'} of {WHOLE} (sample)")
    assert done.returncode == 0, done.stderr[-4000:]
    assert executed is not None
    assert int(executed[1]) >= FUZZ_SAMPLE


def _missing(why: str) -> None:
    """Where everything must be tested this fails; elsewhere it is told."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


LINES = """\
11 openat(AT_FDCWD<\\x2f\\x61>, "\\x62", O_RDWR <unfinished ...>
12 write(3<\\x61>, "\\x62", 1) = 1
11 <... openat resumed>|O_CREAT, 0644) = 5<\\x61>
12 +++ exited with 0 +++
"""


def test_calls_that_another_thread_cut_in_two_are_whole():
    """Where nobody noticed, a file was written to that nobody had made."""
    assert list(whole_calls(LINES.splitlines())) == [
        '12 write(3<\\x61>, "\\x62", 1) = 1',
        '11 openat(AT_FDCWD<\\x2f\\x61>, "\\x62", O_RDWR|O_CREAT, 0644) = 5<\\x61>',
        "12 +++ exited with 0 +++",
    ]


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "reliability.md"


def test_every_planted_fault_is_documented() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [f"| {fault.name} | {fault.check} |" in rows for fault in read_faults()] == [True] * len(read_faults())


def test_every_planted_fault_fits_the_source() -> None:
    texts = {fault.name: (ROOT / "jmsjca" / PLACE / fault.file).read_text() for fault in read_faults()}
    assert [fault.name for fault in read_faults() if texts[fault.name].count(fault.old) != 1] == []


def test_every_check_has_a_fault_to_find() -> None:
    assert {fault.check for fault in read_faults()} == set(CHECKS)
