"""Cases for message groups and for exclusive consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.messages import TextMessage
from jmsjca.spi import Consumer, Order
from jmsjca.testing.contract.destinations import Configured, configure
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = [
    "Grouping",
    "TestExclusiveConsumers",
    "TestGroupInteractions",
    "TestGroups",
    "TestWholeGroups",
    "grouped",
    "send_groups",
    "two_consumers",
]


class Grouping(Contract):
    """The base of contract classes about message groups."""

    needs = ("groups", "groups_apart", "exact_credit")


def two_consumers(harness: Harness, source: Destination | Subscription) -> Sequence[Consumer]:
    """Two consumers, the first one first."""
    return [harness.connection.consumer(source, window=0, order=Order.ANY) for _ in range(2)]


def send_groups(harness: Harness, to: Destination, words: str, **headers: Any) -> None:
    """Send messages with their first character as group; a hyphen stands for no group."""
    harness.send_messages(to, *(grouped(word[0], word) for word in words.split()), **headers)


def grouped(group: str, body: str) -> TextMessage:
    """Return a message of a group (hyphen: no group). Its property ``even`` is True if the last digit is even."""
    if group == "-":
        return TextMessage(body)
    return TextMessage(body, properties={"JMSXGroupID": group, "even": body[-1] in "02468"})


class TestWholeGroups(Contract):
    """``JMSXGroupID`` between consumers that prefetch messages (capability groups)."""

    needs = ("groups",)

    def test_all_of_a_group_go_to_one_consumer(self, harness: Harness) -> None:
        """In the order of sending (JMS 3.1, section 3.5.9; Artemis' message groups)."""
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
        """No message is lost or duplicated (Artemis' message groups)."""
        queue = harness.queue()
        sent = [f"{n}." for n in range(3000)]
        harness.send_messages(queue, *(grouped(body, body) for body in sent))
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, len(sent))) == sent


