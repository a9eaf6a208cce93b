"""Cases for sending: priority, expiry, delay, duplicates, and many destinations in one unit."""

from __future__ import annotations

from jmsjca.messages import TextMessage
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = ["TestDuplicates", "TestManyDestinations", "TestSending"]

_DUPLICATE_ID = "_AMQ_DUPL_ID"


class TestSending(Contract):
    """Priority, expiry and delivery delay."""

    def test_higher_priority_comes_first(self, harness: Harness) -> None:
        """Expedited messages before normal ones, in order within one priority (JMS 3.1, section 3.4.10)."""
        harness.require("priority")
        queue = harness.queue()
        for priority, texts in ((4, "ab"), (9, "cd"), (0, "e"), (5, "f")):
            harness.send(queue, *texts, priority=priority)
        assert bodies(harness.gather(harness.connection.consumer(queue), 6)) == ["c", "d", "f", "a", "b", "e"]

    def test_rollback_keeps_the_place_of_a_priority(self, harness: Harness) -> None:
        """A redelivered message keeps its priority."""
        harness.require("priority")
        queue = harness.queue()
        harness.send(queue, "low", priority=1)
        harness.send(queue, "high", priority=8)
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback()
        assert bodies(harness.gather(consumer, 2)) == ["high", "low"]

    def test_expired_message_is_not_delivered(self, harness: Harness) -> None:
        """A client does not receive an expired message (JMS 3.1, section 3.4.9)."""
        queue = harness.queue()
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young", expiration=moment(3600))
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, 1)) == ["young"]
        assert harness.receives_nothing(consumer, queue)

    def test_expired_message_is_not_browsed(self, harness: Harness) -> None:
        """A browser does not show expired messages (JMS 3.1, section 3.4.9)."""
        harness.require("browse")
        queue = harness.queue()
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young")
        shown = [d.message.body for chunk in harness.connection.browse(queue) for d in chunk]
        assert shown == ["young"]

    def test_delayed_message_is_not_delivered_before(self, harness: Harness) -> None:
        """A message waits for its delivery time, others do not wait for it (JMS 3.1, section 3.4.13)."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "tomorrow", delivery_time=moment(24 * 3600))
        harness.send(queue, "today")
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, 1)) == ["today"]
        assert harness.receives_nothing(consumer, queue)

    def test_delayed_message_wakes_a_waiting_receive_when_due(self, harness: Harness) -> None:
        """Nothing but time has to pass."""
        harness.require("delivery_delay")
        queue = harness.queue()
        consumer = harness.connection.consumer(queue)
        harness.send(queue, "soon", delivery_time=moment(0.05))
        assert bodies(harness.gather(consumer, 1)) == ["soon"]

    def test_delay_applies_to_every_subscriber(self, harness: Harness) -> None:
        """A topic's message is held for all."""
        harness.require("delivery_delay")
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        harness.send(topic, "tomorrow", delivery_time=moment(24 * 3600))
        assert all(harness.receives_nothing(consumer, topic) for consumer in consumers)


class TestDuplicates(Contract):
    """A message sent again with the same ``_AMQ_DUPL_ID`` is dropped (duplicate_detection; the name is Artemis')."""

    def test_message_sent_again_counts_once(self, harness: Harness) -> None:
        """The second unit commits, its message is dropped."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, _named("first", "1"))
        harness.send_messages(queue, _named("again", "1"), _named("other", "2"))
        harness.expect(queue, "first", "other")

    def test_acknowledged_message_is_remembered(self, harness: Harness) -> None:
        """It does not matter that the first one was consumed meanwhile."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, _named("first", "1"))
        harness.expect(queue, "first")
        harness.send_messages(queue, _named("again", "1"))
        harness.expect(queue)

    def test_id_of_a_rolled_back_send_is_free(self, harness: Harness) -> None:
        """A message that was not sent causes no duplicate."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        unit = harness.unit()
        unit.send(_named("never", "1"), queue)
        unit.rollback()
        harness.send_messages(queue, _named("first", "1"))
        harness.expect(queue, "first")

    def test_ids_belong_to_their_destination(self, harness: Harness) -> None:
        """The same id elsewhere is another message."""
        harness.require("duplicate_detection")
        queues = [harness.queue(), harness.queue()]
        for queue in queues:
            harness.send_messages(queue, _named("a", "1"))
        for queue in queues:
            harness.expect(queue, "a")

    def test_messages_without_id_are_never_duplicates(self, harness: Harness) -> None:
        """Equal bodies are no reason to drop one."""
        queue = harness.queue()
        harness.send(queue, "same", "same")
        harness.expect(queue, "same", "same")


def _named(body: str, duplicate_id: str) -> TextMessage:
    return TextMessage(body, properties={_DUPLICATE_ID: duplicate_id})


class TestManyDestinations(Contract):
    """One commit sends to all of them (JMS 3.1, section 6.2.7)."""

    def test_sends_reach_many_destinations(self, harness: Harness) -> None:
        """One commit sends to queues and to a topic."""
        queues, topic = [harness.queue(), harness.queue()], harness.topic()
        subscriber = harness.connect().consumer(topic)
        unit = harness.unit()
        for to in (*queues, topic, queues[0]):
            harness.record(unit, to, "a")
        unit.commit()
        harness.expect(queues[0], "a", "a")
        harness.expect(queues[1], "a")
        assert bodies(harness.gather(subscriber, 1)) == ["a"]

    def test_sends_reach_more_destinations_than_a_connection_has_links(self, harness: Harness) -> None:
        """Whatever a provider keeps for each destination, the unit is not bounded by it."""
        queues, topic = [harness.queue() for _ in range(70)], harness.topic()
        connection = harness.connect()
        subscriber = connection.consumer(topic)
        unit = harness.unit()
        for to in (*queues, topic):
            harness.record(unit, to, str(to))
        unit.commit()
        assert bodies(harness.gather(subscriber, 1)) == [str(topic)]
        for queue in queues:
            consumer = connection.consumer(queue)
            assert bodies(harness.gather(consumer, 1)) == [str(queue)]
            consumer.close()
