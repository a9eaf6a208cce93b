"""A message in several partitions is delivered once, in every order of their steps."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.spark import partition
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging
from jmsjca.spi import Capabilities
from tests.spark.driving import Driver
from tests.spark.step_orders import See, explore


class Delivery:
    """One copy of a message."""

    raw, size, count, redelivered = b"", 0, 1, False

    def __init__(self, key: str) -> None:
        self.message = TextMessage(key)
        self.message.message_id = key

    def drop_content(self) -> None:
        pass


class Connection:
    """A connection, consumer and unit of a broker that handed its messages to others too."""

    capabilities = Capabilities(exact_credit=True)

    def __init__(self, keys: Iterable[str], owns: bool) -> None:
        self._deliveries = [Delivery(key) for key in keys]
        self._owns = owns

    def consumer(self, *_: object, **__: object) -> "Connection":
        return self

    unit = consumer

    def receive(self, limit: int, timeout: float) -> list[Delivery]:
        received, self._deliveries = self._deliveries, []
        return received

    def drain(self) -> list[Delivery]:
        return []

    def take(self, deliveries: object) -> None:
        pass

    hand_over = release = take

    def commit(self, *, confirmed: bool) -> None:
        if not self._owns:
            raise TransactionRolledBackError("somebody else has it")

    def close(self) -> None:
        pass


READS = ("is_published", "check_live", "keys_in_doubt", "published", "decision")
WRITES = ("publish", "confirm", "record_decision")


class SteppedStaging(Staging):
    """The real staging, whose methods are steps.

    Args:
        location: Where it is.
        see: Takes a step.
        turns: The methods before which others may take theirs.
        content: Gives the content of a published part.
    """

    def __init__(
        self, location: Path, see: See, turns: Iterable[str], content: Callable[[EpochPartition], Any]
    ) -> None:
        super().__init__(location, "g")
        self.content = content  # type: ignore[method-assign]
        self.keys = lambda part: set(content(part).keys)  # type: ignore[method-assign]
        whole = Staging(location, "g")
        for name in {*READS, *WRITES} - (set() if "keys_in_doubt" in turns else {"keys_in_doubt"}):
            forget = name in ("publish", "confirm")
            setattr(self, name, partial(see, getattr(whole, name), turn=name in turns, forget=forget))


class Scene:
    """Partitions that have received the same messages; only those in `owners` can settle theirs."""

    def __init__(self, location: Path, held: list[str], owners: tuple[int, ...], turns: Iterable[str]) -> None:
        self._location = location
        self._held = held
        self._owners = owners
        self._turns = turns
        self._staging = Staging(location, "g")
        self._staging.create_epoch(1)
        self._folder = self._staging.store.folder / "e-0000000001"
        self._files: dict[str, bytes] = {}  # on disk
        self._contents = cache(lambda part, content: self._staging.content(part))
        self.programs = [partial(self._read, number) for number in range(len(held))]

    def _read(self, number: int, see: See) -> list[str]:
        options = SourceOptions("", "q", stagingLocation=str(self._location))
        reader = PartitionReader(options, JmsPartition("g", EpochPartition(1, number), 10))
        reader._staging = SteppedStaging(self._location, see, self._turns, self._content_of)
        connection = Connection(self._held[number], number in self._owners)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition, "connect", lambda *_: connection)
            try:
                return [text for batch in reader.read() for text in batch.column("text").to_pylist()]
            finally:
                partition.close_connections()

    def _content_of(self, part: EpochPartition) -> Any:
        return self._contents(part, self._files.get(f"{part.name}.arrow"))  # read once for each content

    def disk(self) -> frozenset[tuple[str, bytes]]:
        for path in self._folder.iterdir():
            if path.name not in self._files:
                self._files[path.name] = path.read_bytes()
        return frozenset(self._files.items())

    def restore(self, disk: frozenset[tuple[str, bytes]]) -> None:
        for name, _ in self._files.items() - disk:
            (self._folder / name).unlink()
        for name, content in disk - self._files.items():
            (self._folder / name).write_bytes(content)
        self._files = dict(disk)

    def check(self, outcomes: list[list[str]]) -> None:
        messages = set(chain(*self._held))
        assert Counter(chain(*outcomes)) == dict.fromkeys(messages, 1)
        settled = set(chain(*(self._held[owner] for owner in self._owners)))
        assert messages - settled <= self._staging.keys_in_doubt()  # these come again


SMALL = ("publish", "confirm", "published", "decision", "record_decision")
LARGE = ("keys_in_doubt", "publish", "confirm", "published", "record_decision")
SCENES = [  # letters are messages; capital ones are held by several partitions
    (["Ma", "Mb"], SMALL, [(), (0,), (1,)]),
    (["M", "M", "M"], LARGE, [()]),
    (["M", "MN", "N"], LARGE, [()]),
]
MORE_SCENES = [  # a minute of them
    (["M", "M", "M"], LARGE, [(0,), (1,), (2,)]),
    (["M", "MN", "N"], LARGE, [(0,), (1,), (2,), (0, 2)]),
]
CASES = [
    (held, turns, owners)
    for held, turns, variants in (SCENES + MORE_SCENES if os.environ.get("JMSJCA_ALL_ORDERS") else SCENES)
    for owners in variants
]


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody pulls the plug, so nothing needs to be durable; and thousands of runs are not logged."""
    monkeypatch.setattr("os.fsync", lambda fd: None)
    caplog.set_level("CRITICAL", "jmsjca.spark")


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize(("held", "turns", "owners"), CASES)
def test_every_order_hands_each_message_over_once(held, turns, owners, tmp_path, capsys) -> None:
    visited = explore(Scene(tmp_path, held, owners, turns))
    assert visited.ends
    with capsys.disabled():
        print(f"\n{held}, settled by {owners or 'nobody'}: {visited}", end="")


def test_available_now_leaves_no_message_for_one_that_two_partitions_received(broker) -> None:
    """The broker drops the consumer of the first partition, and redelivers its messages to the second one."""
    broker.send(*"abcdef")
    made = Driver(broker, maxMessagesPerBatch=4, partitions=2)
    made.reader.prepareForTriggerAvailableNow()
    end = made.next()
    first, second = made.reader.partitions(made.offset, end)
    made.offset = end
    rows: list[str] = []

    class Dropped(PartitionReader):
        def _stage_and_settle(self, lease, consumer, received):
            consumer.close()
            rows.extend(texts(made.reader.read(second)))
            return super()._stage_and_settle(lease, consumer, received)

    rows += texts(Dropped(made.reader._options, first).read())
    assert sorted(rows) == ["a", "b"]
    while (batch := made.batch()) is not None:
        rows += batch
    assert sorted(rows) == [*"abcdef"]
    assert broker.depth().total == 0


def texts(batches: Iterable[Any]) -> list[str]:
    return [text for batch in batches for text in batch["text"].to_pylist()]
