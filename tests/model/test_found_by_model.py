"""What the state machine brought to light, each in its smallest form."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsjca import Queue, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Subscription, TemporaryQueue
from tests.model.operations import Letter, Source, Way
from tests.model.real import Real

QUEUE, DEAD = Queue("found"), Queue("dead")


@pytest.fixture
def broker() -> Iterator[Real]:
    broker = Real(1_800_000_000_000, "found")
    broker.connect("c")
    yield broker
    broker.end()


def send(broker: Real, *letters: Letter, to: Destination = QUEUE) -> None:
    broker.begin("sender", "c")
    for letter in letters:
        broker.note("sender", letter, to)
    broker.commit("sender")


def receive(broker: Real, name: str) -> list[str]:
    return [receipt.body for receipt in broker.receive(name, 1)]


def test_message_of_a_group_comes_at_the_first_look(broker: Real) -> None:
    send(broker, Letter("a", group="g"))
    broker.consume("k", "c", QUEUE)
    assert receive(broker, "k") == ["a"]


def test_expired_message_does_not_hide_what_is_behind_it(broker: Real) -> None:
    send(broker, Letter("a", group="g", time_to_live=1), Letter("b", group="g"))
    broker.consume("k", "c", QUEUE)
    broker.advance(1)
    assert receive(broker, "k") == ["b"]


def test_message_that_failed_too_often_does_not_hide_what_is_behind_it(broker: Real) -> None:
    send(broker, Letter("a"), Letter("b"))
    broker.consume("k", "c", QUEUE)
    broker.begin("u", "c")
    broker.take("u", [receipt.number for receipt in broker.receive("k", 1)])
    broker.rollback("u")
    broker.configure("c", QUEUE, DestinationSettings(max_deliveries=1))
    assert receive(broker, "k") == ["b"]


def test_message_that_failed_too_often_leaves_its_group_to_who_gets_the_next_one(broker: Real) -> None:
    send(broker, Letter("a", group="g"), Letter("b"))
    broker.consume("k", "c", QUEUE)
    broker.begin("u", "c")
    broker.take("u", [receipt.number for receipt in broker.receive("k", 1)])
    broker.rollback("u")
    broker.close_consumer("k")
    broker.configure("c", QUEUE, DestinationSettings(max_deliveries=1))
    for name in ("k", "other"):
        broker.consume(name, "c", QUEUE)
    send(broker, Letter("c", group="g"))
    assert (receive(broker, "k"), receive(broker, "other")) == (["b"], ["c"])


@pytest.mark.parametrize("selector", [None, "colour = 'red'"])
def test_who_waited_for_its_turn_finds_what_it_could_not_have_before(broker: Real, selector: str | None) -> None:
    send(broker, Letter("a", colour="red", group="g"))
    broker.configure("c", QUEUE, DestinationSettings(exclusive=True))
    broker.consume("first", "c", QUEUE)
    broker.consume("second", "c", QUEUE, Way(selector=selector))
    for _ in range(2):
        assert receive(broker, "second") == []
    broker.close_consumer("first")
    assert receive(broker, "second") == ["a"]


@pytest.fixture
def shared_file(tmp_path: Path) -> Iterator[Real]:
    """Yield a broker in a file with two processes, one of which the test crashes."""
    broker = Real(1_800_000_000_000, tmp_path / "broker.db")
    broker.connect("c")
    broker.connect("crashing")
    yield broker
    broker.end()


TOPIC = Topic("found")
TEMPORARY = TemporaryQueue("found temporary")


@pytest.mark.parametrize(
    "source",
    [TOPIC, Subscription(TOPIC, "brief", shared=True, volatile=True), TEMPORARY],
    ids=["volatile", "shared", "temporary queue"],
)
def test_failed_message_is_dead_lettered_although_its_queue_ends_with_the_crashed_process(
    shared_file: Real, source: Source
) -> None:
    """The broker once removed the queue, with its settings, before it released the messages that the process held."""
    shared_file.temporary("crashing", TEMPORARY)
    shared_file.configure("c", None, DestinationSettings(max_deliveries=1, dead_letter=DEAD))
    shared_file.consume("k", "crashing", source)
    send(shared_file, Letter("a"), to=source.topic if isinstance(source, Subscription) else source)
    assert receive(shared_file, "k") == ["a"]
    shared_file.begin("u", "crashing")
    shared_file.take("u", [0])
    shared_file.crash("crashing")
    shared_file.connect("another")
    assert shared_file.view("another", DEAD).waiting == [("a", 1)]
