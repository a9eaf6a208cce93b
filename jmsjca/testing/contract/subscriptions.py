"""Cases for topics and their subscriptions, durable and not, and for ``no_local``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Connection, Consumer
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = ["TestDurableRules", "TestDurableSubscriptions", "TestNoLocal", "TestTopics"]


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
        assert harness.receives_nothing(consumer, topic)

    def test_subscription_ends_with_its_consumer(self, harness: Harness) -> None:
        """A non-durable subscription keeps no messages without a consumer (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.connection.consumer(topic).close()
        harness.send(topic, "meanwhile")
        assert harness.receives_nothing(harness.connection.consumer(topic), topic)

    def test_publishing_belongs_to_the_unit(self, harness: Harness) -> None:
        """A topic's message appears to all subscribers at the commit."""
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        unit = harness.unit()
        harness.record(unit, topic, "a")
        assert all(harness.receives_nothing(consumer, topic) for consumer in consumers)
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
        assert harness.receives_nothing(consumer, topic)
        harness.expect(Queue(topic.name), "to the queue")


class TestDurableSubscriptions(Contract):
    """Durable subscriptions (JMS 3.1, section 8.3.3; capability durable)."""

    needs = ("durable",)

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
        """Rolled-back messages wait for the next consumer of the subscription."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, *"ab")
        harness.holding(harness.gather(consumer, 2), connection).rollback()
        connection.close()
        harness.expect(subscription, "a", "b")

    def test_removed_subscription_forgets(self, harness: Harness) -> None:
        """After `remove` the same name stands for a new subscription (JMS 3.1, section 8.3.3: unsubscribe)."""
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


class TestDurableRules(Contract):
    """Unshared durable subscriptions (JMS 3.1, section 8.3.3; capability subscription_lock)."""

    needs = ("durable", "subscription_lock")

    def test_second_consumer_is_refused(self, harness: Harness) -> None:
        """It has one active consumer at a time, and that one loses nothing by the attempt (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        first = _subscribed(harness, subscription, connection)
        with pytest.raises(IllegalStateError):
            connection.consumer(subscription)
        assert bodies(harness.gather(first, 2)) == ["a", "b"]

    def test_refused_consumer_holds_no_place(self, harness: Harness) -> None:
        """When the first one closes there is no other (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        first = _subscribed(harness, subscription, connection)
        with pytest.raises(IllegalStateError):
            connection.consumer(subscription)
        first.close()
        assert bodies(harness.gather(connection.consumer(subscription), 2)) == ["a", "b"]

    def test_next_consumer_goes_on(self, harness: Harness) -> None:
        """As soon as the first one is closed (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        first = _subscribed(harness, subscription, connection)
        harness.settle(harness.gather(first, 1), connection)
        first.close()
        assert bodies(harness.gather(connection.consumer(subscription), 1)) == ["b"]

    def test_next_consumer_need_not_wait_for_units(self, harness: Harness) -> None:
        """Even if one still holds what the first consumer received (JMS 3.1, section 8.3.3)."""
        harness.require("ends_at_close")
        subscription, connection = _subscription(harness)
        first = _subscribed(harness, subscription, connection)
        taken, _ = harness.gather(first, 2)
        unit = harness.holding([taken], connection)
        first.close()
        second = connection.consumer(subscription)
        assert bodies(harness.gather(second, 1)) == ["b"]
        unit.rollback()
        assert bodies(harness.gather(second, 1)) == ["a"]

    def test_another_topic_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """That would be a second consumer (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        first = _subscribed(harness, subscription, connection)
        with pytest.raises(IllegalStateError):
            connection.consumer(replace(subscription, topic=harness.topic()))
        assert bodies(harness.gather(first, 2)) == ["a", "b"]

    def test_another_topic_makes_it_anew(self, harness: Harness) -> None:
        """As good as unsubscribing: what waited goes, and the old topic adds nothing (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        _subscribed(harness, subscription, connection).close()
        moved = replace(subscription, topic=harness.topic())
        consumer = connection.consumer(moved)
        harness.send(subscription.topic, "old topic")
        harness.send(moved.topic, "new topic")
        assert bodies(harness.gather(consumer, 1)) == ["new topic"]
        assert harness.receives_nothing(consumer, moved)

    def test_other_names_of_the_client_are_not_concerned(self, harness: Harness) -> None:
        """A client may have many, each with its own consumer and messages (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        other = replace(subscription, name="other")
        first, second = (connection.consumer(s) for s in (subscription, other))
        harness.send(subscription.topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (first, second)] == [["a"], ["a"]]
        second.close()
        connection.remove(other)
        harness.send(subscription.topic, "b")
        assert bodies(harness.gather(first, 1)) == ["b"]

    def test_volatile_one_of_the_same_name_is_another(self, harness: Harness) -> None:
        """A shared subscription that is not durable is completely separate (JMS 3.1, section 8.3.3)."""
        harness.require("shared")
        subscription, connection = _subscription(harness)
        durable = connection.consumer(subscription)
        volatile = connection.consumer(replace(subscription, shared=True, volatile=True))
        harness.send(subscription.topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (durable, volatile)] == [["a"], ["a"]]

    def test_one_in_use_is_not_removed(self, harness: Harness) -> None:
        """Unsubscribing under an active consumer is an error (JMS 3.1, section 8.3.3)."""
        subscription, connection = _subscription(harness)
        consumer = _subscribed(harness, subscription, connection)
        with pytest.raises(IllegalStateError):
            connection.remove(subscription)
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_removed_one_cannot_be_removed_again(self, harness: Harness) -> None:
        """There is nothing left (JMS 3.1, `Session.unsubscribe`: InvalidDestinationException)."""
        subscription, connection = _subscription(harness)
        connection.consumer(subscription).close()
        connection.remove(subscription)
        with pytest.raises(InvalidDestinationError):
            connection.remove(subscription)

    def test_removing_one_leaves_that_of_another_client(self, harness: Harness) -> None:
        """A name is a client's own (JMS 3.1, sections 6.1.2 and 8.3.3)."""
        mine, connection = _subscription(harness)
        other = replace(mine, client_id=harness.subscription().client_id)
        connection.consumer(mine).close()
        others_connection = harness.connect(other.client_id)
        others_connection.consumer(other)
        harness.send(mine.topic, "a")
        connection.remove(mine)
        others_connection.close()
        harness.expect(other, "a")


def _subscription(harness: Harness) -> tuple[Subscription, Connection]:
    """A durable subscription to be, and the connection of its client."""
    subscription = harness.subscription()
    return subscription, harness.connect(subscription.client_id)


def _subscribed(harness: Harness, subscription: Subscription, connection: Connection) -> Consumer:
    """Its consumer, for which two messages wait."""
    consumer = connection.consumer(subscription)
    harness.send(subscription.topic, *"ab")
    return consumer


class TestNoLocal(Contract):
    """``no_local`` (JMS 3.1, sections 8.3.1 and 8.3.3; capability no_local)."""

    needs = ("no_local",)

    def test_own_messages_are_not_added(self, harness: Harness) -> None:
        """Those of every other connection are (JMS 3.1, section 8.3.1)."""
        topic, other = harness.topic(), harness.connect()
        consumer = harness.connection.consumer(topic, no_local=True)
        _send(harness, harness.connection, topic, "mine")
        _send(harness, other, topic, "another's")
        _send(harness, harness.connection, topic, "mine again")
        assert bodies(harness.gather(consumer, 1)) == ["another's"]
        assert harness.receives_nothing(consumer, topic)

    def test_it_binds_nobody_else(self, harness: Harness) -> None:
        """Another consumer without it receives all messages, also on the same connection (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.connection.consumer(topic, no_local=True)
        neighbour = harness.connection.consumer(topic)
        _send(harness, harness.connection, topic, "mine")
        assert bodies(harness.gather(neighbour, 1)) == ["mine"]

    def test_without_it_own_messages_come(self, harness: Harness) -> None:
        """The default is false (JMS 3.1, `Session.createConsumer`)."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic)
        _send(harness, harness.connection, topic, "mine")
        assert bodies(harness.gather(consumer, 1)) == ["mine"]

    def test_it_holds_within_a_unit(self, harness: Harness) -> None:
        """The connection of the sending unit counts, not that of the settling unit (JMS 3.1, section 8.3.1)."""
        queue, topic, other = harness.queue(), harness.topic(), harness.connect()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(topic, no_local=True)
        for connection, body in ((harness.connection, "mine"), (other, "another's")):
            source = connection.consumer(queue, window=0)
            unit = harness.holding(harness.gather(source, 1), connection)
            harness.record(unit, topic, body)
            unit.commit()
            source.close()  # it may have been sent the next one
        assert bodies(harness.gather(consumer, 1)) == ["another's"]

    def test_selector_and_it_hold_together(self, harness: Harness) -> None:
        """A message must pass both (JMS 3.1, section 8.3.1)."""
        harness.require("selectors", "priority")
        topic = harness.topic()
        consumer = harness.connection.consumer(topic, selector="JMSPriority > 5", no_local=True)
        harness.send(topic, "mine", priority=9)
        other = harness.connect()
        _send(harness, other, topic, "low", priority=1)
        _send(harness, other, topic, "another's", priority=9)
        assert bodies(harness.gather(consumer, 1)) == ["another's"]

    def test_durable_one_is_spared_its_clients_messages(self, harness: Harness) -> None:
        """Of any connection with its client id, also while it is inactive (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "durable_no_local")
        subscription = harness.subscription()
        first = harness.connect(subscription.client_id)
        first.consumer(subscription, no_local=True)
        _send(harness, first, subscription.topic, "mine")
        first.close()
        second = harness.connect(subscription.client_id)
        _send(harness, second, subscription.topic, "mine again")
        harness.send(subscription.topic, "another's")
        consumer = second.consumer(subscription, no_local=True)
        assert bodies(harness.gather(consumer, 1)) == ["another's"]
        assert harness.receives_nothing(consumer, subscription)

    def test_change_makes_a_durable_one_anew(self, harness: Harness) -> None:
        """Another value of it makes another subscription (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "durable_no_local")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, no_local=True).close()
        harness.send(subscription.topic, "old")
        consumer = connection.consumer(subscription)
        _send(harness, connection, subscription.topic, "mine")
        assert bodies(harness.gather(consumer, 1)) == ["mine"]

    def test_same_value_goes_on(self, harness: Harness) -> None:
        """Nothing changed, so what waits is kept (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "durable_no_local")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, no_local=True)
        harness.send(subscription.topic, "kept")
        connection.close()
        consumer = harness.connect(subscription.client_id).consumer(subscription, no_local=True)
        assert bodies(harness.gather(consumer, 1)) == ["kept"]

    def test_durable_one_is_refused_where_it_would_not_hold(self, harness: Harness) -> None:
        """Another connection of the client would be received; nothing is silently weakened (JMS 3.1, 8.3.3)."""
        harness.require("durable")
        harness.require_lack("durable_no_local")
        subscription = harness.subscription()
        with pytest.raises(NotSupportedError):
            harness.connect(subscription.client_id).consumer(subscription, no_local=True)

    def test_queues_refuse_it(self, harness: Harness) -> None:
        """JMS leaves open what it does there (`Session.createConsumer`), and nothing is silently ignored here."""
        with pytest.raises(InvalidDestinationError):
            harness.connection.consumer(harness.queue(), no_local=True)


def _send(harness: Harness, connection: Connection, to: Destination, body: str, **headers: Any) -> None:
    unit = harness.unit(connection)
    unit.send(prepare(TextMessage(body), to, **headers), to)
    unit.commit()
