"""Message groups: what belongs together goes to one consumer, as long as it is there."""

from __future__ import annotations

from jmsjca.spi import Order
from jmsjca.testing.contract.grouping import Grouping, grouped, send_groups, two_consumers
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestGroups", "TestWholeGroups"]


class TestWholeGroups(Contract):
    """``JMSXGroupID`` between consumers that take messages ahead (capability groups)."""

    def test_all_of_a_group_go_to_one_consumer(self, harness: Harness) -> None:
        """And that in the order of sending (JMS 3.1, section 3.5.9; Artemis' message groups)."""
        harness.require("groups")
        queue = harness.queue()
        consumers = [harness.connection.consumer(queue, order=Order.ANY) for _ in range(2)]
        words = [f"{group}{number}" for number in range(5) for group in "abcdef"]
        send_groups(harness, queue, " ".join(words))
        shares: list[list[str]] = [[], []]
        while sum(map(len, shares)) < len(words):
            for share, consumer in zip(shares, consumers, strict=True):
                share.extend(bodies(consumer.receive(3, 0)))
        for group in "abcdef":
            assert [word for word in words if word[0] == group] in [[w for w in s if w[0] == group] for s in shares]
        assert all(shares)

    def test_groups_may_be_more_than_a_broker_keeps_apart(self, harness: Harness) -> None:
        """None is lost or doubled (Artemis' message groups)."""
        harness.require("groups")
        queue = harness.queue()
        sent = [f"{n}." for n in range(3000)]
        harness.send_messages(queue, *(grouped(body, body) for body in sent))
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, len(sent))) == sent


class TestGroups(Grouping):
    """``JMSXGroupID`` (JMS 3.1, section 3.5.9; what is done with it is Artemis' way; capability groups)."""

    def test_group_stays_with_its_consumer(self, harness: Harness) -> None:
        """Who got the first message of a group gets the others (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 b1")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (first, second)] == [["a1"], ["b1"]]
        send_groups(harness, queue, "b2 a2 a3 b3")
        assert bodies(harness.gather(second, 2)) == ["b2", "b3"]
        assert bodies(harness.gather(first, 2)) == ["a2", "a3"]

    def test_others_do_not_get_it(self, harness: Harness) -> None:
        """Not even when nothing else is there for them (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1")
        harness.gather(first, 1)
        send_groups(harness, queue, "a2")
        assert harness.nothing_comes(second, queue)
        assert bodies(harness.gather(first, 1)) == ["a2"]

    def test_settling_does_not_free_the_group(self, harness: Harness) -> None:
        """It stays while the consumer is there, also if nothing of it is left meanwhile (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1")
        harness.settle(harness.gather(first, 1))
        send_groups(harness, queue, "a2")
        assert harness.nothing_comes(second, queue)

    def test_messages_without_group_go_to_anybody(self, harness: Harness) -> None:
        """Groups bind nobody else (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 - -")
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 1)) == ["-"]
        assert bodies(harness.gather(first, 1)) == ["-"]

    def test_order_within_a_chunk_is_that_of_sending(self, harness: Harness) -> None:
        """Grouped and not, all in one line for a consumer alone (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        send_groups(harness, queue, "a1 - b1 a2 -")
        consumer = harness.connection.consumer(queue, window=0)
        assert bodies(harness.gather(consumer, 5)) == ["a1", "-", "b1", "a2", "-"]

    def test_receive_without_waiting_finds_them(self, harness: Harness) -> None:
        """What waits is there at once, also for a consumer that comes later (JMS 3.1, section 8.5)."""
        queue = harness.queue()
        send_groups(harness, queue, "a1 a2")
        assert bodies(harness.connection.consumer(queue, window=0).receive(2, 0)) == ["a1", "a2"]

    def test_rolled_back_group_comes_to_the_same_consumer(self, harness: Harness) -> None:
        """A failure does not break a group up (Artemis' message groups; order: JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2 a3")
        harness.holding(harness.gather(first, 2)).rollback()
        assert harness.nothing_comes(second, queue)
        assert bodies(harness.gather(first, 3)) == ["a1", "a2", "a3"]

    def test_given_back_group_stays(self, harness: Harness) -> None:
        """Nor does giving back what nobody looked at (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2")
        first.give_back(harness.gather(first, 2))
        assert harness.nothing_comes(second, queue)
        assert bodies(harness.gather(first, 2)) == ["a1", "a2"]

    def test_group_of_a_closed_consumer_goes_to_another(self, harness: Harness) -> None:
        """In order, whether the messages were received by the first or not (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2 a3")
        harness.gather(first, 1)
        assert harness.nothing_comes(second, queue)
        first.close()
        assert bodies(harness.gather(second, 3)) == ["a1", "a2", "a3"]

    def test_group_is_free_although_its_consumer_held_nothing(self, harness: Harness) -> None:
        """Others had passed over what waits, and look at it again (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2")
        harness.settle(harness.gather(first, 1))
        assert bodies(second.receive(1, 0)) == []
        first.close()
        assert bodies(harness.gather(second, 1)) == ["a2"]

    def test_group_of_a_closed_connection_goes_to_another(self, harness: Harness) -> None:
        """What its open units had taken comes first again, counted (JMS 3.1, section 6.1.8)."""
        harness.require("delivery_count")
        queue = harness.queue()
        dying = harness.connect()
        first = dying.consumer(queue, window=0)
        second = harness.connection.consumer(queue, window=0)
        send_groups(harness, queue, "a1 a2")
        harness.holding(harness.gather(first, 1), dying)
        dying.close()
        assert [(d.message.body, d.count) for d in harness.gather(second, 2)] == [("a1", 2), ("a2", 1)]

    def test_two_new_consumers_share_the_freed_groups(self, harness: Harness) -> None:
        """Each group has one consumer at any time (Artemis' message groups)."""
        queue = harness.queue()
        old = harness.connection.consumer(queue, window=0)
        send_groups(harness, queue, "a1 b1 a2 b2")
        harness.gather(old, 2)
        old.close()
        first, second = two_consumers(harness, queue)
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 1)) == ["b1"]
        assert bodies(harness.gather(first, 1)) == ["a2"]
        assert bodies(harness.gather(second, 1)) == ["b2"]

    def test_groups_belong_to_their_queue(self, harness: Harness) -> None:
        """The same name elsewhere is another group (Artemis' message groups)."""
        queues = [harness.queue(), harness.queue()]
        for queue in queues:
            send_groups(harness, queue, "a1")
        first, second = (harness.connection.consumer(queue, window=0) for queue in queues)
        harness.gather(first, 1)
        assert bodies(harness.gather(second, 1)) == ["a1"]
