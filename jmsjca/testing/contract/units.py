"""The unit: what it takes and sends becomes real at its commit, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError, ResourceAllocationError
from jmsjca.messages import TextMessage
from jmsjca.spi import Order, Unit
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = ["TestCommit", "TestUnitStates"]


class TestCommit(Contract):
    """Commit (JMS 3.1, section 6.2.7)."""

    def test_commit_acknowledges(self, harness: Harness) -> None:
        """What a committed unit took never comes again."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        harness.settle(harness.gather(harness.connection.consumer(queue), 2))
        harness.connection.close()
        harness.expect(queue)

    def test_commit_settles_what_its_unit_took_and_no_more(self, harness: Harness) -> None:
        """What else the consumer was given comes again when it goes."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        first, *_ = harness.gather(harness.connection.consumer(queue), 3)
        harness.settle([first])
        harness.connection.close()
        harness.expect(queue, "b", "c")

    def test_commit_after_commit(self, harness: Harness) -> None:
        """One unit after the other, of one consumer and with many messages each."""
        queue, sent = harness.queue(), [str(n) for n in range(60)]
        harness.send(queue, *sent)
        consumer = harness.connection.consumer(queue)
        for begin in range(0, 45, 15):
            chunk = harness.gather(consumer, 15)
            assert bodies(chunk) == sent[begin : begin + 15]
            harness.settle(chunk)
        harness.connection.close()
        harness.expect(queue, *sent[45:])

    def test_sends_are_invisible_before_commit(self, harness: Harness) -> None:
        """A message is produced by the commit, not by the send."""
        queue = harness.queue()
        unit = harness.unit()
        harness.note(unit, queue, "a")
        consumer = harness.connect().consumer(queue)
        assert harness.nothing_comes(consumer, queue)
        unit.commit()
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_commit_settles_and_sends_together(self, harness: Harness) -> None:
        """One unit moves a message from one queue to another (capability atomic)."""
        harness.require("atomic")
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.commit()
        harness.connection.close()
        harness.expect(source)
        harness.expect(target, "moved")

    def test_unit_that_need_not_be_atomic_does_both(self, harness: Harness) -> None:
        """With ``atomic=False`` the commit sends first and acknowledges then; both have happened after it."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.connection.unit(atomic=False)
        unit.take(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.commit()
        harness.connection.close()
        harness.expect(source)
        harness.expect(target, "moved")

    def test_message_over_the_limit_is_refused_at_once(self, harness: Harness) -> None:
        """`ResourceAllocationError` at the send; the unit can go on, and what it took can be moved smaller."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        connection = harness.connect(limits=Limits(message_bytes=10_000))
        unit = harness.holding(harness.gather(connection.consumer(source), 1), connection)
        with pytest.raises(ResourceAllocationError):
            harness.note(unit, target, "x" * 10_001)
        harness.note(unit, target, "small")
        unit.commit()
        connection.close()
        harness.expect(source)
        harness.expect(target, "small")

    def test_empty_unit_commits(self, harness: Harness) -> None:
        """Nothing taken, nothing sent, nothing wrong."""
        harness.unit().commit()

    def test_message_changed_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """A message may be reused as soon as it was handed over (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = TextMessage("before", properties={"when": "before"})
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.body, message.properties["when"] = "after", "after"
        unit.commit()
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.message.body, delivery.message.properties["when"]) == ("before", "before")

    @pytest.mark.parametrize("first", ["one", "two"])
    @pytest.mark.parametrize(
        ("one_ends", "two_ends", "left"),
        [("commit", "rollback", "bdf"), ("rollback", "commit", "ace"), ("commit", "commit", "")],
    )
    def test_two_units_settle_crosswise(
        self, harness: Harness, first: str, one_ends: str, two_ends: str, left: str
    ) -> None:
        """Units of one connection are independent, whichever ends first and however their messages mingle."""
        queue = harness.queue()
        harness.send(queue, *"abcdef")
        deliveries = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 6)
        one, two = harness.holding(deliveries[::2]), harness.holding(deliveries[1::2])
        ends: dict[str, Callable[[], None]] = {"one": getattr(one, one_ends), "two": getattr(two, two_ends)}
        ends.pop(first)()
        ends.popitem()[1]()
        harness.connection.close()
        harness.expect(queue, *left, ordered=False)

    @pytest.mark.parametrize("first", [0, 1])
    def test_two_units_send_independently(self, harness: Harness, first: int) -> None:
        """What one unit sends is not sent by the commit of the other, nor lost with it."""
        queue = harness.queue()
        units = [harness.unit(), harness.unit()]
        for number in (0, 1, 0, 1):
            harness.note(units[number], queue, f"of {number}")
        units[first].commit()
        units[1 - first].rollback()
        harness.expect(queue, *[f"of {first}"] * 2)


class TestUnitStates(Contract):
    """Misuse is refused (`IllegalStateError`), never guessed at."""

    def test_delivery_belongs_to_one_unit(self, harness: Harness) -> None:
        """Taking a delivery twice is an error, in the same unit and in another."""
        queue = harness.queue()
        harness.send(queue, "a")
        deliveries = harness.gather(harness.connection.consumer(queue), 1)
        unit, other = harness.holding(deliveries), harness.unit()
        for again in (unit, other):
            with pytest.raises(IllegalStateError):
                again.take(deliveries)

    def test_delivery_given_back_cannot_be_taken(self, harness: Harness) -> None:
        """What was given back is somebody else's by now."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        deliveries = harness.gather(consumer, 1)
        consumer.give_back(deliveries)
        with pytest.raises(IllegalStateError):
            harness.unit().take(deliveries)

    def test_settled_delivery_cannot_be_taken(self, harness: Harness) -> None:
        """A delivery is settled once, whether by commit or by rollback."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        first, second = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 2)
        harness.settle([first])
        harness.holding([second]).rollback()
        for settled in (first, second):
            with pytest.raises(IllegalStateError):
                harness.unit().take([settled])

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_finished_unit_refuses_everything(self, harness: Harness, end: str) -> None:
        """A unit is used once."""
        queue = harness.queue()
        unit: Unit = harness.unit()
        getattr(unit, end)()
        calls: list[Callable[[], None]] = [
            unit.commit,
            unit.rollback,
            lambda: unit.take([]),
            lambda: harness.note(unit, queue, "a"),
        ]
        for call in calls:
            with pytest.raises(IllegalStateError):
                call()
