"""``guarantee=at-least-once``: a store without exclusive creation loses no message, in every order of the steps."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jmsjca.errors import InvalidOptionError, StoreError
from jmsjca.spark import partition
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader, orphans
from jmsjca.spark.staging import EpochPartition, Origin, Staging, StaleEpochError
from jmsjca.spark.staging_location import open_location, repair
from jmsjca.spark.store import Store
from tests.spark.driving import Driver
from tests.spark.step_orders import See, explore
from tests.spark.test_duplicate_resolution import Connection, unplugged
from tests.spark.test_staging import batch, no_links
from tests.support.s3_server import CREDENTIALS, s3_server

__all__ = ["unplugged"]

GEN = "atleastonce_g"
HELD = {"a": ["m1", "m2"], "b": ["m3"]}


@pytest.fixture(autouse=True)
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    no_links(monkeypatch)


@pytest.fixture
def driver(broker):
    drivers: list[Driver] = []

    def make(**changes) -> Driver:
        drivers.append(Driver(broker, **{"guarantee": "at-least-once", "partitions": 1} | changes))
        return drivers[-1]

    yield make
    for made in drivers:
        made.reader.stop()


class SteppedStore:
    """A store whose creation of a file is a step."""

    def __init__(self, store: FolderStore, see: See) -> None:
        self._store = store
        self._see = see

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, name: str, write: Callable[..., object]) -> bool:
        return bool(self._see(self._store.create, name, write))


class SteppedStaging(Staging):
    """The real staging; whatever others may do in between is a step."""

    def __init__(self, location: Path, see: See) -> None:
        super().__init__(location, GEN)
        whole = Staging(location, GEN)
        self.store = SteppedStore(self.store, see)  # type: ignore[assignment]
        for name in ("attempts", "check_live", "content", "complete", "unsure", "confirm"):
            setattr(self, name, partial(see, getattr(whole, name)))


class Scene:
    """Attempts at one partition at one time, and the driver, which begins the next epoch after one of them has ended.

    Args:
        location: The folder.
        owners: The attempts whose settlement the broker confirms.
    """

    def __init__(self, location: Path, owners: tuple[str, ...]) -> None:
        self._location = location
        self._owners = owners
        staging = Staging(location, GEN)
        staging.create_epoch(1)
        self._root = location / "v1"
        self._staging = staging
        self.programs = [*(partial(self._attempt, name) for name in HELD), self._drive]

    def _attempt(self, name: str, see: See) -> dict[str, Any]:
        reader = PartitionReader(
            SourceOptions("", "q", stagingLocation=str(self._location)), JmsPartition(GEN, EpochPartition(1, 0), 10)
        )
        reader._part = EpochPartition(1, 0, name)
        reader._staging = SteppedStaging(self._location, see)
        connection = Recording(HELD[name], name in self._owners)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition, "connect", lambda *_: connection)
            try:
                rows = [text for batch in reader.read() for text in batch.column("text").to_pylist()]
            except StaleEpochError:
                rows = None
            finally:
                partition.close_connections()
        if rows is not None:
            see((self._root / f"done-{name}").write_text, json.dumps(rows))
        return {"rows": rows, "settled": connection.settled}

    def _drive(self, see: See) -> list[str] | None:
        """Return the rows that Spark reads; None if no attempt has ended yet: then it would wait."""
        done = see(lambda: sorted(path.name for path in self._root.glob("done-*")))
        if not done:
            return None
        first = json.loads((self._root / done[0]).read_text()) if len(done) == 1 else None
        staging = SteppedStaging(self._location, see)
        staging.complete(1)
        again = staging.unsure(1)
        rows = [Staging(self._location, GEN).content(part).table["text"].to_pylist() for part in again]
        committed = [first] if first is not None else [json.loads((self._root / d).read_text()) for d in done]
        return [json.dumps([each, *rows]) for each in committed]

    def disk(self) -> frozenset[tuple[str, bytes]]:
        files = (path for path in self._root.rglob("*") if path.is_file())
        return frozenset((str(path.relative_to(self._root)), path.read_bytes()) for path in files)

    def restore(self, disk: frozenset[tuple[str, bytes]]) -> None:
        now = self.disk()
        for name, _ in now - disk:
            (self._root / name).unlink()
        for name, content in disk - now:
            (self._root / name).write_bytes(content)

    def check(self, outcomes: list[Any]) -> None:
        *attempts, read = outcomes
        if read is None:
            return
        settled = {text for attempt in attempts for text in attempt["settled"]}
        for committed in read:  # Spark may have taken any of the attempts that had ended
            assert settled <= {text for rows in json.loads(committed) for text in rows}, outcomes


class Recording(Connection):
    """A connection that knows what was settled."""

    def __init__(self, keys: list[str], owns: bool) -> None:
        super().__init__(keys, owns)
        self._keys = keys
        self.settled: list[str] = []

    def consumer(self, *_: object, **__: object) -> "Recording":
        return self

    unit = consumer

    def commit(self, *, confirmed: bool) -> None:
        super().commit(confirmed=confirmed)
        self.settled = self._keys


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize("owners", [("a", "b"), ("a",), ()])
def test_every_order_of_two_attempts_and_the_driver_loses_nothing(owners, tmp_path: Path, capsys) -> None:
    visited = explore(Scene(tmp_path, owners))
    assert visited.ends
    with capsys.disabled():
        print(f"\n{visited}", end="")


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize("fault", ["check_live after", "unsure"])
def test_without_a_step_of_the_protocol_an_order_loses_messages(fault: str, tmp_path: Path, monkeypatch) -> None:
    if fault == "unsure":
        monkeypatch.setattr(Staging, "unsure", lambda *_: [])
    else:
        monkeypatch.setattr(PartitionReader, "_check_still_read", lambda _: None)
    with pytest.raises(AssertionError):
        explore(Scene(tmp_path, ("a", "b")))


def texts(made: Driver, part: JmsPartition) -> list[str]:
    return [text for batch in made.reader.read(part) for text in batch["text"].to_pylist()]


def attempt_twice(made: Driver, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Two attempts at the partition of the next epoch: one works while the other is about to create its file."""
    end = made.next()
    (part,) = made.reader.partitions(made.offset, end)
    found: list[list[str]] = []
    create = FolderStore.create

    def late(store: FolderStore, name: str, write: Callable[..., object]) -> bool:
        if name.endswith(".arrow") and not found:
            found.append([])
            found[0] = texts(made, part)
        return create(store, name, write)

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "create", late)
        found.append(texts(made, part))
    made.offset = end
    return found


