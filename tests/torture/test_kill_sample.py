"""A sample of the kill loop, small enough for every test run."""

from pathlib import Path

import pytest

from tests.torture.kill_loop import KILLS, run

SAMPLE = 8


def test_kills_lose_and_double_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(1500, SAMPLE, seed=20, folder=tmp_path)
    with capsys.disabled():
        print(f"\nkills {report.kills} of {KILLS} (sample): {report}")
    assert report.good, f"{report}\n{report.verdict.faults}\n{report.complaints}"
