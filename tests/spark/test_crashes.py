"""A crash at any point of a task, or of the driver's clean-up, loses nothing and doubles nothing."""

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.spark import crashing
from tests.support.s3_server import S3Server, s3_server


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_crash_anywhere_and_another_where_settling_is_in_doubt(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys
) -> None:
    """Some points; all, and the second crash, with JMSJCA_ALL_STEPS=1."""
    reports = crash_everywhere(tmp_path, request.getfixturevalue("s3") if kind == "s3" else None)
    for report in reports:
        assert (report["handed"], report["left"], report["later"]) == (crashing.TEXTS, 0, []), report
    # Each series ends with a run that passes no further point.
    assert {report["code"] for report in reports if report["code"] != crashing.CRASHED} == {0}
    points = {report["point"] for report in reports}
    if os.environ.get("JMSJCA_ALL_STEPS"):
        named = NAMED | (IN_FOLDER if kind == "folder" else IN_BUCKET)
        assert {f"{when} {name}" for when in ("before", "after") for name in named} <= points
    else:
        assert len(points) > len(NAMED)
    with capsys.disabled():
        print(f"\n{sum(report['code'] == crashing.CRASHED for report in reports)} crashes", end="")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_without_exclusive_creation_a_crash_loses_nothing(kind: str, tmp_path: Path) -> None:
    with s3_server("plain") if kind == "s3" else nullcontext() as server:
        reports = crash_everywhere(tmp_path, server, "--at-least-once")
    for report in reports:
        assert (report["left"], report["later"]) == (0, []), report
        times = Counter(report["handed"])
        assert set(times) == {*crashing.TEXTS}, report
        assert max(times.values()) <= CRASHES + 1, report
    again = [report["point"] for report in reports if len(report["handed"]) > len(crashing.TEXTS)]
    assert again  # the guarantee is the weaker one
    assert {report["code"] for report in reports if report["code"] != crashing.CRASHED} == {0}
    assert len({report["point"] for report in reports}) > len(NAMED)


def crash_everywhere(folder: Path, server: S3Server | None, *options: str) -> list[dict[str, Any]]:
    bucket = [] if server is None else ["--bucket", server.new_bucket(), "--endpoint", server.endpoint]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", crashing.__name__, str(folder), *bucket, *options],
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


CRASHES = 2  # in one run, at most
NAMED = {
    "PartitionReader._receive",
    "Staging.publish",
    "EmbeddedUnit.commit",
    "Staging.confirm",
    "partition.resolve_duplicates",
}
IN_FOLDER = {"folder_store._write", "os.link", "Path.rename", "Path.replace"}
IN_BUCKET = {"ObjectStore._put", "ObjectStore._delete", "ObjectStore.remove_folder"}
