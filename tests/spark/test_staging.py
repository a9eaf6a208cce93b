"""Staged messages on disk, without Spark."""

import errno
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from jmsjca.errors import IllegalStateError, InvalidOptionError, StoreError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.object_store import ObjectStore
from jmsjca.spark.part_file import Counts, StagedPart, seal, unseal
from jmsjca.spark.partition import orphans
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, KeysInDoubt, Origin, Staging, StaleEpochError
from jmsjca.spark.staging_location import open_location
from jmsjca.spark.store import Store
from tests.support.s3_server import CREDENTIALS, SECRET, s3_server

DAY = 86400.0


def batch(*keys: str | None) -> StagedPart:
    return StagedPart(pa.table({"text": pa.array(keys, pa.string())}), list(keys), Counts(len(keys), len(keys)))


def staging(location: Store | Path, epochs: Iterable[int] = (1,)) -> Staging:
    made = Staging(location, "g")
    for epoch in epochs:
        made.create_epoch(epoch)
    return made


def commit(made: Staging, epoch: int, *, retain: int = 0, doubt_retention: float = DAY) -> None:
    made.commit(epoch, retain=retain, doubt_retention=doubt_retention)


def names(made: Staging) -> list[str]:
    folders = made.store.folders()
    return sorted(
        [*made.store.names() - folders.keys(), *(f"{folder}/{name}" for folder in folders for name in folders[folder])]
    )


def top(made: Staging) -> list[str]:
    return sorted({name.partition("/")[0] for name in names(made)})


def test_of_two_attempts_the_first_counts(location: Store) -> None:
    made = staging(location)
    assert made.publish(EpochPartition(1, 0), batch("a"))
    assert not made.publish(EpochPartition(1, 0), batch("b"))
    assert made.keys(EpochPartition(1, 0)) == {"a"}
    assert names(made) == ["e-0000000001/p-00000.arrow"]


PUBLISHER = """
import pickle
import sys
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Staging
staging = Staging(pickle.loads(bytes.fromhex(sys.argv[1])), "g")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    if staging.publish(EpochPartition(1, number), StagedPart(pa.table({"n": [1]}), [sys.argv[3]], Counts(1, 1))):
        print(number, flush=True)
"""


def test_of_two_processes_one_publishes_each_part(location: Store) -> None:
    made, parts = staging(location), 60
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, pickle.dumps(location).hex(), str(parts), name],
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


def test_an_empty_part_is_staged_too(location: Store) -> None:
    made = staging(location)
    assert made.publish(EpochPartition(1, 0), batch())
    assert made.is_published(EpochPartition(1, 0))
    assert made.content(EpochPartition(1, 0)).table.num_rows == 0
    assert not made.publish(EpochPartition(1, 0), batch("late"))


def test_only_whole_files_count(tmp_path: Path) -> None:
    made = staging(tmp_path)
    made.publish(EpochPartition(1, 0), batch("a"))
    for folder in (made.store.folder, made.store.folder / "e-0000000001"):
        (folder / ".0123.tmp").write_bytes(b"torn")
    assert list(made.published()) == [EpochPartition(1, 0)]
    assert made.keys_in_doubt() == {"a"}
    assert made.low == 0
    commit(made, 1)
    assert list(made.published()) == []


def test_parts_come_in_order(location: Store) -> None:
    made = staging(location, (2, 10))
    for part in (EpochPartition(10, 0), EpochPartition(2, 10), EpochPartition(2, 9)):
        made.publish(part, batch())
    assert list(made.published()) == [EpochPartition(2, 9), EpochPartition(2, 10), EpochPartition(10, 0)]


def test_low_only_grows(location: Store) -> None:
    made, seen = staging(location), []
    for epoch in (3, 1, 3, 5, 4):
        commit(made, epoch)
        seen.append(made.low)
    assert seen == [3, 3, 3, 5, 5]


