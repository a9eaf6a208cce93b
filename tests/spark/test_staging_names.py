"""The names in a staging location: those of copies and of other programs are ignored, and numbers may be long."""

from pathlib import Path

import pytest

from jmsjca.errors import StoreError
from jmsjca.spark.epoch_plans import EpochPlans, Offset, Share
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.partition import orphans
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Origin, Staging, generations
from jmsjca.spark.staging_location import repair
from jmsjca.spark.store import Store

PART = EpochPartition(1, 0)
LARGE = EpochPartition(1, 123_456)


def batch(*keys: str) -> StagedPart:
    return StagedPart(pa.table({"text": pa.array(keys, pa.string())}), keys, Counts(len(keys), len(keys)))


def staged(location: Store | Path) -> Staging:
    made = Staging(location, "g")
    made.begin(Origin("queue:orders"))
    made.create_epoch(1)
    made.publish(PART, batch("a"))
    return made


@pytest.mark.parametrize("folder", ["e-0000000001.bak", "e-", "e-1", "e-000000000x", "e-00000000011", "e-backup"])
def test_a_stray_folder_is_ignored(location: Store, folder: str) -> None:
    made = staged(location)
    made.store.add_folder(folder)
    made.store.replace(f"{folder}/p-00000.arrow", b"torn")
    assert list(made.published()) == [PART]
    assert list(made.published(1)) == [PART]
    assert len(list(orphans(location))) == 1
    assert repair(location) == []
    made.commit(1, retain=0, doubt_retention=1.0)
    assert made.store.names(folder) == {"p-00000.arrow"}
    made.store.replace("LOW", b"torn")
    assert [finding.repaired for finding in repair(location)] == ["set to 0, before the first epoch that is staged"]


def test_a_copy_of_an_epoch_in_a_bucket_is_kept(location: Store) -> None:
    """An object store has no folders, so a copy may lack the object that marks one."""
    made = staged(location)
    if isinstance(location, FolderStore):
        made.store.add_folder("e-0000000001.bak")
    made.store.replace("e-0000000001.bak/p-00000.arrow", b"copy")
    made.commit(2, retain=0, doubt_retention=1.0)
    with made.store.open("e-0000000001.bak/p-00000.arrow") as file:
        assert file.read() == b"copy"


@pytest.mark.parametrize("name", ["p-foo", "p-1", "p-00000 (copy)", "p-00000.a b", "p-000001", "p-", "x"])
def test_a_stray_file_is_ignored(location: Store, name: str) -> None:
    made = staged(location)
    for ending in ("arrow", "acked", "ok"):
        made.store.replace(f"e-0000000001/{name}.{ending}", b"torn")
    assert made.published() == {PART: False}
    assert not made.is_lost(PART)
    assert repair(location) == []
    made.commit(1, retain=0, doubt_retention=1.0)
    assert made.keys_in_doubt() == {"a"}


def test_a_stray_plan_is_ignored(location: Store) -> None:
    made = staged(location)
    plans = EpochPlans(made)
    assert plans.begin(Offset(2, "g", (Share(1, 1),)))
    made.store.replace("plan-0000000001.bak", b"torn")
    assert plans.numbers() == [2]
    assert repair(location) == []
    plans.remove(2)
    assert made.store.names() - {*made.store.folders()} == {"SOURCE", "plan-0000000001.bak"}


def test_a_stray_generation_is_ignored(location: Store) -> None:
    staged(location)
    location.within("v1").add_folder("g.bak")
    assert [staging.gen for staging in generations(location)] == ["g"]


def test_the_number_of_a_partition_may_be_long(location: Store) -> None:
    made = staged(location)
    made.publish(LARGE, batch("b"))
    made.publish(EpochPartition(1, 99_999), batch("c"))
    made.confirm(LARGE)
    assert made.published() == {PART: False, EpochPartition(1, 99_999): False, LARGE: True}
    assert list(made.published()) == [PART, EpochPartition(1, 99_999), LARGE]
    made.withdraw(LARGE)
    assert not made.is_lost(EpochPartition(1, 12_345))
    with pytest.raises(StoreError, match=r"p-123456\.arrow is missing"):
        made.is_lost(LARGE)


def test_temporary_files_of_crashed_tasks_are_swept(tmp_path: Path) -> None:
    """Tasks create these files in the folder of the generation, in which only a few of them do."""
    made = staged(tmp_path)
    for name in (".OWNER.0.tmp", ".KEEPS_ALL.0.tmp", ".LOW.0.tmp"):
        (made.store.folder / name).write_bytes(b"torn")
    made.commit(1, retain=1, doubt_retention=1.0)
    assert made.store.names() == {"SOURCE", "LOW", "e-0000000001"}
    assert repair(FolderStore(tmp_path)) == []
