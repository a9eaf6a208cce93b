"""The unit: what it takes and sends becomes real at its commit, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsjca.errors import IllegalStateError
from jmsjca.messages import TextMessage
from jmsjca.spi import Order, Unit
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = ["TestUnit", "TestUnitStates"]


class TestUnit(Contract):
    """Commit and rollback (JMS 3.1, section 6.2.7)."""

    def test_commit_acknowledges(self, harness: Harness) -> None:
        """What a committed unit took never comes again."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        harness.settle(harness.gather(harness.connection.consumer(queue), 2))
        harness.connection.close()
        assert harness.remaining(queue) == []

    def test_sends_are_invisible_before_commit(self, harness: Harness) -> None:
        """A message is produced by the commit, not by the send."""
        queue = harness.queue()
        unit = harness.connection.unit()
        harness.note(unit, queue, "a")
        consumer = harness.connect().consumer(queue)
        assert harness.nothing_comes(consumer)
        unit.commit()
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_rollback_discards_sends(self, harness: Harness) -> None:
        """What a rolled-back unit sent was never sent."""
        queue = harness.queue()
        unit = harness.connection.unit()
        harness.note(unit, queue, "a")
        unit.rollback()
        assert harness.remaining(queue) == []

    def test_commit_settles_and_sends_together(self, harness: Harness) -> None:
        """One unit moves a message from one queue to another (capability atomic)."""
        harness.require("atomic")
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.connection.unit()
        unit.take(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.commit()
        assert harness.remaining(source) == []
        assert harness.remaining(target) == ["moved"]

    def test_rollback_neither_settles_nor_sends(self, harness: Harness) -> None:
        """After a rollback everything is as before."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.connection.unit()
        unit.take(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.rollback()
        assert harness.remaining(source) == ["a"]
        assert harness.remaining(target) == []

    def test_unit_that_need_not_be_atomic_does_both(self, harness: Harness) -> None:
        """With ``atomic=False`` the commit sends first and acknowledges then; both have happened after it."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.connection.unit(atomic=False)
        unit.take(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.commit()
        assert harness.remaining(source) == []
        assert harness.remaining(target) == ["moved"]

    def test_rollback_counts_and_marks_redelivered(self, harness: Harness) -> None:
        """JMSXDeliveryCount grows and JMSRedelivered is set (JMS 3.1, sections 3.4.7 and 3.5.11)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, delivery.redelivered) == (expected, expected > 1)
            assert (delivery.message.delivery_count, delivery.message.redelivered) == (expected, expected > 1)
            unit = harness.connection.unit()
            unit.take([delivery])
            unit.rollback()

    def test_unused_deliveries_of_a_rollback_are_not_counted(self, harness: Harness) -> None:
        """A batch rolls back; what the handler had not looked at is as good as new (design rule of `rollback`)."""
        harness.require("delivery_count")
        harness.require_give_back("uncounted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        first, second = harness.gather(consumer, 2)
        unit = harness.connection.unit()
        unit.take([first, second])
        unit.rollback(unused=[second])
        assert [(d.message.body, d.count) for d in harness.gather(consumer, 2)] == [("a", 2), ("b", 1)]

    def test_two_units_settle_crosswise(self, harness: Harness) -> None:
        """Units of one connection are independent: the later one commits first, the earlier one rolls back."""
        queue = harness.queue()
        harness.send(queue, *"abcd")
        deliveries = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 4)
        one, two = harness.connection.unit(), harness.connection.unit()
        one.take([deliveries[0], deliveries[2]])
        two.take([deliveries[1], deliveries[3]])
        two.commit()
        one.rollback()
        assert harness.remaining(queue) == ["a", "c"]

    def test_rollback_reaches_every_consumer(self, harness: Harness) -> None:
        """One unit may take from several consumers; all of it comes again."""
        queues = [harness.queue(), harness.queue()]
        unit = harness.connection.unit()
        for queue in queues:
            harness.send(queue, "a")
            unit.take(harness.gather(harness.connection.consumer(queue), 1))
        unit.rollback()
        harness.connection.close()
        assert [harness.remaining(queue) for queue in queues] == [["a"], ["a"]]

    def test_message_changed_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """A message may be reused as soon as it was handed over (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = TextMessage("before", properties={"when": "before"})
        unit = harness.connection.unit()
        unit.send(prepare(message, queue), queue)
        message.body, message.properties["when"] = "after", "after"
        unit.commit()
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.message.body, delivery.message.properties["when"]) == ("before", "before")

    def test_rollback_with_delay_holds_the_message(self, harness: Harness) -> None:
        """The broker keeps a rolled-back message from everybody until it is due (capability redelivery_delay)."""
        harness.require("redelivery_delay")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        unit = harness.connection.unit()
        unit.take(harness.gather(consumer, 1))
        unit.rollback(delay=3600)
        assert bodies(harness.gather(consumer, 1)) == ["b"]
        assert harness.nothing_comes(consumer)

    def test_delayed_message_comes_when_it_is_due(self, harness: Harness) -> None:
        """A receive that waits gets the message when its delay is over, counted."""
        harness.require("redelivery_delay", "delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        unit = harness.connection.unit()
        unit.take(harness.gather(consumer, 1))
        unit.rollback(delay=0.05)
        assert [d.count for d in harness.gather(consumer, 1)] == [2]


class TestUnitStates(Contract):
    """Misuse is refused (`IllegalStateError`), never guessed at."""

    def test_delivery_belongs_to_one_unit(self, harness: Harness) -> None:
        """Taking a delivery twice is an error, in the same unit and in another."""
        queue = harness.queue()
        harness.send(queue, "a")
        deliveries = harness.gather(harness.connection.consumer(queue), 1)
        unit, other = harness.connection.unit(), harness.connection.unit()
        unit.take(deliveries)
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
            harness.connection.unit().take(deliveries)

    def test_settled_delivery_cannot_be_taken(self, harness: Harness) -> None:
        """A delivery is settled once, whether by commit or by rollback."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        first, second = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 2)
        harness.settle([first])
        unit = harness.connection.unit()
        unit.take([second])
        unit.rollback()
        for settled in (first, second):
            with pytest.raises(IllegalStateError):
                harness.connection.unit().take([settled])

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_finished_unit_refuses_everything(self, harness: Harness, end: str) -> None:
        """A unit is used once."""
        queue = harness.queue()
        unit: Unit = harness.connection.unit()
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
