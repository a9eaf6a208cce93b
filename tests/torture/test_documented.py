"""The documentation names what is checked."""

from pathlib import Path

from tests.torture.planted_faults import CHECKS, read_faults

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def test_every_planted_fault_is_documented() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [f"| {fault.name} | {fault.check} |" in rows for fault in read_faults()] == [True] * len(read_faults())


def test_every_check_has_a_fault_to_find() -> None:
    assert {fault.check for fault in read_faults()} == set(CHECKS)
