"""A crash at any point of a task, or of the driver's clean-up, loses nothing and doubles nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import crashing


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_crash_anywhere_and_another_where_settling_is_in_doubt(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys
) -> None:
    bucket: list[str] = []
    if kind == "s3":
        server = request.getfixturevalue("s3")
        bucket = [server.new_bucket(), server.endpoint]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", crashing.__name__, str(tmp_path), *bucket],
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    for report in reports:
        assert (report["handed"], report["left"], report["later"]) == (crashing.TEXTS, 0, []), report
    # Each series ends with a run that passes no further point.
    assert {report["code"] for report in reports if report["code"] != crashing.CRASHED} == {0}
    points = {report["point"] for report in reports}
    if kind == "folder" or os.environ.get("JMSJCA_ALL_STEPS"):
        named = NAMED | (IN_FOLDER if kind == "folder" else IN_BUCKET)
        assert {f"{when} {name}" for when in ("before", "after") for name in named} <= points
    else:
        assert len(points) > len(IN_BUCKET)
    with capsys.disabled():
        print(f"\n{sum(report['code'] == crashing.CRASHED for report in reports)} crashes", end="")


NAMED = {
    "PartitionReader._receive",
    "Staging.publish",
    "EmbeddedUnit.commit",
    "Staging.confirm",
    "partition.resolve_duplicates",
}
IN_FOLDER = {"folder_store._write", "os.link", "Path.rename", "Path.replace"}
IN_BUCKET = {"ObjectStore._put", "ObjectStore._delete", "ObjectStore.remove_folder"}
