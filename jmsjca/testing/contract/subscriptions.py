"""Topics and their subscriptions, durable and not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import InvalidDestinationError
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestDurableSubscriptions", "TestTopics"]


class TestTopics(Contract):
    """Publish and subscribe without durability (JMS 3.1, section 4.2)."""

    def test_every_subscriber_gets_its_own_copy(self, harness: Harness) -> None:
        """Fan-out: settling one copy leaves the others."""
        topic = harness.topic()
        first, second = harness.connection.consumer(topic), harness.connect().consumer(topic)
        harness.send(topic, *"ab")
        deliveries = harness.gather(first, 2)
        assert bodies(deliveries) == ["a", "b"]
        harness.settle(deliveries)
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_subscriber_gets_only_what_is_sent_later(self, harness: Harness) -> None:
        """A non-durable subscription begins with its consumer (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.send(topic, "before")
        consumer = harness.connection.consumer(topic)
        harness.send(topic, "after")
        assert bodies(harness.gather(consumer, 1)) == ["after"]
        assert harness.nothing_comes(consumer, topic)

    def test_subscription_ends_with_its_consumer(self, harness: Harness) -> None:
        """A non-durable subscription keeps nothing while nobody consumes (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.connection.consumer(topic).close()
        harness.send(topic, "meanwhile")
        assert harness.nothing_comes(harness.connection.consumer(topic), topic)

    def test_publishing_belongs_to_the_unit(self, harness: Harness) -> None:
        """A topic's message appears to all subscribers at the commit."""
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        unit = harness.unit()
        harness.note(unit, topic, "a")
        assert all(harness.nothing_comes(consumer, topic) for consumer in consumers)
        unit.commit()
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_rollback_of_one_subscriber_disturbs_no_other(self, harness: Harness) -> None:
        """Each copy has its own fate and its own count."""
        harness.require("delivery_count")
        topic = harness.topic()
        failing, other = harness.connection.consumer(topic), harness.connection.consumer(topic)
        harness.send(topic, "a")
        harness.holding(harness.gather(failing, 1)).rollback()
        assert [d.count for d in harness.gather(other, 1)] == [1]
        assert [d.count for d in harness.gather(failing, 1)] == [2]

    def test_unit_outlives_the_subscriber(self, harness: Harness) -> None:
        """A unit can still commit what it took from a subscription that is gone by now."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic)
        harness.send(topic, "a")
        unit = harness.holding(harness.gather(consumer, 1))
        consumer.close()
        unit.commit()

    def test_queue_and_topic_of_one_name_are_two(self, harness: Harness) -> None:
        """The kind is part of a destination's identity."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic)
        harness.send(Queue(topic.name), "to the queue")
        assert harness.nothing_comes(consumer, topic)
        harness.expect(Queue(topic.name), "to the queue")


class TestDurableSubscriptions(Contract):
    """Durable subscriptions (JMS 3.1, section 8.3.3; capability durable)."""

    @pytest.fixture(autouse=True)
    def _needs_durable(self, harness: Harness) -> None:
        harness.require("durable")

    def test_messages_are_kept_while_nobody_consumes(self, harness: Harness) -> None:
        """A durable subscription exists from its first consumer until it is removed."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription).close()
        connection.close()
        harness.send(subscription.topic, *"ab")
        consumer = harness.connect(subscription.client_id).consumer(subscription)
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_acknowledged_messages_do_not_come_again(self, harness: Harness) -> None:
        """The subscription goes on where its last consumer stopped."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, *"ab")
        first, _ = harness.gather(consumer, 2)
        harness.settle([first], connection)
        connection.close()
        harness.expect(subscription, "b")

    def test_rolled_back_messages_are_kept(self, harness: Harness) -> None:
        """What a rollback gave back waits for the next consumer of the subscription."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, *"ab")
        harness.holding(harness.gather(consumer, 2), connection).rollback()
        connection.close()
        harness.expect(subscription, "a", "b")

    def test_removed_subscription_forgets(self, harness: Harness) -> None:
        """After `remove` the same name begins anew (JMS 3.1, section 8.3.3: unsubscribe)."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription).close()
        harness.send(subscription.topic, "old")
        connection.remove(subscription)
        harness.send(subscription.topic, "unheard")
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, "new")
        assert bodies(harness.gather(consumer, 1)) == ["new"]

    def test_removing_what_is_not_there_is_refused(self, harness: Harness) -> None:
        """Removing an unknown subscription is an error (JMS 3.1, section 8.3.3: InvalidDestinationException)."""
        subscription = harness.subscription()
        with pytest.raises(InvalidDestinationError):
            harness.connect(subscription.client_id).remove(subscription)

    def test_name_is_unique_within_its_client_id(self, harness: Harness) -> None:
        """Two clients with subscriptions of one name get a copy each (JMS 3.1, section 8.3.3)."""
        topic = harness.topic()
        subscriptions = [replace(harness.subscription(topic), name="s") for _ in range(2)]
        consumers = [harness.connect(s.client_id).consumer(s) for s in subscriptions]
        harness.send(topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]
