"""Two queries of one queue, in one staging location, driven directly over an embedded broker, without Spark."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.embedded.unit import EmbeddedUnit
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Origin, Staging
from jmsjca.spi import Depth

TEXTS = ["m0", "m1", "m2"]
Read = Callable[..., list[str]]


@pytest.fixture
def read(broker) -> Read:
    """Read an epoch of a query, by its generation, its source and its stagingName."""

    def read(gen: str, name: str, epoch: int = 1, source: str = "queue:orders") -> list[str]:
        staging = Staging(broker.location, gen)
        staging.begin(Origin(source, name))
        staging.create_epoch(epoch)
        reader = PartitionReader(broker.options(), JmsPartition(gen, EpochPartition(epoch, 0), 100))
        return [text for batch in reader.read() for text in batch.column("text").to_pylist()]

    return read


@contextmanager
def without_settling() -> Generator[None]:
    """Cut the connection before messages are settled: they are staged, and redelivered."""

    def fail(*_: object, **__: object) -> None:
        raise ConnectionLostError("the connection was cut")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedUnit, "commit", fail)
        yield


@pytest.mark.parametrize("removed", [False, True])
def test_what_one_query_has_staged_is_not_received_by_another(broker, read, removed) -> None:
    broker.send(*TEXTS)
    with without_settling():
        assert read("a", "first") == TEXTS
    assert broker.waiting() == TEXTS
    if removed:
        Staging(broker.location, "a").commit(1, retain=0, doubt_retention=60)
    broker.send("new")
    assert read("b", "second") == ["new"]
    assert broker.depth() == Depth(0, 0, 0)
    assert read("b", "second") == ["new"]


@pytest.mark.parametrize(
    ("gen", "name", "source"),
    [
        pytest.param("b", "second", "queue:bills", id="another queue, whose messages may have the same keys"),
        pytest.param(
            "b", "first", "queue:orders", id="the same query with a new checkpoint, which gave up the old one"
        ),
        pytest.param("b", "", "queue:orders", id="a query that has no name, as one of an earlier release"),
    ],
)
def test_other_queries_receive_it(broker, read, gen, name, source) -> None:
    broker.send(*TEXTS)
    with without_settling():
        assert read("a", "first") == TEXTS
    assert read(gen, name, source=source) == TEXTS
