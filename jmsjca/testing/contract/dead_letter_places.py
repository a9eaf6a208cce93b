"""Whose messages become dead letters, and where those may go."""

from __future__ import annotations

import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.testing.contract.configuring import Configured, admin_of, configure, fail
from jmsjca.testing.contract.harness import Harness, bodies

__all__ = ["TestDeadLetterPlaces"]


class TestDeadLetterPlaces(Configured):
    """Queues, topics and subscriptions as sources and targets of dead letters (beyond JMS: Artemis' settings)."""

    def test_topic_gives_every_subscriber_a_copy(self, harness: Harness) -> None:
        """A dead-letter destination may be a topic (Artemis: a multicast dead-letter-address)."""
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        consumers = [harness.connection.consumer(dead) for _ in range(2)]
        fail(harness, queue, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_topic_without_subscribers_keeps_nothing(self, harness: Harness) -> None:
        """As with all that is sent there; the message has left its queue all the same (JMS 3.1, section 4.2.2)."""
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        fail(harness, queue, "a")
        assert harness.nothing_comes(harness.connection.consumer(dead), dead)
        harness.expect(queue)

    def test_no_local_does_not_hide_dead_letters(self, harness: Harness) -> None:
        """It is the broker that sends them, no connection (JMS 3.1, section 8.3.1)."""
        harness.require("no_local")
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        consumer = harness.connection.consumer(dead, no_local=True)
        fail(harness, queue, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_subscribers_of_dead_letters_can_select(self, harness: Harness) -> None:
        """By what the broker notes, too (JMS 3.1, section 8.3.1)."""
        harness.require("selectors")
        queues, dead = [harness.queue(), harness.queue()], harness.topic()
        consumer = harness.connection.consumer(dead, selector=f"_AMQ_ORIG_ADDRESS = '{queues[1].name}'")
        for queue, body in zip(queues, "ab", strict=True):
            configure(harness, queue, max_deliveries=1, dead_letter=dead)
            fail(harness, queue, body)
        assert bodies(harness.gather(consumer, 1)) == ["b"]

    def test_settings_of_a_topic_hold_for_its_subscriptions(self, harness: Harness) -> None:
        """Each copy has its own fate: one subscriber fails, the other does not (JMS 3.1, section 4.2.2)."""
        topic, dead = harness.topic(), harness.queue()
        configure(harness, topic, max_deliveries=1, dead_letter=dead)
        failing, other = (harness.connection.consumer(topic) for _ in range(2))
        harness.send(topic, "a")
        harness.holding(harness.gather(failing, 1)).rollback()
        harness.settle(harness.gather(other, 1))
        harness.expect(dead, "a")

    def test_failed_message_of_a_durable_subscription(self, harness: Harness) -> None:
        """It leaves the subscription, and tells the topic that it came from (Artemis' dead-letter-address)."""
        harness.require("durable")
        subscription, dead = harness.subscription(), harness.queue()
        configure(harness, subscription.topic, max_deliveries=1, dead_letter=dead)
        connection = harness.connect(subscription.client_id)
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, "a")
        harness.holding(harness.gather(consumer, 1), connection).rollback()
        assert admin_of(harness).depth(subscription).total == 0
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        assert delivery.message.properties["_AMQ_ORIG_ADDRESS"] == subscription.topic.name

    def test_dead_letter_destination_gives_up_as_its_own_settings_say(self, harness: Harness) -> None:
        """It is a destination like others: from there it may go on, and tells the last place."""
        queue, dead, last = harness.queue(), harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        configure(harness, dead, max_deliveries=1, dead_letter=last)
        fail(harness, queue, "a")
        harness.holding(harness.gather(harness.connection.consumer(dead), 1)).rollback()
        [delivery] = harness.gather(harness.connection.consumer(last), 1)
        assert delivery.message.properties["_AMQ_ORIG_ADDRESS"] == dead.name

    def test_destination_that_is_its_own_never_gives_up(self, harness: Harness) -> None:
        """A message sent to itself would only lose its count (design rule: never in circles)."""
        queue = harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=queue)
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, "_AMQ_ORIG_ADDRESS" in delivery.message.properties) == (expected, False)
            harness.holding([delivery]).rollback()

    def test_failed_earlier_counts_when_settings_come(self, harness: Harness) -> None:
        """Settings hold from now on, for what is there already too; what is behind it comes at once."""
        queue, dead = harness.queue(), harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        for _ in range(3):
            harness.holding(harness.gather(consumer, 1)).rollback()
        configure(harness, queue, max_deliveries=2, dead_letter=dead)
        assert bodies(consumer.receive(1, 0)) == ["b"]
        harness.expect(dead, "a")

    def test_temporary_dead_letter_destination_is_refused(self, harness: Harness) -> None:
        """It would be gone when it is needed (design rule: wrong settings are refused)."""
        harness.require("temporary")
        with pytest.raises(ConfigurationError):
            configure(harness, harness.queue(), max_deliveries=1, dead_letter=harness.connection.temporary("queue"))
