"""A password is found in nothing that Spark shows, logs or writes, however it is given."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import secret_queries
from brokers import registry
from guarded_artemis import PASSWORD, GuardedArtemis
from secret_queries import CALLS, VISIBLE
from spark_session import SUPPORT, java_home

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(900)]
WAYS = ["url", "password", "env", "file", "call"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Iterator[Path]:
    """Run the queries, and return the folder with everything that they left."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "secret").write_text(PASSWORD)
    (folder / "kept").mkdir()
    broker = GuardedArtemis()
    try:
        url = broker.start().url("amqp")
        environment = os.environ | {"SECRET": PASSWORD, "SECRET_CALLS": str(folder / CALLS), "JAVA_HOME": java_home()}
        with (folder / "kept" / "log").open("wb") as log:
            command = [sys.executable, "-W", "ignore", "-m", secret_queries.__name__, str(folder / "kept"), url]
            subprocess.run(command, cwd=SUPPORT, env=environment, stdout=log, stderr=log, timeout=800, check=False)
        yield folder / "kept"
    finally:
        registry.discard(broker)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_every_way_works(kept: Path) -> None:
    for way in WAYS:
        assert (kept / way / "explained").read_text().count('"numInputRows": 3'), (kept / "log").read_text()[-4000:]
    assert len(files(kept / "pages")) > 20


def test_what_is_to_be_found_is_found(kept: Path) -> None:
    """So the search is not blind: a setting that is no secret is in the log of events and on the pages."""
    found = {path.relative_to(kept).parts[0] for path in files(kept) if VISIBLE.encode() in path.read_bytes()}
    assert {"events", "pages"} <= found


def test_the_password_is_nowhere(kept: Path) -> None:
    assert {path.relative_to(kept).parts[0] for path in files(kept)} >= {"log", "events", "pages", *WAYS}
    assert [str(path) for path in files(kept) if PASSWORD.encode() in path.read_bytes()] == []


def test_each_process_that_connects_asks_for_it(kept: Path) -> None:
    assert set((kept.parent / CALLS).read_text().split()) == {"driver", "task"}