def test_a_commit_sweeps_what_earlier_calls_missed(location: Store) -> None:
    made = staging(location, range(1, 6))
    for epoch in range(1, 6):
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
        made.confirm(EpochPartition(epoch, 0))
    commit(made, 4, retain=1)
    assert list(made.published()) == [EpochPartition(4, 0), EpochPartition(5, 0)]
    commit(made, 4, retain=1)
    commit(made, 3, retain=1)
    assert list(made.published()) == [EpochPartition(4, 0), EpochPartition(5, 0)]
    assert top(made) == ["LOW", "e-0000000004", "e-0000000005"]


def test_a_commit_finishes_what_one_before_it_began(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    made.publish(EpochPartition(1, 0), batch("a"))
    (made.store.folder / "doubt").mkdir()  # it parked the keys, renamed the folder and died
    (made.store.folder / "doubt" / "0000000001-00000.ids").write_bytes(seal(b'["a"]'))
    (made.store.folder / "e-0000000001").rename(made.store.folder / "trash-0123")
    commit(made, 1)
    assert sorted(path.name for path in made.store.folder.iterdir()) == ["LOW", "doubt", "e-0000000002"]
    assert made.keys_in_doubt() == {"a"}


def test_keys_in_doubt_outlive_their_epoch(location: Store) -> None:
    made = staging(location)
    made.publish(EpochPartition(1, 0), batch("sure"))
    made.confirm(EpochPartition(1, 0))
    made.publish(EpochPartition(1, 1), batch("open", None))
    assert made.keys_in_doubt() == {"open"}
    commit(made, 1)
    assert made.keys_in_doubt() == {"open"}
    assert names(made) == ["LOW", "doubt/KEYS"]
    commit(made, 2)
    assert made.keys_in_doubt() == {"open"}


class Hours:
    """A clock of the driver: the monotonic one goes on, and the other one jumps as it likes."""

    def __init__(self) -> None:
        self.hours = 0.0

    def monotonic(self) -> float:
        return 3600 * self.hours

    def now(self) -> float:
        return 1e12 * (-1) ** int(self.hours)


def test_keys_in_doubt_are_dropped_when_the_query_has_run_for_their_time(location: Store) -> None:
    clock, seen = Hours(), []
    made = Staging(location, "g", clock)
    for epoch in range(1, 5):
        made.create_epoch(epoch)
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
        commit(made, epoch)
        seen.append(made.keys_in_doubt())
        clock.hours += 10
    commit(made, 4)
    assert [*seen, made.keys_in_doubt()] == [{"1"}, {"1", "2"}, {"1", "2", "3"}, {"2", "3", "4"}, {"3", "4"}]
    restarted = Staging(location, "g", clock)  # the time between two runs does not count
    clock.hours += 10_000
    commit(restarted, 4)
    clock.hours += 5
    commit(restarted, 4)
    assert restarted.keys_in_doubt() == {"4"}


def test_keys_in_doubt_are_one_file_however_many_epochs_ended_so(location: Store) -> None:
    made = staging(location, range(1, 51))
    for epoch in range(1, 51):
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
    commit(made, 50)
    assert names(made) == ["LOW", "doubt/KEYS"]
    assert made.keys_in_doubt() == {str(epoch) for epoch in range(1, 51)}


def test_of_too_many_keys_in_doubt_the_oldest_are_dropped_and_told(location: Store, caplog) -> None:
    doubt = KeysInDoubt(location.within("doubt"), limit=3)
    for number, keys in enumerate((["a", "b"], ["c"], ["d"])):
        doubt.park(f"{number}", keys)
        doubt.merge(DAY)
    assert doubt.read() == {"a", "c", "d"}
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "the oldest 1 were dropped" in record.message


def test_a_merge_that_was_cut_off_doubles_no_key(location: Store) -> None:
    doubt = KeysInDoubt(location.within("doubt"), limit=2)
    doubt.park("1", ["a", "b"])
    with location.open("doubt/1.ids") as file:
        parked = file.read()
    doubt.merge(DAY)
    location.replace("doubt/1.ids", parked)  # it died before it removed the file
    doubt.merge(DAY)
    assert doubt.read() == {"a", "b"}


def test_a_reader_misses_no_key_that_is_moved_meanwhile(location: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver removes the epoch after a task has listed it, and merges after the task has listed the parked keys."""
    made = staging(location)
    made.publish(EpochPartition(1, 0), batch("a"))
    listed = made.published()
    commit(made, 1)
    monkeypatch.setattr(made, "published", lambda: listed)
    assert made.keys_in_doubt() == {"a"}
    doubt = KeysInDoubt(location.within("doubt"))
    doubt.park("1", ["b"])
    names_of = type(location).names

    def merge_behind(self: Store, folder: str = "") -> set[str]:
        found = names_of(self, folder)
        monkeypatch.undo()
        doubt.merge(DAY)
        return found

    monkeypatch.setattr(type(location), "names", merge_behind)
    assert doubt.read() == {"b"}


def test_a_late_attempt_finds_its_epoch_over(location: Store) -> None:
    made = staging(location, (1, 2))
    made.check_live(EpochPartition(1, 0))
    commit(made, 1)
    for part in (EpochPartition(1, 0), EpochPartition(9, 0)):  # swept, and never planned
        with pytest.raises(StaleEpochError):
            made.check_live(part)
        if isinstance(made.store, FolderStore):
            with pytest.raises(StaleEpochError):
                made.publish(part, batch("late"))
    made.create_epoch(1)  # a replay of what is gone: the folder is back, LOW still tells
    with pytest.raises(StaleEpochError):
        made.check_live(EpochPartition(1, 0))


def test_a_settlement_that_is_confirmed_late_harms_nobody(location: Store) -> None:
    made = staging(location)
    made.publish(EpochPartition(1, 0), batch("a"))
    commit(made, 1)
    made.confirm(EpochPartition(1, 0))
    assert made.keys_in_doubt() == {"a"}


def test_a_generation_belongs_to_one_query(location: Store) -> None:
    made = staging(location)
    made.claim("query-1")
    made.claim("query-1")
    with pytest.raises(IllegalStateError, match="read by query query-1"):
        made.claim("query-2")


def test_the_first_decision_stands(location: Store) -> None:
    made = staging(location)
    assert made.decision(EpochPartition(1, 0)) is None
    made.record_decision(EpochPartition(1, 0), ["b", "a"])
    made.record_decision(EpochPartition(1, 0), [])
    assert made.decision(EpochPartition(1, 0)) == {"a", "b"}
    with made.store.open("e-0000000001/p-00000.ok") as file:
        assert unseal(file.read()) == b'["a", "b"]'
    made.record_decision(EpochPartition(1, 1), [])
    assert made.decision(EpochPartition(1, 1)) == set()


def test_orphans_are_full_parts_not_known_to_be_done(location: Store) -> None:
    made = staging(location, (1, 2))
    made.publish(EpochPartition(1, 0), batch("done"))
    made.publish(EpochPartition(2, 0), batch("perhaps"))
    made.publish(EpochPartition(2, 1), batch())
    commit(made, 1, retain=1)
    assert list(orphans(location)) == [made.store.address("e-0000000002/p-00000.arrow")]
    assert list(orphans(location.within("nowhere"))) == []


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns the names that a power cut would leave: their folder was flushed after they appeared, whole.

    A file that was not flushed before it got its name may be empty, and does not count.
    """
    whole: set[int] = set()
    kept: set[str] = set()
    fsync = os.fsync

    def flushed(fd: int) -> None:
        fsync(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.is_file():
            whole.add(path.stat().st_ino)
        else:
            kept.update(str(p.relative_to(tmp_path)) for p in path.iterdir() if p.is_dir() or p.stat().st_ino in whole)

    monkeypatch.setattr(os, "fsync", flushed)
    return lambda: kept


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="The test finds out what is flushed on Linux only.")
def test_what_is_staged_survives_a_power_cut(tmp_path: Path, on_disk) -> None:
    made, part = Staging(tmp_path / "staged", "g"), EpochPartition(1, 0)
    made.begin(Origin("queue:orders"))
    made.create_epoch(1)
    folders = {"staged", "staged/v1", "staged/v1/g", "staged/v1/g/e-0000000001"}
    assert folders | {"staged/v1/g/SOURCE"} <= on_disk()
    made.claim("query")
    made.publish(part, batch("a"))
    epoch = "staged/v1/g/e-0000000001/p-00000"
    assert {"staged/v1/g/OWNER", f"{epoch}.arrow"} <= on_disk()
    made.record_decision(part, [])  # is made again, unless another partition relies on it
    assert "staged/v1/g/KEEPS_ALL" in on_disk()
    assert f"{epoch}.ok" not in on_disk()
    made.flush_decision(part)
    assert f"{epoch}.ok" in on_disk()
    made.record_decision(EpochPartition(1, 1), ["a"])
    assert "staged/v1/g/e-0000000001/p-00001.ok" in on_disk()
    made.complete(1)
    assert "staged/v1/g/LOW" in on_disk()
    commit(made, 1)
    assert {"staged/v1/g/doubt", "staged/v1/g/doubt/KEYS"} <= on_disk()


def test_temporary_files_of_crashed_processes_are_swept(tmp_path: Path) -> None:
    made = staging(tmp_path, (1, 2))
    for epoch in (1, 2):
        made.publish(EpochPartition(epoch, 0), batch(str(epoch)))
    left = [made.store.folder / ".LOW.0.tmp", made.store.folder / "e-0000000001" / ".p-00000.arrow.0.tmp"]
    live = made.store.folder / "e-0000000002" / ".p-00001.arrow.0.tmp"
    for path in (*left, live):
        path.write_bytes(b"torn")
    commit(made, 1, retain=1)
    assert [path.exists() for path in (*left, live)] == [False, False, True]


def test_the_last_epoch_of_an_orderly_run_is_no_orphan(location: Store) -> None:
    made = staging(location)
    made.publish(EpochPartition(1, 0), batch("a"))
    assert list(orphans(location))
    made.complete(1)
    assert list(orphans(location)) == []
    assert made.is_published(EpochPartition(1, 0))  # for a repetition of the batch


def test_queries_of_other_sources_and_names_leave_no_orphans(location: Store) -> None:
    ours = Origin("queue:orders at amqp://b", "one")
    for gen, origin in (
        ("a", ours),
        ("b", Origin(ours.source, "two")),
        ("c", Origin("queue:bills", "one")),
        ("d", None),
    ):
        made = Staging(location, gen)
        if origin:
            made.begin(origin)
        made.create_epoch(1)
        made.publish(EpochPartition(1, 0), batch(gen))
    assert [path.split("/")[-3] for path in orphans(location, ours)] == ["a", "d"]


def test_a_generation_keeps_its_source(location: Store) -> None:
    made = Staging(location, "g")
    old, new = Origin("queue:orders at amqp://a"), Origin("queue:orders at amqp://b")
    made.begin(old)
    made.begin(old)
    with pytest.raises(InvalidOptionError, match=r"belongs to queue:orders at amqp://a.*sourceChange=allow"):
        made.begin(new)
    made.begin(new, allow_change=True)
    made.begin(new)


def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


def test_a_file_system_without_hard_links_is_told_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_links(monkeypatch)
    with pytest.raises(StoreError, match="has no hard links, by which one of several attempts"):
        Staging(tmp_path, "g").begin(Origin("queue:orders"))
    assert names(Staging(tmp_path, "g")) == []


def test_a_folder_that_executors_do_not_share_is_told(location: Store) -> None:
    staging(location.within("driver"))
    with pytest.raises(
        StoreError, match=r"does not exist on .*must name a folder that the driver and all executors share"
    ):
        Staging(location.within("executor"), "g").check_live(EpochPartition(1, 0))


def test_a_missing_folder_is_named_and_never_filled_again(location: Store) -> None:
    made = staging(location, (1, 2))
    made.check_present(2)
    made.store.remove_folder("e-0000000002")
    with pytest.raises(StoreError, match=r"e-0000000002 is missing.*--accept-loss g/2"):
        made.check_present(2)
    made.check_present(2, swept=True)
    location.within("v1").remove_folder("g")
    with pytest.raises(StoreError, match="v1/g is missing"):
        made.check_present(2, swept=True)


def test_a_missing_file_is_named(location: Store) -> None:
    made, part = staging(location), EpochPartition(1, 0)
    assert not made.is_lost(part)
    made.publish(part, batch("a"))
    made.confirm(part)
    assert not made.is_lost(part)
    made.withdraw(part)
    with pytest.raises(StoreError, match=r"p-00000\.arrow is missing.*--accept-loss g/1"):
        made.is_lost(part)
    made.accept_loss(1)
    assert made.is_lost(part)


@pytest.mark.parametrize("location", ["objects", "s3"], indirect=True)
def test_a_file_of_a_late_attempt_is_invisible(location: ObjectStore) -> None:
    """An object store has no folder whose absence refuses it. Its messages are released, and must be read again."""
    made, part = staging(location), EpochPartition(1, 0)
    made.publish(part, batch("a"))
    made.confirm(part)
    commit(made, 1)
    assert made.publish(part, batch("late"))
    assert made.published() == {}
    assert made.keys_in_doubt() == set()
    with pytest.raises(FileNotFoundError):
        made.keys(part)
    with pytest.raises(StaleEpochError):
        made.check_live(part)
    commit(made, 2)
    assert not made.is_published(part)


@pytest.mark.parametrize("location", ["objects", "s3"], indirect=True)
def test_an_object_store_is_listed_once_however_many_partitions_there_are(
    location: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, listed = staging(location, (1, 2)), list[str]()
    for number in range(20):
        made.publish(EpochPartition(1 + number % 2, number), batch("a"))
    whole = ObjectStore._list
    monkeypatch.setattr(ObjectStore, "_list", lambda store, folder: listed.append(folder) or whole(store, folder))
    assert len(made.published()) == 20
    assert len(listed) == 1


def test_a_store_without_conditional_creation_is_told_at_the_start() -> None:
    with s3_server("plain") as server:
        store = open_location(server.new_bucket(), endpoint=server.endpoint, credentials=CREDENTIALS)
        with pytest.raises(StoreError, match="does not refuse to create an object that exists"):
            Staging(store, "g").begin(Origin("queue:orders"))
        assert names(Staging(store, "g")) == []


def test_a_missing_bucket_is_told_at_the_start(s3) -> None:
    store = open_location("s3://no-such-bucket/p", endpoint=s3.endpoint, credentials=CREDENTIALS)
    with pytest.raises(StoreError, match="the bucket does not exist"):
        store.probe()


def test_no_error_of_an_object_store_has_the_secret(s3) -> None:
    for store in (
        open_location("s3://no-such-bucket", endpoint=s3.endpoint, credentials=CREDENTIALS),
        open_location("s3://bucket", endpoint="http://127.0.0.1:1", credentials=CREDENTIALS),
    ):
        with pytest.raises((StoreError, FileNotFoundError)) as caught:
            store.replace("name", b"x")
        assert str(store) in str(caught.value)
        for shown in (str(caught.value), repr(store), str(store), pickle.dumps(store).decode("latin-1")):
            assert SECRET not in shown
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("location", ["objects", "s3"], indirect=True)
def test_a_large_object_is_read_as_it_was_written(location: ObjectStore) -> None:
    content = os.urandom(12_000_000)  # more than the parts in which the client sends large objects
    assert location.create("large", lambda file: file.write(content))
    with location.open("large") as file:
        assert file.read(5) == content[:5]
        assert file.read() == content[5:]
        assert file.read(1) == b""
    with pytest.raises(FileNotFoundError):
        location.open("small")