@pytest.mark.parametrize("available_now", [False, True])
def test_the_next_epoch_has_the_rows_of_all_attempts_at_a_partition(
    driver, broker, monkeypatch, available_now: bool
) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcd")
    if available_now:
        made.reader.prepareForTriggerAvailableNow()
    assert attempt_twice(made, monkeypatch) == [["c", "d"], ["a", "b"]]
    assert broker.depth().total == 0
    restarted = made if available_now else driver(maxMessagesPerBatch=2)  # the plan does not depend on the run
    restarted.offset = made.offset
    made.reader.commit(made.offset)  # as soon as the next batch is planned
    end = restarted.next()
    assert restarted.next() == end
    for _ in range(2):  # a replay has the same rows
        planned = restarted.reader.partitions(restarted.offset, end)
        assert sorted(text for part in planned for text in texts(restarted, part)) == [*"abcd"]
    restarted.offset = end
    restarted.reader.commit(end)
    assert restarted.batch() is None
    assert [*restarted.reader._staging.store.folders("e-")] == ["e-0000000002"]


def test_a_retry_reads_the_file_of_the_attempt_before(driver, broker, monkeypatch) -> None:
    made = driver()
    broker.send(*"ab")
    end = made.next()
    (part,) = made.reader.partitions(made.offset, end)
    with monkeypatch.context() as patch:
        patch.setattr(PartitionReader, "_settle", lambda *_: None)
        assert texts(made, part) == ["a", "b"]
    broker.send("c")
    assert texts(made, part) == ["a", "b"]
    made.offset = end
    assert made.batch() == ["a", "b", "c"]  # two of them a second time
    assert broker.depth().total == 0


def test_available_now_leaves_no_message_that_came_again(driver, broker, monkeypatch) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcde")
    made.reader.prepareForTriggerAvailableNow()
    with monkeypatch.context() as patch:
        patch.setattr(PartitionReader, "_settle", lambda *_: None)
        assert made.batch() == ["a", "b"]
    batches = []
    while (batch := made.batch()) is not None:
        batches.append(batch)
    assert batches == [["a", "b"], ["c", "d"], ["e"]]
    assert broker.depth().total == 0