class TestGroups(Grouping):
    """``JMSXGroupID`` (JMS 3.1, section 3.5.9), with the assignment rules of Artemis (capability groups)."""

    def test_group_stays_with_its_consumer(self, harness: Harness) -> None:
        """The consumer of a group's first message receives the others (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 b1")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (first, second)] == [["a1"], ["b1"]]
        send_groups(harness, queue, "b2 a2 a3 b3")
        assert bodies(harness.gather(second, 2)) == ["b2", "b3"]
        assert bodies(harness.gather(first, 2)) == ["a2", "a3"]

    def test_others_do_not_get_it(self, harness: Harness) -> None:
        """Other consumers do not get the group, even if there are no other messages (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1")
        harness.gather(first, 1)
        send_groups(harness, queue, "a2")
        assert harness.receives_nothing(second, queue)
        assert bodies(harness.gather(first, 1)) == ["a2"]

    def test_settling_does_not_free_the_group(self, harness: Harness) -> None:
        """The group stays while its consumer is open, also without messages (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1")
        harness.settle(harness.gather(first, 1))
        send_groups(harness, queue, "a2")
        assert harness.receives_nothing(second, queue)

    def test_messages_without_group_go_to_anybody(self, harness: Harness) -> None:
        """Messages without group are not bound to a consumer (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 - -")
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 1)) == ["-"]
        assert bodies(harness.gather(first, 1)) == ["-"]

    def test_order_within_a_chunk_is_that_of_sending(self, harness: Harness) -> None:
        """Messages with and without a group, for a single consumer (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        send_groups(harness, queue, "a1 - b1 a2 -")
        consumer = harness.connection.consumer(queue, window=0)
        assert bodies(harness.gather(consumer, 5)) == ["a1", "-", "b1", "a2", "-"]

    def test_receive_without_waiting_finds_them(self, harness: Harness) -> None:
        """Waiting messages are received at once, also by a consumer that is created later (JMS 3.1, section 8.5)."""
        queue = harness.queue()
        send_groups(harness, queue, "a1 a2")
        assert bodies(harness.connection.consumer(queue, window=0).receive(2, 0)) == ["a1", "a2"]

    def test_rolled_back_group_comes_to_the_same_consumer(self, harness: Harness) -> None:
        """A failure does not break a group up (Artemis' message groups; order: JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2 a3")
        harness.holding(harness.gather(first, 2)).rollback()
        assert harness.receives_nothing(second, queue)
        assert bodies(harness.gather(first, 3)) == ["a1", "a2", "a3"]

    def test_given_back_group_stays(self, harness: Harness) -> None:
        """Releasing prefetched messages does not end the assignment (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2")
        first.release(harness.gather(first, 2))
        assert harness.receives_nothing(second, queue)
        assert bodies(harness.gather(first, 2)) == ["a1", "a2"]

    def test_group_of_a_closed_consumer_goes_to_another(self, harness: Harness) -> None:
        """In order, whether the messages were received by the first or not (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2 a3")
        harness.gather(first, 1)
        assert harness.receives_nothing(second, queue)
        first.close()
        assert bodies(harness.gather(second, 3)) == ["a1", "a2", "a3"]

    def test_group_is_free_although_its_consumer_held_nothing(self, harness: Harness) -> None:
        """Other consumers had skipped the waiting messages, and check them again (Artemis' message groups)."""
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 a2")
        harness.settle(harness.gather(first, 1))
        assert bodies(second.receive(1, 0)) == []
        first.close()
        assert bodies(harness.gather(second, 1)) == ["a2"]

    def test_group_of_a_closed_connection_goes_to_another(self, harness: Harness) -> None:
        """Deliveries of its open units are redelivered first, counted (JMS 3.1, section 6.1.8)."""
        harness.require("delivery_count")
        queue = harness.queue()
        dying = harness.connect()
        first = dying.consumer(queue, window=0)
        second = harness.connection.consumer(queue, window=0)
        send_groups(harness, queue, "a1 a2")
        harness.handling(first, 1, dying)
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


class TestGroupInteractions(Grouping):
    """``JMSXGroupID`` (JMS 3.1, section 3.5.9), with the assignment rules of Artemis (capability groups)."""

    def test_higher_priority_goes_first_within_a_group(self, harness: Harness) -> None:
        """Groups determine the consumer, priorities the order (JMS 3.1, section 3.4.10)."""
        harness.require("priority")
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 b1")
        harness.settle([*harness.gather(first, 1), *harness.gather(second, 1)])
        send_groups(harness, queue, "a2 b2", priority=1)
        send_groups(harness, queue, "b3 a3", priority=8)
        assert bodies(harness.gather(first, 2)) == ["a3", "a2"]
        assert bodies(harness.gather(second, 2)) == ["b3", "b2"]

    def test_selector_and_group_hold_together(self, harness: Harness) -> None:
        """Messages of another consumer's group, and excluded messages, stay (JMS 3.1, section 3.8)."""
        harness.require("selectors")
        queue = harness.queue()
        first = harness.connection.consumer(queue, selector="even = TRUE", window=0, order=Order.ANY)
        second = harness.connection.consumer(queue, window=0, order=Order.ANY)
        send_groups(harness, queue, "a1 a2 b1")
        assert bodies(harness.gather(first, 1)) == ["a2"]  # and with it the group
        assert bodies(harness.gather(second, 1)) == ["b1"]
        send_groups(harness, queue, "b2 a4")
        assert bodies(harness.gather(first, 1)) == ["a4"]
        assert bodies(harness.gather(second, 1)) == ["b2"]
        first.close()
        assert bodies(harness.gather(second, 3)) == ["a1", "a2", "a4"]

    def test_one_unit_may_hold_many_groups(self, harness: Harness) -> None:
        """More groups than a broker may keep apart: none is lost or doubled (Artemis' message groups)."""
        queue = harness.queue()
        sent = [f"{n}." for n in range(3000)]
        harness.send_messages(queue, *(grouped(body, body) for body in sent))
        first, second = two_consumers(harness, queue)
        came = harness.gather(first, 1000)
        harness.gather(second, 500)
        second.close()
        came += harness.gather(first, 2000)
        assert bodies(came[:1000]) == sent[:1000]
        assert sorted(bodies(came)) == sorted(sent)

    def test_group_properties_come_as_they_were_sent(self, harness: Harness) -> None:
        """The client sets both, the broker neither (JMS 3.1, section 3.5.9)."""
        queue = harness.queue()
        harness.send_messages(queue, TextMessage("a", properties={"JMSXGroupID": "a", "JMSXGroupSeq": 7}))
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert dict(delivery.message.properties) == {"JMSXGroupID": "a", "JMSXGroupSeq": 7}

    def test_groups_of_a_shared_subscription(self, harness: Harness) -> None:
        """The consumers compete as for a queue (JMS 3.1, section 8.3.2; Artemis' message groups)."""
        harness.require("shared")
        topic = harness.topic()
        first, second = two_consumers(harness, Subscription(topic, topic.name, shared=True, volatile=True))
        send_groups(harness, topic, "a1 b1 a2 b2")
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 2)) == ["b1", "b2"]
        assert bodies(harness.gather(first, 1)) == ["a2"]

    def test_browser_shows_all_groups(self, harness: Harness) -> None:
        """Browsing consumes nothing, so groups neither hide messages nor get assigned (JMS 3.1, section 4.1.6)."""
        harness.require("browse")
        queue = harness.queue()
        send_groups(harness, queue, "a1 b1 a2")
        first, second = two_consumers(harness, queue)
        harness.gather(first, 1)
        shown = [d.message.body for chunk in harness.connection.browse(queue) for d in chunk]
        assert shown[-2:] == ["b1", "a2"]
        assert bodies(harness.gather(second, 1)) == ["b1"]


