"""A password is found in nothing that Spark shows, logs or writes, however it is given; with Connect by a reference."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import secret_queries
from brokers import registry
from brokers.ports import free_ports
from guarded_artemis import PASSWORD, GuardedArtemis
from secret_queries import CALLS, VISIBLE, event_log
from spark_cluster import connect_server
from spark_session import SUPPORT, java_home

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(900)]
WAYS = ["url", "password", "env", "file", "call"]
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark-clusters.md"
REDACTION = "spark.redaction.string.regex"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start the broker, and return its URL."""
    broker = GuardedArtemis()
    try:
        yield broker.start().url("amqp")
    finally:
        registry.discard(broker)


@pytest.fixture(scope="module")
def kept(url: str, tmp_path_factory) -> Path:
    """Run the queries, and return the folder with everything that they left."""
    folder = make_folder(tmp_path_factory.mktemp("secrets"))
    query(folder, url)
    return folder


def make_folder(base: Path) -> Path:
    """Return a new folder beside a file with the password."""
    (base / "secret").write_text(PASSWORD)
    (base / "kept").mkdir()
    return base / "kept"


def environment(folder: Path) -> dict[str, str]:
    return {"SECRET": PASSWORD, "SECRET_CALLS": str(folder.parent / CALLS), "JAVA_HOME": java_home()}


def query(folder: Path, *arguments: str) -> None:
    """Run the queries in a process of their own."""
    command = [sys.executable, "-W", "ignore", "-m", secret_queries.__name__, str(folder), *arguments]
    with (folder / "log").open("wb") as log:
        given = os.environ | environment(folder)
        subprocess.run(command, cwd=SUPPORT, env=given, stdout=log, stderr=log, timeout=800, check=False)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def places(folder: Path, text: str) -> set[str]:
    """Return what has files with a text: the log, the pages, the events, or what a way to give the password left."""
    return {path.relative_to(folder).parts[0] for path in files(folder) if text.encode() in path.read_bytes()}


def check_that_each_works(folder: Path, *ways: str) -> None:
    for way in ways:
        explained = folder / way / "explained"
        assert re.search(r'"?numInputRows"?: 3', explained.read_text()), (folder / "log").read_text()[-4000:]
        assert places(folder / way, "")
    assert len(files(folder / "pages")) > 20
    assert {"log", "events", "pages", *ways} <= places(folder, "")


def test_every_way_works(kept: Path) -> None:
    check_that_each_works(kept, *WAYS)


def test_what_is_to_be_found_is_found(kept: Path) -> None:
    """So the search is not blind: a setting that is no secret is in the log of events and on the pages."""
    assert {"events", "pages"} <= places(kept, VISIBLE)


def test_the_password_is_nowhere(kept: Path) -> None:
    assert places(kept, PASSWORD) == set()


def test_each_process_that_connects_asks_for_it(kept: Path) -> None:
    assert set((kept.parent / CALLS).read_text().split()) == {"driver", "task"}


def query_by_connect(url: str, base: Path, settings: Mapping[str, str], *ways: str) -> Path:
    """Run the queries of some ways as a client of Spark Connect, and return the folder with all that is left."""
    folder, port = make_folder(base), str(next(free_ports()))
    with pytest.MonkeyPatch.context() as patch:
        for name, text in environment(folder).items():
            patch.setenv(name, text)  # of the server: it connects
        with connect_server(folder, event_log(folder) | {"spark.ui.port": port} | settings) as remote:
            query(folder, url, remote, f"http://127.0.0.1:{port}", *ways)
    check_that_each_works(folder, *ways)
    assert "connect.log" in places(folder, "")
    assert {"events", "pages"} <= places(folder, VISIBLE)
    return folder


def test_with_connect_a_reference_to_the_password_is_all_that_spark_has(url: str, tmp_path: Path) -> None:
    assert places(query_by_connect(url, tmp_path, {}, "env", "file", "call"), PASSWORD) == set()


def test_with_connect_a_password_is_shown(url: str, tmp_path: Path) -> None:
    """So the search is not blind, and the documentation right."""
    assert places(query_by_connect(url, tmp_path, {}, "url", "password"), PASSWORD) == {"events", "pages"}


def test_with_connect_and_the_documented_setting_a_password_is_nowhere(url: str, tmp_path: Path) -> None:
    [regex] = re.findall(rf"^\$ .*--conf '{REDACTION}=(.*)'$", PAGE.read_text(), re.MULTILINE)
    assert places(query_by_connect(url, tmp_path, {REDACTION: regex}, "url", "password"), PASSWORD) == set()
