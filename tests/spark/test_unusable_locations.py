"""Staging locations that cannot be used: the error names the location, the reason and the remedy."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jmsjca.__main__ import run
from jmsjca.errors import StoreError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.partition import orphans
from jmsjca.spark.reader import JmsStreamReader
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Origin, Staging
from jmsjca.spark.staging_location import open_location, repair
from jmsjca.spark.store import StoreUnavailableError
from tests.support.s3_server import CREDENTIALS

PART = EpochPartition(1, 0)
NOBODY = 65534
ONE_USER = "the driver and all executors need the same user"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users may enter, as they may not enter those of pytest."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def another_user(owned: Path) -> Iterator[None]:
    """Run as a user that does not own a file or folder. Only root can; others take the rights to it from themselves."""
    mode = owned.stat().st_mode
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    else:
        owned.chmod(0)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        else:
            owned.chmod(mode)


def staged(folder: Path) -> Staging:
    made = Staging(folder, "g")
    made.begin(Origin("queue:orders"))
    made.create_epoch(1)
    made.claim("query")
    made.publish(PART, StagedPart(pa.table({"text": ["t"]}), ["k"], Counts(1, 1)))
    made.record_decision(PART, [])
    return made


def test_a_location_that_is_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StoreError, match=rf"{file} cannot hold staged messages: .*Not a directory.*stagingLocation"):
        Staging(file, "g").begin(Origin("queue:orders"))


def test_a_stream_with_a_location_that_is_a_file_is_told(broker) -> None:
    broker.location.write_text("x")
    broker.send("a")
    reader = JmsStreamReader(broker.options())
    with pytest.raises(StoreError, match="cannot hold staged messages"):
        reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    reader.stop()
    assert broker.waiting() == ["a"]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_location_that_is_a_file_is_told_before_the_first_message(broker, guarantee) -> None:
    broker.location.write_text("x")
    reader = JmsStreamReader(broker.options(guarantee=guarantee))
    with pytest.raises(StoreError, match=r"cannot hold staged messages: .*Not a directory.*stagingLocation"):
        reader.initialOffset()


def test_a_location_of_another_user_is_told_before_the_first_message(broker, shared: Path) -> None:
    reader = JmsStreamReader(broker.options(stagingLocation=shared / "new" / "staging"))
    with another_user(shared), pytest.raises(StoreError, match=rf"{shared}.*Permission denied.*{ONE_USER}"):
        reader.initialOffset()


def test_a_bucket_that_cannot_be_reached_is_told_before_the_first_message(broker, monkeypatch) -> None:
    monkeypatch.setenv("STAGING", "KEY:SECRET")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        closed_port = closed.getsockname()[1]
    bucket = {"stagingLocation": "s3://bucket/x", "stagingEndpoint": f"http://127.0.0.1:{closed_port}"}
    reader = JmsStreamReader(broker.options(**bucket, stagingCredentials="env:STAGING", stagingRegion="eu"))
    with pytest.raises(StoreUnavailableError, match=r"s3://bucket/x/v1/FOLDER cannot be used now"):
        reader.initialOffset()


def test_a_look_at_a_location_makes_no_folder(broker) -> None:
    reader = JmsStreamReader(broker.options())
    assert reader.initialOffset() == reader.initialOffset()
    assert not broker.location.exists()


@pytest.mark.parametrize("missing", [True, False])
def test_a_location_that_cannot_be_written_is_told(shared: Path, missing: bool) -> None:
    location = shared / "staging" if missing else shared
    with another_user(shared), pytest.raises(StoreError, match=rf"{shared}.*Permission denied.*{ONE_USER}"):
        Staging(location, "g").begin(Origin("queue:orders"))


def test_a_generation_that_cannot_be_written_is_told(shared: Path) -> None:
    folder = staged(shared).store.folder
    with another_user(folder), pytest.raises(StoreError, match=rf"{folder}.*{ONE_USER}.*Permission denied"):
        Staging(shared, "g").begin(Origin("queue:orders"))


def test_an_executor_with_another_user_is_told(shared: Path) -> None:
    owner = staged(shared).store.folder / "OWNER"
    with another_user(owner), pytest.raises(StoreError, match=rf"{owner}.*Permission denied.*{ONE_USER}"):
        Staging(shared, "g").claim("query")


def test_a_file_that_an_executor_cannot_create_is_told(shared: Path) -> None:
    staging = Staging(shared, "g")
    staging.create_epoch(1)
    folder = staging.store.folder / "e-0000000001"
    with another_user(folder), pytest.raises(StoreError, match=rf"{folder}.*Permission denied.*{ONE_USER}"):
        staging.publish(PART, StagedPart(pa.table({"text": ["t"]}), ["k"], Counts(1, 1)))


def test_a_folder_that_cannot_be_listed_has_no_less_in_it(shared: Path) -> None:
    """Otherwise the messages of a lost checkpoint would be passed over."""
    folder = staged(shared).store.folder
    folder.chmod(0o700)
    with another_user(folder), pytest.raises(StoreError, match=rf"{folder}.*Permission denied.*{ONE_USER}"):
        list(orphans(shared))


def test_a_folder_behind_one_that_cannot_be_entered_is_not_taken_for_missing(shared: Path) -> None:
    folder = staged(shared).store.folder
    folder.chmod(0o600)
    with another_user(folder), pytest.raises(StoreError, match=rf"{folder}.*Permission denied.*{ONE_USER}"):
        Staging(shared, "g").check_present(1)


@pytest.mark.parametrize("name", ["OWNER", "e-0000000001/p-00000.arrow"])
def test_a_repair_by_another_user_is_no_finding_of_nothing(shared: Path, capsys, name: str) -> None:
    path = staged(shared).store.folder / name
    assert run(["spark", "repair", str(shared)]) == 0
    path.write_bytes(b"")
    with another_user(path):
        assert run(["spark", "repair", str(shared)]) == 1
    assert f"{shared}/v1/g/" in (said := " ".join(capsys.readouterr().err.split()))
    assert ONE_USER in said
    assert path.exists()


def test_a_repair_tells_what_it_cannot_read(tmp_path: Path) -> None:
    owner = staged(tmp_path).store.folder / "OWNER"
    owner.unlink()
    owner.mkdir()
    with pytest.raises(StoreUnavailableError, match=rf"{tmp_path} could not be checked .*Is a directory: '{owner}'"):
        repair(FolderStore(tmp_path))


def test_a_stream_in_a_missing_bucket_is_told(s3) -> None:
    store = open_location("s3://no-such-bucket/p", endpoint=s3.endpoint, credentials=CREDENTIALS)
    with pytest.raises(StoreError, match=r"s3://no-such-bucket/p cannot hold staged messages: .*stagingLocation"):
        Staging(store, "g").begin(Origin("queue:orders"))