class TestExclusiveConsumers(Configured):
    """The setting ``exclusive`` (beyond JMS: Artemis' exclusive queues)."""

    def test_only_the_first_receives(self, harness: Harness) -> None:
        """Other consumers get nothing, even on another connection or if they ask first (Artemis' exclusive queues)."""
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
        """A failure does not change the active consumer (Artemis' exclusive queues)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"ab")
        harness.holding(harness.gather(first, 1)).rollback()
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 2)) == ["a", "b"]

    def test_unit_of_the_closed_first_keeps_what_it_took(self, harness: Harness) -> None:
        """The next consumer continues with later messages until the unit ends (JMS 3.1, sections 8.8 and 6.2.7)."""
        queue = _exclusive(harness)
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        unit = harness.holding(harness.gather(first, 1))
        first.close()
        assert bodies(harness.gather(second, 1)) == ["b"]
        unit.rollback()
        assert bodies(harness.gather(second, 2)) == ["a", "c"]

    def test_closed_connection_hands_over(self, harness: Harness) -> None:
        """The deliveries of its open units are redelivered and counted (JMS 3.1, section 6.1.8)."""
        harness.require("delivery_count")
        queue = _exclusive(harness)
        dying = harness.connect()
        first = dying.consumer(queue, window=0)
        [second] = _consumers(harness, queue, 1)
        harness.send(queue, *"ab")
        harness.handling(first, 1, dying)
        dying.close()
        assert [(d.message.body, d.count) for d in harness.gather(second, 2)] == [("a", 2), ("b", 1)]

    def test_setting_it_keeps_the_oldest_consumer(self, harness: Harness) -> None:
        """The other consumers may still settle the messages that they hold (Artemis' exclusive queues)."""
        queue = harness.queue()
        first, second = _consumers(harness, queue, 2)
        harness.send(queue, *"abc")
        unit = harness.holding(harness.gather(second, 1))
        configure(harness, queue, exclusive=True)
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 2)) == ["b", "c"]
        unit.commit()

    def test_taking_it_back_lets_all_receive(self, harness: Harness) -> None:
        """The waiting consumers are woken (Artemis' exclusive queues)."""
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
        """One consumer of each subscription receives; subscriptions are independent (Artemis' exclusive queues)."""
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
        """A waiting consumer skips no message: it receives matching ones when it becomes active (Artemis)."""
        harness.require("selectors", "priority")
        queue = _exclusive(harness)
        first, second = (harness.connection.consumer(queue, selector="JMSPriority > 0", window=0) for _ in range(2))
        harness.send(queue, *"ab")
        assert bodies(second.receive(2, 0)) == []
        first.close()
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_browsers_are_not_kept_out(self, harness: Harness) -> None:
        """Browsers consume nothing, and do not count as consumers (JMS 3.1, section 4.1.6)."""
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
