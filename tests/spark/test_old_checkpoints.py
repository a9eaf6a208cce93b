"""A checkpoint that was set back: restored from an older backup, or without its last notes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsjca.errors import StoreError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.staging import EpochPartition, Staging, StaleEpochError
from jmsjca.spark.staging_location import repair
from tests.spark.conftest import Broker
from tests.spark.driving import Driver

BATCHES = 5


@pytest.fixture
def driver(broker: Broker) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def make(offset: dict[str, Any] | None = None, **changes: object) -> Driver:
        made = Driver(broker, **changes)
        drivers.append(made)
        made.offset = offset or made.offset
        return made

    yield make
    for made in drivers:
        made.reader.stop()


def read(driver: Driver, broker: Broker, last: int = BATCHES) -> list[dict[str, Any]]:
    """Read one batch after the other, and return the offsets in front of and between them."""
    offsets = [driver.offset]
    for number in range(last):
        broker.send(f"m{number}")
        assert driver.batch() == [f"m{number}"]
        offsets.append(driver.offset)
    return offsets


def staging_of(broker: Broker, offset: dict[str, Any]) -> Staging:
    return Staging(FolderStore(broker.location), offset["gen"])


@pytest.mark.parametrize("changes", [{}, {"guarantee": "at-least-once"}, {"prefetchEpochs": 1}])
def test_a_checkpoint_that_was_set_back_is_told(driver, broker, changes) -> None:
    first = driver(**changes)
    offsets = read(first, broker)
    first.next()  # Spark has committed the last one
    broker.send("new")
    older = driver(offsets[2], **changes)
    with pytest.raises(
        StoreError, match=r"goes on with epoch 3.* committed up to epoch 5.*Restore the last checkpoint"
    ):
        older.next()
    assert broker.waiting() == ["new"]
    newest = driver(offsets[BATCHES], **changes)
    assert newest.batch() == ["new"]


def test_the_last_batch_is_opened_again_if_spark_has_not_noted_it(driver, broker) -> None:
    offsets = read(driver(), broker, 2)
    broker.send("a")
    end = driver(offsets[2]).next()  # the driver dies before Spark notes the offset
    again = driver(offsets[2])
    assert again.next() == end
    assert again.batch() == ["a"]
    repeated = driver(offsets[2])  # Spark has not noted the end of the batch
    assert repeated.batch() == ["a"]


def test_a_batch_of_a_restored_checkpoint_whose_folder_was_removed_is_explained(driver, broker) -> None:
    first = driver()
    offsets = read(first, broker)
    first.next()
    first.reader.commit(first.offset)
    older = driver(offsets[1])
    with pytest.raises(StoreError, match=r"e-0000000002 is missing.* committed up to epoch 5.*older than its staged"):
        older.reader.partitions(offsets[1], offsets[2])


def test_a_staged_file_of_a_committed_batch_that_is_missing_is_lost(driver, broker) -> None:
    """Spark repeats the batch, because the note of its end is lost."""
    first = driver(partitions=1)
    broker.send("a")
    start = first.offset
    assert first.batch() == ["a"]
    first.next()  # Spark has committed the batch
    staging, part = staging_of(broker, first.offset), EpochPartition(1, 0)
    assert staging.low == 1
    staging.withdraw(part)
    broker.send("new")

    def replay() -> list[str]:
        reader = driver(start).reader
        return [
            row["text"]
            for each in reader.partitions(start, first.offset)
            for batch in reader.read(each)
            for row in batch.to_pylist()
        ]

    with pytest.raises(StoreError, match=rf"p-00000\.arrow is missing.*--accept-loss {staging.gen}/1"):
        replay()
    repair(staging.location, [f"{staging.gen}/1"])
    assert replay() == []
    assert broker.waiting() == ["new"]


def test_a_late_attempt_at_a_partition_of_which_nothing_is_staged_is_late(broker) -> None:
    staging = broker.staging("g", 1)
    staging.complete(1)
    with pytest.raises(StaleEpochError):
        staging.check_live(EpochPartition(1, 0))
