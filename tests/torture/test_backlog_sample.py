"""A sample of the backlog check, small enough for every test run."""

from pathlib import Path

import pytest

from tests.torture.backlog_memory import MESSAGES, run

SAMPLE = 20_000


def test_a_listener_stays_small_in_front_of_a_backlog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(SAMPLE, tmp_path, handled=1_000)
    with capsys.disabled():
        print(f"\n{SAMPLE} of {MESSAGES} messages (sample): {report}")
    assert report.good, str(report)
