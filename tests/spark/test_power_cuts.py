"""A power cut in any state of several partitions: a decision that was not flushed may be lost, and no message is."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jmsjca.spark import folder_store
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.staging import Staging
from tests.spark.step_orders import See, explore
from tests.spark.test_duplicate_resolution import SMALL, Scene, SteppedStaging, unplugged

__all__ = ["unplugged"]

Files = frozenset[tuple[str, bytes]]
Disk = tuple[Files, frozenset[str]]
HELD = [["Ma", "Mb"], ["M", "MN"], ["MN", "M"]] if os.environ.get("JMSJCA_ALL_ORDERS") else [["Ma", "Mb"]]
CASES = [(held, owners) for held in HELD for owners in ((), (0,), (1,))]


class SteppedDecisions(SteppedStaging):
    """Steps of which the flush of a decision is one too."""

    def __init__(self, location: Path, see: See, *given: Any) -> None:
        super().__init__(location, see, *given)
        self.flush_decision = partial(see, Staging(location, "g").flush_decision)  # type: ignore[method-assign]


class PluggedScene(Scene):
    """Partitions that have received the same messages, and what a power cut would leave of their files."""

    def __init__(self, location: Path, held: list[str], owners: tuple[int, ...]) -> None:
        super().__init__(location, held, owners, SMALL)
        self._durable: set[str] = set()
        self.disks: set[Disk] = set()

    def flushed(self, folder: Path) -> None:
        self._durable |= {path.name for path in folder.iterdir()}

    def _read(self, number: int, see: See) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.spark.test_duplicate_resolution.SteppedStaging", SteppedDecisions)
            return super()._read(number, see)

    def disk(self) -> Any:
        disk = (super().disk(), frozenset(self._durable))
        self.disks.add(disk)
        return disk

    def restore(self, disk: Any) -> None:
        files, self._durable = disk[0], set(disk[1])
        super().restore(files)


def cuts(disks: set[Disk]) -> set[Files]:
    """Return what power cuts may leave: each file that was not flushed may be lost or not, confirmations too."""
    left: set[Files] = set()
    for files, durable in disks:
        lost = sorted(name for name, _ in files if name not in durable)
        for chosen in range(1, 1 << len(lost)):
            gone = {name for place, name in enumerate(lost) if chosen >> place & 1}
            left.add(frozenset(each for each in files if each[0] not in gone))
    return left


def survive(location: Path, held: list[str], owners: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """Play all orders, and all of them again after each power cut. Return the number of power cuts."""
    scene = PluggedScene(location, held, owners)
    monkeypatch.setattr(folder_store, "_sync_folder", scene.flushed)
    explore(scene)
    found = cuts(scene.disks)
    for files in found:
        scene.restore((files, frozenset(name for name, _ in files)))
        explore(scene)
    return len(found)


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize(("held", "owners"), CASES)
def test_a_power_cut_in_any_state_loses_and_doubles_nothing(held, owners, tmp_path, monkeypatch, capsys) -> None:
    number = survive(tmp_path, held, owners, monkeypatch)
    assert number
    with capsys.disabled():
        print(f"\n{held}, settled by {owners or 'nobody'}: {number} power cuts", end="")


@pytest.mark.usefixtures("unplugged")
def test_a_decision_that_is_not_flushed_before_another_one_loses_messages(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(FolderStore, "flush", lambda *_: None)
    create = FolderStore.create

    def create_unflushed(store: FolderStore, name: str, write: Any) -> bool:
        """Create a file, with its own name flushed only: nothing orders the names in a folder."""
        sync = folder_store._sync_folder
        with monkeypatch.context() as patch:
            patch.setattr(folder_store, "_sync_folder", lambda _: None)
            created = create(store, name, write)
        if created:
            sync.__self__._durable.add(Path(name).name)  # type: ignore[attr-defined]
        return created

    monkeypatch.setattr(FolderStore, "create", create_unflushed)
    with pytest.raises(AssertionError):
        survive(tmp_path, ["Ma", "Mb"], (), monkeypatch)
