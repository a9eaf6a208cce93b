"""Staged messages on disk, without Spark."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from jmsjca.errors import IllegalStateError
from jmsjca.spark import staging as module
from jmsjca.spark.part_file import Counts, StagedPart, seal, unseal
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Staging, StaleEpochError, orphans

DAY = 86400.0


def batch(*keys: str | None) -> StagedPart:
    return StagedPart(pa.table({"text": pa.array(keys, pa.string())}), list(keys), Counts(len(keys), len(keys)))


def staging(folder: Path, epochs: Iterable[int] = (1,)) -> Staging:
    made = Staging(folder, "g")
    for epoch in epochs:
        made.create_epoch(epoch)
    return made


def commit(made: Staging, epoch: int, *, retain: int = 0, doubt_retention: float = DAY) -> None:
    made.commit(epoch, retain=retain, doubt_retention=doubt_retention)


def names(made: Staging) -> list[str]:
    return sorted(str(path.relative_to(made.folder)) for path in made.folder.rglob("*") if path.is_file())


def test_of_two_attempts_the_first_counts(tmp_path: Path) -> None:
    made = staging(tmp_path)
    assert made.publish(EpochPartition(1, 0), batch("a"))
    assert not made.publish(EpochPartition(1, 0), batch("b"))
    assert made.keys(EpochPartition(1, 0)) == {"a"}
    assert names(made) == ["e-0000000001/p-00000.arrow"]


PUBLISHER = """
import sys
from pathlib import Path
from jmsjca.spark import staging as module
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Staging
staging = Staging(Path(sys.argv[1]), "g")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    if staging.publish(EpochPartition(1, number), StagedPart(pa.table({"n": [1]}), [sys.argv[3]], Counts(1, 1))):
        print(number, flush=True)
