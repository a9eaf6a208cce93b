"""Faults planted into Spark's source are found by tests that need no Spark."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.torture.planting import copied_source, plant, run_in

FAULTS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "spark_faults.toml").read_text())["fault"]
CHECKS = sorted({fault["check"] for fault in FAULTS})


def run(check: str, *changes: dict[str, str]) -> str:
    """Return the last line of a check of a copy of the source with some changes."""
    with copied_source() as copy:
        for change in changes:
            plant(copy, f"spark/{change['file']}", change["old"], change["new"])
        done = run_in(copy, ["pytest", "-q", "-x", "-p", "no:cacheprovider", check], 500)
    return done.stdout.splitlines()[-1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"])
def test_a_fault_is_found(fault: dict[str, Any]) -> None:
    assert run(fault["check"], *fault["changes"]).startswith("1 failed")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", CHECKS)
def test_a_check_finds_nothing_where_nothing_is_planted(check: str) -> None:
    found = run(check)
    assert "passed" in found
    assert "failed" not in found
