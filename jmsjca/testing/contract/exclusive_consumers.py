"""Cases for exclusive consumers: one receives, the others stand by."""

from __future__ import annotations

from collections.abc import Sequence

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.spi import Consumer, Order
from jmsjca.testing.contract.destination_settings import Configured, configure
from jmsjca.testing.contract.harness import Harness, bodies

__all__ = ["TestExclusiveConsumers"]


class TestExclusiveConsumers(Configured):
    """The setting ``exclusive`` (beyond JMS: Artemis' exclusive queues)."""

    def test_only_the_first_receives(self, harness: Harness) -> None:
        """Whoever else asks first, over whichever connection (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 3)) == ["a", "b", "c"]

    def test_next_takes_over_when_it_closes(self, harness: Harness) -> None:
        """The close wakes the next consumer; messages released by the first come first (JMS 3.1, section 6.2.9)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        harness.gather(first, 1)
        waiting = harness.in_background(harness.gather, second, 3)
        first.close()
        assert bodies(waiting.result()) == ["a", "b", "c"]

    def test_they_take_over_in_the_order_of_their_coming(self, harness: Harness) -> None:
        """The longest waiting consumer is next; a new consumer is last (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second, third = _consumers(harness, queue, 3)
        first.close()
        [fourth] = _consumers(harness, queue, 1)
        harness.send(queue, *"abc")
        for consumer in (third, fourth):
            assert bodies(consumer.receive(1, 0)) == []
        harness.settle(harness.gather(second, 1), harness.connection)
        second.close()
        assert bodies(fourth.receive(1, 0)) == []
        assert bodies(harness.gather(third, 2)) == ["b", "c"]

    def test_one_that_stands_by_may_leave(self, harness: Harness) -> None:
        """Nothing changes for the first (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        second.close()
        harness.send(queue, "a")
        assert bodies(harness.gather(first, 1)) == ["a"]

    def test_rolled_back_message_comes_to_the_first_again(self, harness: Harness) -> None:
        """A failure is no reason to hand over (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"ab")
        harness.holding(harness.gather(first, 1)).rollback()
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 2)) == ["a", "b"]

    def test_unit_of_the_closed_first_keeps_what_it_took(self, harness: Harness) -> None:
        """The next one goes on behind it, until it comes back (JMS 3.1, sections 8.8 and 6.2.7)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        unit = harness.holding(harness.gather(first, 1))
        first.close()
        assert bodies(harness.gather(second, 1)) == ["b"]
        unit.rollback()
        assert bodies(harness.gather(second, 2)) == ["a", "c"]

    def test_closed_connection_hands_over(self, harness: Harness) -> None:
        """With what its open units held, counted (JMS 3.1, section 6.1.8)."""
        harness.require("delivery_count")
        queue = _exclusive(harness)
        dying = harness.connect()
        first = dying.consumer(queue, window=0)
        [second] = _consumers(harness, queue, 1)
        harness.send(queue, *"ab")
        harness.holding(harness.gather(first, 1), dying)
        dying.close()
        assert [(d.message.body, d.count) for d in harness.gather(second, 2)] == [("a", 2), ("b", 1)]

    def test_setting_it_keeps_the_oldest_consumer(self, harness: Harness) -> None:
        """It holds from now on; what the others hold they may settle (Artemis' exclusive queues)."""
        queue = harness.queue()
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        unit = harness.holding(harness.gather(second, 1))
        configure(harness, queue, exclusive=True)
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 2)) == ["b", "c"]
        unit.commit()

    def test_taking_it_back_lets_all_receive(self, harness: Harness) -> None:
        """And wakes who stood by (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"ab")
        assert bodies(harness.gather(first, 1)) == ["a"]
        waiting = harness.in_background(harness.gather, second, 1)
        configure(harness, queue)
        assert bodies(waiting.result()) == ["b"]

    def test_first_here_may_be_second_there(self, harness: Harness) -> None:
        """Each queue has its own order of consumers (Artemis' exclusive queues)."""
        here, there = _exclusive(harness), _exclusive(harness)
        first_here, second_here = _consumers(harness, here, 2)
        first_there, second_there = _consumers(harness, there, 2)
        for queue in (here, there):
            harness.send(queue, "a")
        for standing_by in (second_here, second_there):
            assert bodies(standing_by.receive(1, 0)) == []
        for consumer in (first_here, first_there):
            assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_shared_subscriptions_of_a_topic(self, harness: Harness) -> None:
        """Of each subscription one consumer receives; others have their own (Artemis' exclusive queues)."""
        harness.require("shared")
        topic = harness.topic()
        configure(harness, topic, exclusive=True)
        shared = Subscription(topic, topic.name, shared=True, volatile=True)
        first, second = _consumers(harness, shared, 2)
        alone = harness.connection.consumer(topic)
        harness.send(topic, *"ab")
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 2)) == ["a", "b"]
        assert bodies(harness.gather(alone, 2)) == ["a", "b"]

    def test_selector_of_the_first_keeps_others_waiting(self, harness: Harness) -> None:
        """Messages that it excludes stay: no other consumer receives (Artemis' exclusive queues; JMS 3.1, 3.8)."""
        harness.require("selectors", "priority")
        queue = _exclusive(harness)
        first = harness.connection.consumer(queue, selector="JMSPriority = 9", window=0)
        [second] = _consumers(harness, queue, 1)
        harness.send(queue, "low", priority=1)
        harness.send(queue, "high", priority=9)
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 1)) == ["high"]
        first.close()
        assert bodies(harness.gather(second, 2)) == ["high", "low"]

    def test_who_stands_by_passes_over_nothing(self, harness: Harness) -> None:
        """A message that it selects is received when it becomes active (Artemis' exclusive queues)."""
        harness.require("selectors", "priority")
        queue = _exclusive(harness)
        first, second = (harness.connection.consumer(queue, selector="JMSPriority > 0", window=0) for _ in range(2))
        harness.send(queue, *"ab")
        assert bodies(second.receive(2, 0)) == []
        first.close()
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_browsers_are_not_kept_out(self, harness: Harness) -> None:
        """They take nothing, and count as no consumers (JMS 3.1, section 4.1.6)."""
        harness.require("browse")
        queue = _exclusive(harness)
        harness.send(queue, *"ab")
        shown = [d.message.body for chunk in harness.connection.browse(queue) for d in chunk]
        [first] = _consumers(harness, queue, 1)
        assert shown == bodies(harness.gather(first, 2)) == ["a", "b"]


def _exclusive(harness: Harness) -> Queue:
    queue = harness.queue()
    configure(harness, queue, exclusive=True)
    return queue


def _consumers(harness: Harness, source: Destination | Subscription, count: int) -> Sequence[Consumer]:
    """So many consumers, one after the other."""
    return [harness.connection.consumer(source, window=0, order=Order.ANY) for _ in range(count)]
