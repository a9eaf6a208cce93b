"""The repair of a staging location: what has one right answer, and the rest after the administrator has accepted it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jmsjca.errors import InvalidArgumentError, StoreError
from jmsjca.management.commands import app
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Origin, Staging
from jmsjca.spark.staging_location import repair
from jmsjca.spark.store import Store

FIRST, SECOND = EpochPartition(3, 0), EpochPartition(4, 0)


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    """Epoch 2 was removed with a key in doubt; epochs 3 and 4 are staged."""
    made = Staging(tmp_path, "g")
    made.begin(Origin("queue:orders"))
    made.claim("query")
    for part in (EpochPartition(2, 0), FIRST, SECOND):
        made.create_epoch(part.epoch)
        key = f"key {part.epoch}"
        made.publish(part, StagedPart(pa.table({"text": ["t"]}), [key], Counts(1, 1)))
        made.record_decision(part, [])
    made.commit(2, retain=0, doubt_retention=1e9)
    return made


DAMAGES = {
    "empty": lambda data: b"",
    "torn": lambda data: data[:-1],
    "cut before its first space": lambda data: data[:10],
    "zeros": lambda data: bytes(len(data)),
    "a bit of its space": lambda data: data.replace(b" ", b"!", 1),
}


def damage(path: Path, how: str) -> Path:
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    return path


def found(staging: Staging, *accepted: str) -> dict[str, bool]:
    """The files that were wrong, and whether they are right now."""
    findings = repair(FolderStore(staging.store.folder.parents[1]), accepted)
    return {str(Path(f.path).relative_to(staging.store.folder)): bool(f.repaired) for f in findings}


def test_a_whole_location_needs_no_repair(staging: Staging) -> None:
    before = {path: path.read_bytes() for path in staging.store.folder.rglob("*") if path.is_file()}
    assert found(staging) == {}
    assert {path: path.read_bytes() for path in staging.store.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["OWNER", "LOW", "SOURCE", "doubt/KEYS"])
def test_a_damaged_small_file_stops_the_query_until_it_is_repaired(staging: Staging, name: str, how: str) -> None:
    def use() -> None:
        staging.claim("query")
        staging.begin(Origin("queue:orders"))
        staging.commit(2, retain=0, doubt_retention=1e9)
        staging.keys_in_doubt()

    use()
    path = damage(staging.store.folder / name, how)
    with pytest.raises(StoreError, match=f"{path} is damaged"):
        use()
    assert found(staging) == {name: True}
    use()
    assert found(staging) == {}


def test_a_damaged_low_is_set_below_what_is_staged(staging: Staging) -> None:
    damage(staging.store.folder / "LOW", "empty")
    found(staging)
    assert staging.low == 2
    staging.check_live(FIRST)


def test_rows_are_given_up_only_if_that_is_accepted(staging: Staging) -> None:
    path = damage(staging.store.folder / "e-0000000003" / "p-00000.arrow", "torn")
    name = str(path.relative_to(staging.store.folder))
    assert found(staging) == {name: False}
    assert path.exists()
    assert found(staging, "g/3") == {name: True, "e-0000000003": True}
    assert not path.exists()
    assert staging.is_lost(FIRST)
    assert found(staging) == {}


def test_temporary_files_are_removed(staging: Staging) -> None:
    for folder in (staging.store.folder, staging.store.folder / "e-0000000003"):
        (folder / ".p.0.tmp").write_bytes(b"torn")
    assert found(staging) == {".": True, "e-0000000003": True}


def test_the_command_tells_what_remains(staging: Staging) -> None:
    location = str(staging.store.folder.parents[1])
    path = damage(staging.store.folder / "e-0000000003" / "p-00000.arrow", "torn")
    first = CliRunner().invoke(app, ["spark", "repair", location, "--json"])
    assert first.exit_code == 1
    (row,) = json.loads(first.output)
    assert (row["file"], row["repaired"]) == (str(path), "no")
    second = CliRunner().invoke(app, ["spark", "repair", location, "--accept-loss", "g/3"])
    assert second.exit_code == 0
    assert "its loss was accepted" in second.output
    assert CliRunner().invoke(app, ["spark", "repair", location]).exit_code == 0


def test_the_loss_of_a_whole_location_can_be_accepted(location: Store) -> None:
    repair(location, ["g/3"])
    made = Staging(location, "g")
    made.check_present(3)
    assert made.is_lost(FIRST)


def test_what_is_no_epoch_or_location_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="GENERATION/EPOCH"):
        repair(FolderStore(tmp_path), ["3"])
    with pytest.raises(StoreError, match="no staged messages in"):
        repair(FolderStore(tmp_path / "nowhere"))
