"""Rollback: everything is as before, but that the attempt was counted."""

from __future__ import annotations

import pytest

from jmsjca.messages import TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestRollback"]


class TestRollback(Contract):
    """Rollback (JMS 3.1, section 6.2.7), and what it counts."""

    def test_rollback_discards_sends(self, harness: Harness) -> None:
        """What a rolled-back unit sent was never sent."""
        queue = harness.queue()
        unit = harness.unit()
        harness.note(unit, queue, "a")
        unit.rollback()
        harness.expect(queue)

    def test_rollback_neither_settles_nor_sends(self, harness: Harness) -> None:
        """After a rollback everything is as before."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, target, "moved")
        unit.rollback()
        harness.connection.close()
        harness.expect(source, "a")
        harness.expect(target)

    def test_rollback_marks_redelivered(self, harness: Harness) -> None:
        """JMSRedelivered is set when a message comes again (JMS 3.1, section 3.4.7)."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, order=Order.ANY)
        first, second = harness.gather(consumer, 2)
        harness.holding([first]).rollback()
        [again] = harness.gather(consumer, 1)
        assert (first.redelivered, second.redelivered, again.redelivered) == (False, False, True)
        assert (first.message.redelivered, again.message.redelivered) == (False, True)

    @pytest.mark.parametrize("body", ["a", "a" * 200_000], ids=["small", "large"])
    def test_rollback_counts(self, harness: Harness, body: str) -> None:
        """JMSXDeliveryCount grows and JMSRedelivered is set (JMS 3.1, sections 3.4.7 and 3.5.11)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send_messages(queue, TextMessage(body))
        consumer = harness.connection.consumer(queue)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, delivery.redelivered) == (expected, expected > 1)
            assert (delivery.message.delivery_count, delivery.message.redelivered) == (expected, expected > 1)
            harness.holding([delivery]).rollback()

    def test_count_goes_on_at_another_consumer(self, harness: Harness) -> None:
        """The broker counts, so whoever gets the message next knows (capability delivery_count)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        for expected in (1, 2, 3):
            connection = harness.connect()
            [delivery] = harness.gather(connection.consumer(queue), 1)
            assert (delivery.count, delivery.redelivered) == (expected, expected > 1)
            harness.holding([delivery], connection).rollback()
            connection.close()

    def test_unused_deliveries_of_a_rollback_are_not_counted(self, harness: Harness) -> None:
        """A batch rolls back; what the handler had not looked at is as good as new (design rule of `rollback`)."""
        harness.require("delivery_count")
        harness.require_give_back("uncounted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        first, second = harness.gather(consumer, 2)
        harness.holding([first, second]).rollback(unused=[second])
        assert [(d.message.body, d.count) for d in harness.gather(consumer, 2)] == [("a", 2), ("b", 1)]

    def test_rollback_reaches_every_consumer(self, harness: Harness) -> None:
        """One unit may take from several consumers; all of it comes again."""
        queues = [harness.queue(), harness.queue()]
        unit = harness.unit()
        for queue in queues:
            harness.send(queue, "a")
            unit.take(harness.gather(harness.connection.consumer(queue), 1))
        unit.rollback()
        harness.connection.close()
        for queue in queues:
            harness.expect(queue, "a")

    def test_empty_unit_rolls_back(self, harness: Harness) -> None:
        """Nothing taken, nothing sent, nothing wrong."""
        harness.unit().rollback()

    def test_rollback_with_delay_holds_the_message(self, harness: Harness) -> None:
        """The broker keeps a rolled-back message from everybody until it is due (capability redelivery_delay)."""
        harness.require("redelivery_delay")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=3600)
        assert bodies(harness.gather(consumer, 1)) == ["b"]
        assert harness.nothing_comes(consumer, queue)

    def test_delayed_message_comes_when_it_is_due(self, harness: Harness) -> None:
        """A receive that waits gets the message when its delay is over, counted."""
        harness.require("redelivery_delay", "delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=0.05)
        assert [d.count for d in harness.gather(consumer, 1)] == [2]

    @pytest.mark.parametrize("order", list(Order))
    def test_rolled_back_message_can_be_committed(self, harness: Harness, order: Order) -> None:
        """The second attempt is an attempt like the first: after its commit the message is gone."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, order=order)
        harness.holding(harness.gather(consumer, 2)).rollback()
        harness.settle(harness.gather(consumer, 2))
        harness.connection.close()
        harness.expect(queue)
