"""The driver stages the next epoch while Spark works on the current one: nothing is lost, doubled or out of order."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from spark_schemas import schema_of

from jmsjca import Queue, TextMessage
from jmsjca.errors import ConnectionLostError, InvalidOptionError, StoreError
from jmsjca.spark import partition
from jmsjca.spark import partition as partition_module
from jmsjca.spark.data_source import plan_columns
from jmsjca.spark.epoch_plans import EpochPlans, Offset, Share
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.reader import JmsStreamReader, Prefetch
from jmsjca.spark.staging import EpochPartition, Staging
from jmsjca.spark.staging_location import repair
from tests.spark import crashing_prefetch
from tests.spark.crashing import CRASHED
from tests.spark.driving import Driver
from tests.spark.step_orders import See, explore
from tests.torture.planting import copied_source, plant, run_in

PATIENCE = 60
ALL = bool(os.environ.get("JMSJCA_ALL_STEPS"))
STRIDE = 1 if ALL else 7


@pytest.fixture
def driver(broker):
    drivers: list[Driver] = []

    def make(**changes) -> Driver:
        options = {"prefetchEpochs": 1, "partitions": 2, "maxMessagesPerBatch": 4} | changes
        drivers.append(Driver(broker, **options))
        return drivers[-1]

    yield make
    for made in drivers:
        made.reader.stop()


def await_prefetch(driver: Driver) -> Prefetch:
    """Wait until the next epoch is staged, as a slow batch does."""
    prefetch = driver.reader._prefetch
    prefetch._thread.join(PATIENCE)
    assert not prefetch._thread.is_alive()
    return prefetch


def staging_of(driver: Driver) -> Staging:
    return driver.reader._staging


def test_a_full_epoch_is_staged_while_spark_works(broker, driver, monkeypatch) -> None:
    made = driver()
    broker.send(*"abcdefghi")
    assert made.batch() == [*"abcd"]
    await_prefetch(made)
    assert list(staging_of(made).published(2).items()) == [(EpochPartition(2, 0), True), (EpochPartition(2, 1), True)]
    assert broker.waiting() == ["i"]
    end = made.next()
    with monkeypatch.context() as patch:
        patch.delattr(partition, "leased")  # the tasks ask no broker
        planned = made.reader.partitions(made.offset, end)
        rows = [row for part in planned for batch in made.reader.read(part) for row in batch.to_pylist()]
    assert [row["text"] for row in rows] == [*"efgh"]
    assert {row["_epoch"] for row in rows} == {2}
    made.offset = end
    assert made.batch() == ["i"]
    assert made.reader.reportLatestOffset()["received"] == 8  # of the epochs that are over


def test_without_the_option_nothing_is_staged_ahead(broker, driver) -> None:
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefghi")
    made.batch()
    assert made.reader._prefetch is None
    assert broker.waiting() == [*"efghi"]


def test_more_than_one_epoch_is_refused(broker) -> None:
    with pytest.raises(InvalidOptionError, match="'prefetchEpochs' must be 0 or 1, not 2"):
        broker.options(prefetchEpochs=2)


def prefetch_of(driver: Driver, offset: dict[str, object] | None = None) -> Prefetch:
    """A prefetch that has to end already: what it does, it does before it waits for the first time."""
    reader = driver.reader
    current = Offset.from_json(driver.offset if offset is None else offset)
    prefetch = Prefetch(reader._options, reader._staged(current), reader._monitor, current, reader._available_now)
    prefetch.end()
    return prefetch


def test_it_waits_until_the_current_epoch_is_staged(broker, driver) -> None:
    """Otherwise a later epoch could have earlier messages."""
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefghi")
    end = made.next()
    first, second = made.reader.partitions(made.offset, end)
    list(made.reader.read(second))
    prefetch = prefetch_of(made, end)
    prefetch.run()
    assert prefetch.plan is None
    list(made.reader.read(first))
    prefetch.run()
    assert prefetch.plan == Offset.from_json(end).next([Share(2, 4, 1)])


def test_an_epoch_that_is_not_full_waits_for_spark(broker, driver) -> None:
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefg")
    assert made.batch() == [*"abcd"]
    prefetch = prefetch_of(made)
    prefetch.run()
    assert prefetch.plan is None
    broker.send("h")
    assert made.batch() == [*"efgh"]


@pytest.mark.parametrize("changes", [{}, {"prefetchEpochs": 0, "partitions": 1, "maxMessagesPerBatch": 100}])
def test_a_driver_goes_on_with_the_epoch_that_another_one_began(broker, driver, changes) -> None:
    """Whatever its own options are. The tasks receive what the other driver left."""
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefghi")
    made.batch()
    prefetch_of(made).run()  # it begins the epoch, and stages nothing
    again = driver(**changes)
    again.offset = made.offset
    assert again.next() == made.offset | {"epoch": 2}
    assert again.batch() == [*"efgh"]
    assert again.batch() == ["i"]
    assert broker.depth().total == 0


def test_what_is_staged_when_a_query_stops_is_its_next_batch(broker, driver) -> None:
    made = driver()
    broker.send(*"abcdefgh")
    made.batch()
    await_prefetch(made)
    made.reader.stop()
    assert broker.depth().total == 0
    again = driver()
    again.offset = made.offset
    assert again.available_now() == [*"efgh"]  # although the queue was empty when the run began


def test_available_now_takes_what_was_there(broker, driver) -> None:
    made = driver()
    broker.send(*"abcdefghij")
    made.reader.prepareForTriggerAvailableNow()
    batches = []
    while (batch := made.batch()) is not None:
        batches.append(batch)
        broker.send(*"0123")
        await_prefetch(made)
    assert ["".join(batch) for batch in batches] == ["abcd", "efgh", "ij"]
    assert broker.waiting() == [*"0123"] * 3


def test_messages_that_an_earlier_run_staged_do_not_count_as_those_of_this_run(broker, driver) -> None:
    made = driver()
    broker.send(*"abcdefgh")
    made.batch()
    await_prefetch(made)
    broker.send(*"ijkl")
    again = driver()
    again.offset = made.offset
    assert again.available_now() == [*"efghijkl"]


def test_without_counts_nothing_is_staged_ahead(broker, driver) -> None:
    made = driver(prefetchEpochs=0, selector="TRUE")
    broker.send(*"abcdefghi")
    made.batch()
    prefetch = prefetch_of(made)
    prefetch.run()
    assert prefetch.plan is None
    assert broker.waiting() == [*"efghi"]


def test_available_now_without_counts_stages_nothing_ahead(broker, driver) -> None:
    made = driver(selector="TRUE")
    broker.send(*"abcdefghi")
    made.reader.prepareForTriggerAvailableNow()
    made.batch()
    assert made.reader._prefetch is None


def test_a_prefetch_that_fails_leaves_its_messages_to_the_tasks(broker, driver, monkeypatch, caplog) -> None:
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefgh")
    made.batch()
    prefetch = prefetch_of(made)
    prefetch._ended.clear()
    partition_module.close_connections()
    with monkeypatch.context() as patch:
        patch.setattr(partition_module, "connect", lose)
        prefetch.run()
    assert "Epoch 2 was not prefetched completely, its tasks receive the rest" in caplog.text
    assert made.batch() == [*"efgh"]


def lose(*_: object) -> None:
    raise ConnectionLostError("the broker is away")


def test_a_late_prefetch_takes_nothing(broker, driver) -> None:
    """The driver lives on beside its successor, which is ahead."""
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefghi")
    made.batch()
    late = prefetch_of(made)
    staging_of(made).commit(2, retain=0, doubt_retention=60)
    late._wait_for_plan = lambda: Offset.from_json(made.offset).next([Share(2, 4, 1)])  # type: ignore[method-assign]
    late.run()
    assert late.plan is None
    assert list(staging_of(made).store.folder.glob("e-*")) == []
    assert broker.waiting() == [*"efghi"]


def test_a_plan_is_removed_with_its_epoch(broker, driver) -> None:
    made = driver()
    broker.send(*"abcdefghi")
    made.batch()
    await_prefetch(made)
    made.batch()
    plans = EpochPlans(staging_of(made))
    assert (plans._staging.store.folder / plans.name(2)).exists()
    made.reader.commit(made.offset)
    assert not (plans._staging.store.folder / plans.name(2)).exists()


def test_staged_messages_that_are_missing_are_an_error(broker, driver) -> None:
    """The folder is lost before Spark has heard of the epoch."""
    made = driver()
    broker.send(*"abcdefghi")
    made.batch()
    await_prefetch(made)
    shutil.rmtree(staging_of(made).store.folder / "e-0000000002")
    with pytest.raises(StoreError, match="e-0000000002 is missing, with the messages of epoch 2"):
        made.next()
    (gen,) = [path.name for path in (broker.location / "v1").iterdir()]
    repair(FolderStore(broker.location), [f"{gen}/2"])
    assert made.batch() == []
    assert made.batch() == ["i"]


@pytest.mark.parametrize("damage", [b"", b"crc32:00000000 {}", b"crc"])
@pytest.mark.parametrize("staged", [True, False])
def test_a_damaged_plan_is_an_error_and_repaired(broker, driver, damage, staged) -> None:
    made = driver(prefetchEpochs=0)
    broker.send(*"abcdefgh")
    made.batch()
    prefetch = prefetch_of(made)
    if staged:
        prefetch._ended.clear()
    prefetch.run()
    path = staging_of(made).store.folder / EpochPlans(staging_of(made)).name(2)
    path.write_bytes(damage)
    again = driver(prefetchEpochs=0)
    again.offset = made.offset
    with pytest.raises(StoreError, match="plan-0000000002 is damaged"):
        again.next()
    (finding,) = repair(FolderStore(broker.location))
    assert (finding.path, finding.repaired) == (
        str(path),
        "set to the partitions that are staged" if staged else "removed: the epoch has no messages yet",
    )
    assert again.batch() == [*"efgh"]
    assert again.batch() is None


class Plans(EpochPlans):
    """Plans whose steps are those of two programs."""

    def __init__(self, staging: Staging, see: See) -> None:
        whole = Staging(staging.location, staging.gen)
        whole.create_epoch = partial(see, staging.create_epoch)  # type: ignore[method-assign]
        super().__init__(whole)
        self._record = partial(see, super()._record)  # type: ignore[method-assign]
        self.find = partial(see, super().find)  # type: ignore[method-assign]


class TwoDrivers:
    """A driver begins an epoch ahead; its successor opens the same epoch for Spark, with another plan."""

    def __init__(self, location: Path) -> None:
        self._staging = Staging(location, "g")
        self._staging.store.folder.mkdir(parents=True)
        self.ahead, self.asked = Offset(2, "g", (Share(3, 9),)), Offset(2, "g", (Share(1, 5),))
        self.programs = [
            lambda see: Plans(self._staging, see).begin(self.ahead),
            lambda see: Plans(self._staging, see).open(self.asked),
        ]

    def disk(self) -> frozenset[tuple[str, bytes]]:
        return frozenset(
            (path.name, path.read_bytes() if path.is_file() else b"") for path in self._staging.store.folder.iterdir()
        )

    def restore(self, disk: frozenset[tuple[str, bytes]]) -> None:
        shutil.rmtree(self._staging.store.folder)
        self._staging.store.folder.mkdir()
        for name, content in disk:
            path = self._staging.store.folder / name
            _ = path.mkdir() if name.startswith("e-") else path.write_bytes(content)

    def check(self, outcomes: list[object]) -> None:
        begun, opened = outcomes
        assert opened == (self.ahead if begun else self.asked)


def test_two_drivers_agree_on_one_plan_in_every_order(tmp_path) -> None:
    visited = explore(TwoDrivers(tmp_path))
    assert visited.ends >= 3


@pytest.mark.timeout(3000)
def test_a_crash_anywhere_loses_and_doubles_nothing(tmp_path, capsys) -> None:
    command = [sys.executable, "-W", "error", "-m", crashing_prefetch.__name__, str(tmp_path), "--stride", str(STRIDE)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=2900, check=True, cwd=Path(__file__).parents[2]
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    for report in reports:
        assert (report["handed"], report["left"], report["later"]) == (crashing_prefetch.TEXTS, 0, []), report
    *crashes, end = reports
    assert ({report["code"] for report in crashes}, end["code"]) == ({CRASHED}, 0)
    if ALL:
        assert {f"{when} {name}" for when in ("before", "after") for name in NAMED} <= {r["point"] for r in crashes}
    with capsys.disabled():
        print(f"\n{len(crashes)} / {end['point']} points to crash at visited", end="")


FAULTS = {
    "no plan before the first message": (
        "spark/epoch_plans.py",
        " and self._staging.create_epoch(plan.epoch) and self._record(plan)",
        " and self._staging.create_epoch(plan.epoch)",
    ),
    "a plan is not looked for": (
        "spark/reader.py",
        "None if offset.gen is None else EpochPlans",
        "None and EpochPlans",
    ),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(tmp_path, fault) -> None:
    with copied_source() as copy:
        plant(copy, *FAULTS[fault])
        done = run_in(copy, [crashing_prefetch.__name__, str(tmp_path), "--stride", "25"], 800)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report for report in reports if report["handed"] != crashing_prefetch.TEXTS]


NAMED = {
    "Staging.create_epoch",
    "EpochPlans._record",
    "PartitionReader._receive",
    "Staging.publish",
    "EmbeddedUnit.commit",
    "Staging.confirm",
    "partition.resolve_duplicates",
    "EpochPlans.remove",
}


def publish(broker, *texts: str, to: Queue) -> None:
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        for text in texts:
            session.create_producer(to).send(TextMessage(text))


def test_several_queues_share_an_epoch_that_is_staged_ahead(broker, driver) -> None:
    made = driver(destination="", destinations="orders,bills", maxMessagesPerBatch=4)
    broker.send(*"abcd")
    publish(broker, *"efgh", to=Queue("bills"))
    first = made.batch()
    await_prefetch(made)
    assert broker.depth().total == 0
    second = made.batch()
    assert sorted(first + second) == [*"abcdefgh"]
    assert len(second) == 4


def test_typed_columns_are_staged_ahead(broker, driver) -> None:
    made = driver()
    schema = schema_of(amount="int", text="string", body="binary", error="string")
    made.reader = JmsStreamReader(*plan_columns(schema, made.reader._options, streaming=True))
    broker.send(*(f'{{"amount": {n}}}' for n in range(7)), "x")
    assert len(made.batch()) == 4
    await_prefetch(made)
    assert len(staging_of(made).published(2)) == 2
    end = made.next()
    planned = made.reader.partitions(made.offset, end)
    rows = [row for part in planned for batch in made.reader.read(part) for row in batch.to_pylist()]
    assert [(row["amount"], row["body"]) for row in rows] == [(4, None), (5, None), (6, None), (None, b"x")]
