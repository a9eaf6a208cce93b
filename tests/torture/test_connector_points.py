"""A connector that is killed in each recovery mode: a few points of each, or all with ``JMSJCA_ALL_STEPS=1``."""

import os
import random

import pytest

from tests.torture import connector_points
from tests.torture.connector_points import MODES
from tests.torture.strace import StraceMissing, find_strace

POINTS_OF_A_MODE = 3
JOBS = 2
SHOWN = 10  # of what is wrong


@pytest.mark.timeout(3600)
def test_nothing_is_lost_and_duplicates_are_those_of_the_mode(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        find_strace()
    except StraceMissing as problem:
        if os.environ.get("CI"):
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    points = connector_points.all_points()
    chosen = points
    if not os.environ.get("JMSJCA_ALL_STEPS"):
        dice = random.Random(31)
        groups = [[point for point in points if point.workload == mode] for mode in MODES]
        chosen = [point for group in groups for point in dice.sample(group, min(POINTS_OF_A_MODE, len(group)))]
    report = connector_points.run(chosen, len(points), JOBS)
    with capsys.disabled():
        print(f"\nconnector crash points: {report}")
    assert not report.wrong, "\n".join(report.wrong[:SHOWN])
    assert {point.workload for point in chosen} == set(MODES)
