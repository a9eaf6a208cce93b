"""Some of the points at which a process can die or its disk fail, few enough for every test run."""

import os

import pytest

from tests.torture import crash_points, group_points, power_loss
from tests.torture.strace import StraceMissing, find_strace

KILLED, FAILED, IMAGES = 100, 50, 120
JOBS = 2
SHOWN = 10  # of what is wrong


@pytest.fixture(autouse=True)
def strace() -> None:
    """A missing strace fails where everything must be tested, and skips elsewhere."""
    try:
        find_strace()
    except StraceMissing as problem:
        if os.environ.get("CI"):
            pytest.fail(str(problem))
        pytest.skip(str(problem))


@pytest.mark.parametrize(("size", "errors"), [(KILLED, False), (FAILED, True)], ids=["killed", "disk fails"])
def test_nothing_is_lost_at_any_point(size: int, errors: bool, capsys: pytest.CaptureFixture[str]) -> None:
    points = crash_points.all_points(errors=errors)
    report = crash_points.run(crash_points.sample(points, size, seed=20), len(points), seed=20, jobs=JOBS)
    judge(capsys, f"{'disk errors' if errors else 'crash points'}: {report}", report.wrong)


def test_what_was_committed_survives_a_power_cut(capsys: pytest.CaptureFixture[str]) -> None:
    report = power_loss.run(IMAGES, seed=20, jobs=JOBS)
    judge(capsys, f"power loss: {report}", report.wrong)


def test_threads_that_commit_together_are_told_what_is_on_the_disk(capsys: pytest.CaptureFixture[str]) -> None:
    report = group_points.run(rounds=1, jobs=JOBS, every=4)
    judge(capsys, f"group commit: {report}", report.wrong)


def judge(capsys: pytest.CaptureFixture[str], figures: str, wrong: list[str]) -> None:
    with capsys.disabled():
        print(f"\n{figures}")
    assert not wrong, "\n".join(wrong[:SHOWN])
