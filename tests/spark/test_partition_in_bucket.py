"""The tests of a partition whose outcome depends on the staging store, with S3 for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsjca.spark.object_store import ObjectStore
from jmsjca.spark.partition import PartitionReader, close_connections
from jmsjca.spark.staging import EpochPartition
from tests.spark.conftest import Broker
from tests.spark.test_partition import (
    error,
    given_back,
    read_with_fault,
    test_a_commit_in_doubt_is_remembered_after_its_epoch,
    test_a_commit_in_doubt_loses_and_doubles_nothing,
    test_a_late_attempt_gives_back_what_it_received,
    test_a_part_does_not_wait_for_one_whose_attempt_crashed,
    test_a_partition_whose_loss_was_accepted_is_empty_and_takes_nothing,
    test_a_partition_whose_rows_are_lost_receives_no_others,
    test_an_attempt_that_is_too_late_takes_nothing,
    test_of_two_attempts_the_second_gives_back_what_it_received,
    test_the_attempt_that_staged_reads_nothing_back,
    test_what_comes_again_and_again_is_handed_over_once,
    test_what_was_read_is_settled,
)
from tests.support.s3_server import CREDENTIALS, S3Server

__all__ = [
    "error",
    "given_back",
    "read_with_fault",
    "test_a_commit_in_doubt_is_remembered_after_its_epoch",
    "test_a_commit_in_doubt_loses_and_doubles_nothing",
    "test_a_late_attempt_gives_back_what_it_received",
    "test_a_part_does_not_wait_for_one_whose_attempt_crashed",
    "test_a_partition_whose_loss_was_accepted_is_empty_and_takes_nothing",
    "test_a_partition_whose_rows_are_lost_receives_no_others",
    "test_an_attempt_that_is_too_late_takes_nothing",
    "test_of_two_attempts_the_second_gives_back_what_it_received",
    "test_the_attempt_that_staged_reads_nothing_back",
    "test_what_comes_again_and_again_is_handed_over_once",
    "test_what_was_read_is_settled",
]


@pytest.fixture
def broker(tmp_path: Path, s3: S3Server) -> Iterator[Broker]:
    made = Broker(tmp_path)
    made.bucket = {
        "stagingLocation": s3.new_bucket(),
        "stagingEndpoint": s3.endpoint,
        "stagingCredentials": CREDENTIALS,
    }
    yield made
    close_connections()


def test_the_rows_of_a_replay_are_those_in_the_bucket(broker) -> None:
    broker.send("a", "b")
    first = broker.read(EpochPartition(1, 0))
    broker.send("c")
    assert broker.read(EpochPartition(1, 0)) == first
    assert isinstance(broker.staging().store, ObjectStore)


def test_a_store_that_cannot_be_reached_takes_nothing(broker, monkeypatch) -> None:
    broker.send("a")
    reader = broker.reader(EpochPartition(1, 0))
    put = ObjectStore._put

    def fail(store: ObjectStore, name: str, data: bytes, *, mode: str) -> bool:
        if name.endswith(".arrow"):
            raise OSError("no route to the store")
        return put(store, name, data, mode=mode)

    monkeypatch.setattr(ObjectStore, "_put", fail)
    with pytest.raises(OSError, match="no route"):
        list(PartitionReader.read(reader))
    assert broker.waiting() == ["a"]
