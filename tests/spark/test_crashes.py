"""A crash at any point of a task, or of the driver's clean-up, loses nothing and doubles nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import crashing


@pytest.mark.timeout(900)
def test_a_crash_anywhere_and_another_where_settling_is_in_doubt(tmp_path: Path, capsys) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", crashing.__name__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    for report in reports:
        assert (report["handed"], report["left"], report["later"]) == (crashing.TEXTS, 0, []), report
    assert [report["code"] for report in reports if report["code"] != crashing.CRASHED] == [0, 0]  # at the end of each
    assert {f"{when} {name}" for when in ("before", "after") for name in NAMED} <= {r["point"] for r in reports}
    with capsys.disabled():
        print(f"\n{len(reports) - 2} points to crash at", end="")


NAMED = {
    "PartitionReader._receive",
    "Staging.publish",
    "EmbeddedUnit.commit",
    "Staging.confirm",
    "partition.resolve_duplicates",
    "durable_files._write",
    "os.link",
    "Path.rename",
    "Path.replace",
}