def test_a_checkpoint_keeps_its_guarantee(driver, broker, tmp_path: Path) -> None:
    made = driver()
    broker.send("a")
    made.batch()
    other = driver(guarantee="exactly-once")
    other.offset = made.offset
    with pytest.raises(InvalidOptionError, match="was begun with guarantee=at-least-once"):
        other.next()
    with pytest.raises(InvalidOptionError, match="'prefetchEpochs' needs guarantee=exactly-once"):
        broker.options(guarantee="at-least-once", prefetchEpochs=1)
    exact = Staging(tmp_path / "exact", "g")
    exact.create_epoch(1)
    made.reader._location = exact.location
    with pytest.raises(InvalidOptionError, match="was begun with guarantee=exactly-once"):
        made.reader.partitions({"epoch": 0}, {"epoch": 1, "gen": "g", "parts": 1, "rows": 1})


def test_a_file_that_is_missing_or_damaged_is_named(driver, broker, monkeypatch) -> None:
    made = driver(maxMessagesPerBatch=2)
    broker.send(*"abcd")
    attempt_twice(made, monkeypatch)
    end = made.next()
    staging, planned = made.reader._staging, made.reader.partitions(made.offset, end)
    assert [*orphans(staging.location)] == [staging.store.address(part.file("arrow")) for part in staging.unsure(1)]
    assert repair(staging.location) == []
    path = staging.store.folder / planned[0].part.file("arrow")
    path.write_bytes(b"torn")
    with pytest.raises(StoreError, match=rf"{path.name} are damaged"):
        made.reader.read(planned[0]).__next__()
    assert [Path(finding.path).name for finding in repair(staging.location)] == [path.name]
    path.unlink()
    with pytest.raises(StoreError, match=rf"{path.name} is missing.*--accept-loss {staging.gen}/1"):
        texts(made, planned[0])
    repair(staging.location, [f"{staging.gen}/1"])
    assert texts(made, planned[0]) == []
    assert texts(made, planned[1]) != []


@pytest.fixture(params=["folder", "s3"])
def poor_location(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Staging locations without exclusive creation."""
    if request.param == "folder":
        return FolderStore(tmp_path / "staging")
    server = request.getfixturevalue("poor_s3")
    return open_location(server.new_bucket(), endpoint=server.endpoint, credentials=CREDENTIALS)


@pytest.fixture(scope="module")
def poor_s3():
    with s3_server("plain") as server:
        yield server


def test_a_store_without_exclusive_creation_holds_the_files_of_each_attempt(poor_location: Store) -> None:
    with pytest.raises(StoreError, match="set guarantee=at-least-once"):
        Staging(poor_location, "g").begin(Origin("queue:orders"))
    staging, part = Staging(poor_location, GEN), EpochPartition(1, 0)
    staging.begin(Origin("queue:orders"))
    staging.begin(Origin("queue:orders"))
    assert staging.create_epoch(1)
    assert not staging.create_epoch(1)
    assert not staging.is_published(part)
    assert staging.publish(part._replace(attempt="a"), batch("m1"))
    assert not staging.publish(part._replace(attempt="b"), batch("m2"))
    assert staging.is_published(part)
    staging.confirm(part._replace(attempt="a"))
    assert staging.published() == {EpochPartition(1, 0, "a"): True}
    assert staging.unsure(1) == []
    staging.commit(1, retain=0, doubt_retention=60)
    assert staging.published() == {EpochPartition(1, 0, "a"): True}
    staging.commit(2, retain=0, doubt_retention=60)
    assert staging.published() == {}
    with pytest.raises(StaleEpochError):
        staging.check_live(part)
    assert staging.keys_in_doubt() == set()


def test_a_store_whose_listing_is_late_is_refused(poor_s3, monkeypatch) -> None:
    store = open_location(poor_s3.new_bucket(), endpoint=poor_s3.endpoint, credentials=CREDENTIALS)
    monkeypatch.setattr(type(store), "_list", lambda *_: set())
    with pytest.raises(StoreError, match="does not list an object that was created"):
        Staging(store, GEN).begin(Origin("queue:orders"))