"""


def test_of_two_processes_one_publishes_each_part(tmp_path: Path) -> None:
    made, parts = staging(tmp_path), 60
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, str(tmp_path), str(parts), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    }
    for process in processes.values():
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won = {name: {int(n) for n in process.communicate()[0].split()} for name, process in processes.items()}
    assert won["one"] | won["two"] == set(range(parts))
    assert not won["one"] & won["two"]
    for name, numbers in won.items():
        assert all(made.keys(EpochPartition(1, number)) == {name} for number in numbers)


def test_an_empty_part_is_staged_too(tmp_path: Path) -> None:
    made = staging(tmp_path)
    assert made.publish(EpochPartition(1, 0), batch())
    assert made.is_published(EpochPartition(1, 0))
    assert made.content(EpochPartition(1, 0)).table.num_rows == 0
    assert not made.publish(EpochPartition(1, 0), batch("late"))


def test_only_whole_files_count(tmp_path: Path) -> None:
    made = staging(tmp_path)
    made.publish(EpochPartition(1, 0), batch("a"))
    for folder in (made.folder, made.folder / "e-0000000001"):
        (folder / ".0123.tmp").write_bytes(b"torn")
    assert made.parts() == [EpochPartition(1, 0)]
    assert made.keys_in_doubt() == {"a"}
    assert made.low == 0
    commit(made, 1)
    assert made.parts() == []


def test_parts_come_in_order(tmp_path: Path) -> None:
    made = staging(tmp_path, (2, 10))
    for part in (EpochPartition(10, 0), EpochPartition(2, 10), EpochPartition(2, 9)):
        made.publish(part, batch())
    assert made.parts() == [EpochPartition(2, 9), EpochPartition(2, 10), EpochPartition(10, 0)]


def test_low_only_grows(tmp_path: Path) -> None:
    made, seen = staging(tmp_path), []
    for epoch in (3, 1, 3, 5, 4):
        commit(made, epoch)
        seen.append(made.low)
    assert seen == [3, 3, 3, 5, 5]


def test_a_commit_sweeps_what_earlier_calls_missed(tmp_path: Path) -> None:
    made = staging(tmp_path, range(1, 6))
    for epoch in range(1, 6):
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
        made.confirm(EpochPartition(epoch, 0))
    commit(made, 4, retain=1)
    assert made.parts() == [EpochPartition(4, 0), EpochPartition(5, 0)]
    commit(made, 4, retain=1)
    commit(made, 3, retain=1)
    assert made.parts() == [EpochPartition(4, 0), EpochPartition(5, 0)]
    assert sorted(path.name for path in made.folder.iterdir()) == ["LOW", "e-0000000004", "e-0000000005"]


def test_a_commit_finishes_what_one_before_it_began(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    made.publish(EpochPartition(1, 0), batch("a"))
    (made.folder / "doubt").mkdir()  # it parked the keys, renamed the folder and died
    (made.folder / "doubt" / "0000000001-00000.ids").write_bytes(seal(b'["a"]'))
    (made.folder / "e-0000000001").rename(made.folder / "trash-0123")
    commit(made, 1)
    assert sorted(path.name for path in made.folder.iterdir()) == ["LOW", "doubt", "e-0000000002"]
    assert made.keys_in_doubt() == {"a"}


def test_keys_in_doubt_outlive_their_epoch(tmp_path: Path) -> None:
    made = staging(tmp_path)
    made.publish(EpochPartition(1, 0), batch("sure"))
    made.confirm(EpochPartition(1, 0))
    made.publish(EpochPartition(1, 1), batch("open", None))
    assert made.keys_in_doubt() == {"open"}
    commit(made, 1)
    assert made.keys_in_doubt() == {"open"}
    assert names(made) == ["LOW", "doubt/0000000001-00001.ids"]
    commit(made, 2)
    assert made.keys_in_doubt() == {"open"}


def test_keys_in_doubt_are_dropped_after_their_time(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    for epoch in (1, 2):
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
        commit(made, epoch)
    old = made.folder / "doubt" / "0000000001-00000.ids"
    parked = old.stat().st_mtime
    os.utime(old, (parked - DAY - 60, parked - DAY - 60))
    commit(made, 2)
    assert made.keys_in_doubt() == {"2"}


def test_a_late_attempt_finds_its_epoch_over(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    made.check_live(EpochPartition(1, 0))
    commit(made, 1)
    for part in (EpochPartition(1, 0), EpochPartition(9, 0)):  # swept, and never planned
        with pytest.raises(StaleEpochError):
            made.check_live(part)
        with pytest.raises(StaleEpochError):
            made.publish(part, batch("late"))
    made.create_epoch(1)  # a replay of what is gone: the folder is back, LOW still tells
    with pytest.raises(StaleEpochError):
        made.check_live(EpochPartition(1, 0))


def test_a_settlement_that_is_confirmed_late_harms_nobody(tmp_path: Path) -> None:
    made = staging(tmp_path)
    made.publish(EpochPartition(1, 0), batch("a"))
    commit(made, 1)
    made.confirm(EpochPartition(1, 0))
    assert made.keys_in_doubt() == {"a"}


def test_a_generation_belongs_to_one_query(tmp_path: Path) -> None:
    made = staging(tmp_path)
    made.claim("query-1")
    made.claim("query-1")
    with pytest.raises(IllegalStateError, match="read by query query-1"):
        made.claim("query-2")


def test_the_first_decision_stands(tmp_path: Path) -> None:
    made = staging(tmp_path)
    assert made.decision(EpochPartition(1, 0)) is None
    made.record_decision(EpochPartition(1, 0), ["b", "a"])
    made.record_decision(EpochPartition(1, 0), [])
    assert made.decision(EpochPartition(1, 0)) == {"a", "b"}
    assert unseal((made.folder / "e-0000000001" / "p-00000.ok").read_bytes()) == b'["a", "b"]'
    made.record_decision(EpochPartition(1, 1), [])
    assert made.decision(EpochPartition(1, 1)) == set()


def test_orphans_are_full_parts_not_known_to_be_done(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    made.publish(EpochPartition(1, 0), batch("done"))
    made.publish(EpochPartition(2, 0), batch("perhaps"))
    made.publish(EpochPartition(2, 1), batch())
    commit(made, 1, retain=1)
    assert list(orphans(tmp_path)) == [made.folder / "e-0000000002" / "p-00000.arrow"]
    assert list(orphans(tmp_path / "nowhere")) == []


def test_what_is_staged_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(module, "sync_folder", lambda folder: synced.append(str(folder.relative_to(tmp_path))))
    made = staging(tmp_path / "staged")
    made.publish(EpochPartition(1, 0), batch("a"))
    assert set(synced) == {".", "staged", "staged/v1", "staged/v1/g", "staged/v1/g/e-0000000001"}
