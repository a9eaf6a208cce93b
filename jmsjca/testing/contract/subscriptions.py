"""Cases for topics and their subscriptions: durable, shared, and with ``no_local``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Connection, Consumer
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = [
    "TestDurableRules",
    "TestDurableSubscriptions",
    "TestNoLocal",
    "TestSharedDurableSubscriptions",
    "TestSharedSubscriptions",
    "TestTopics",
]


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
        """Each copy has a separate state and count."""
        harness.require("delivery_count")
        topic = harness.topic()
        failing, other = harness.connection.consumer(topic), harness.connection.consumer(topic)
        harness.send(topic, "a")
        harness.holding(harness.gather(failing, 1)).rollback()
        assert [d.count for d in harness.gather(other, 1)] == [1]
        assert [d.count for d in harness.gather(failing, 1)] == [2]

    def test_unit_outlives_the_subscriber(self, harness: Harness) -> None:
        """A unit can still commit deliveries of a subscription that has ended."""
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
        harness.require_any_unit()
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

    def test_another_topic_is_never_the_old_one(self, harness: Harness) -> None:
        """The next connection gets messages of the new topic alone (JMS 3.1, section 8.3.3)."""
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription).close()
        connection.close()
        harness.send(subscription.topic, "old")
        moved = replace(subscription, topic=harness.topic())
        consumer = harness.connect(subscription.client_id).consumer(moved)
        harness.send(subscription.topic, "old topic")
        harness.send(moved.topic, "new topic")
        assert bodies(harness.gather(consumer, 1)) == ["new topic"]
        assert harness.receives_nothing(consumer, moved)


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
        """It is equivalent to unsubscribing: waiting messages are deleted (JMS 3.1, section 8.3.3)."""
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
        """Subscription names are unique only within a client (JMS 3.1, sections 6.1.2 and 8.3.3)."""
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
        """Messages of all other connections are added (JMS 3.1, section 8.3.1)."""
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
        """The connection that sends counts, not the connection that settles (JMS 3.1, section 8.3.1)."""
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
        """This holds for any connection with its client id, also while it is inactive (JMS 3.1, section 8.3.3)."""
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


class TestSharedSubscriptions(Contract):
    """Shared subscriptions that are not durable (JMS 3.1, section 8.3.2; capability shared)."""

    needs = ("shared",)

    def test_each_message_goes_to_one_consumer(self, harness: Harness) -> None:
        """The consumers compete, in whichever connections they are (JMS 3.1, section 8.3.2)."""
        harness.require("exact_credit")
        subscription = _shared(harness.topic())
        first, second = (c.consumer(subscription, window=0) for c in (harness.connection, harness.connect()))
        harness.send(subscription.topic, *"abcde")
        shares = [bodies(harness.gather(first, 2)), bodies(harness.gather(second, 3))]
        assert sorted(shares[0] + shares[1]) == list("abcde")

    def test_every_subscription_gets_its_own_copy(self, harness: Harness) -> None:
        """Only consumers that name the same subscription share it (JMS 3.1, section 4.2.2)."""
        topic = harness.topic()
        consumers = [harness.connection.consumer(_shared(topic, name)) for name in ("s", "t")]
        unshared = harness.connection.consumer(topic)
        harness.send(topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (*consumers, unshared)] == [["a"]] * 3

    def test_order_is_kept_from_consumer_to_consumer(self, harness: Harness) -> None:
        """The next consumer to ask gets the oldest remaining message (JMS 3.1, section 6.2.9)."""
        harness.require("exact_credit")
        subscription = _shared(harness.topic())
        first, second = (harness.connection.consumer(subscription, window=0) for _ in range(2))
        harness.send(subscription.topic, *"abcd")
        came = [harness.gather(consumer, 1)[0].message.body for consumer in (first, second, second, first)]
        assert came == list("abcd")

    def test_rolled_back_message_is_free_for_the_others(self, harness: Harness) -> None:
        """Another consumer may receive a message that one consumer rolled back (JMS 3.1, sections 8.3.2 and 3.5.11)."""
        harness.require("exact_credit", "delivery_count")
        subscription = _shared(harness.topic())
        first, second = (harness.connection.consumer(subscription, window=0) for _ in range(2))
        harness.send(subscription.topic, "a")
        harness.holding(harness.gather(first, 1)).rollback()
        assert [(d.message.body, d.count) for d in harness.gather(second, 1)] == [("a", 2)]

    def test_it_begins_with_its_first_consumer(self, harness: Harness) -> None:
        """Messages are added only while it has a consumer (JMS 3.1, section 8.3.2)."""
        subscription = _shared(harness.topic())
        harness.send(subscription.topic, "before")
        consumer = harness.connection.consumer(subscription)
        harness.send(subscription.topic, "after")
        assert bodies(harness.gather(consumer, 1)) == ["after"]
        assert harness.receives_nothing(consumer, subscription)

    def test_it_goes_on_while_one_consumer_is_left(self, harness: Harness) -> None:
        """Neither what waits nor what comes is lost when only one of them closes (JMS 3.1, section 8.3.2)."""
        subscription = _shared(harness.topic())
        first, second = (harness.connect().consumer(subscription) for _ in range(2))
        harness.send(subscription.topic, "a")
        first.close()
        harness.send(subscription.topic, "b")
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_closing_consumer_leaves_what_it_had_to_the_others(self, harness: Harness) -> None:
        """Its unhandled messages are released uncounted (JMS 3.1, section 8.3.2; rule of `Consumer.close`)."""
        harness.require("exact_credit")
        harness.require_release("uncounted")
        subscription = _shared(harness.topic())
        first, second = (harness.connect().consumer(subscription, window=0) for _ in range(2))
        harness.send(subscription.topic, *"ab")
        harness.gather(first, 2)
        first.close()
        again = harness.gather(second, 2)
        assert [(d.message.body, d.redelivered) for d in again] == [("a", False), ("b", False)]

    def test_it_ends_with_its_last_consumer(self, harness: Harness) -> None:
        """It is deleted with its messages; its name stands for a new subscription (JMS 3.1, section 8.3.2)."""
        harness.require("volatile_reuse")
        subscription = _shared(harness.topic())
        consumers = [harness.connect().consumer(subscription) for _ in range(2)]
        harness.send(subscription.topic, "undelivered")
        for consumer in consumers:
            consumer.close()
        harness.send(subscription.topic, "unheard")
        late = harness.connection.consumer(subscription)
        harness.send(subscription.topic, "new")
        assert bodies(harness.gather(late, 1)) == ["new"]
        assert harness.receives_nothing(late, subscription)

    def test_it_ends_with_its_last_connection(self, harness: Harness) -> None:
        """A connection that closes closes its consumers (JMS 3.1, sections 6.1.8 and 8.3.2)."""
        harness.require("volatile_reuse")
        subscription = _shared(harness.topic())
        connection = harness.connect()
        connection.consumer(subscription)
        harness.send(subscription.topic, "undelivered")
        connection.close()
        late = harness.connection.consumer(subscription)
        assert harness.receives_nothing(late, subscription)

    def test_unit_outlives_it(self, harness: Harness) -> None:
        """A unit commits what it took although the subscription has ended (JMS 3.1, section 8.8)."""
        subscription, target = _shared(harness.topic()), harness.queue()
        consumer = harness.connection.consumer(subscription)
        harness.send(subscription.topic, "a")
        unit = harness.holding(harness.gather(consumer, 1))
        harness.record(unit, target, "done")
        consumer.close()
        unit.commit()
        harness.expect(target, "done")

    def test_message_rolled_back_after_its_end_is_dropped(self, harness: Harness) -> None:
        """It does not come back in a later subscription of that name (JMS 3.1, section 4.2.8)."""
        harness.require("ends_at_close")
        subscription = _shared(harness.topic())
        consumer = harness.connection.consumer(subscription)
        harness.send(subscription.topic, "a")
        unit = harness.holding(harness.gather(consumer, 1))
        consumer.close()
        late = harness.connection.consumer(subscription)
        unit.rollback()
        assert harness.receives_nothing(late, subscription)

    def test_another_topic_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """A name belongs to one topic (JMS 3.1, section 8.3.2). The existing consumers are not affected."""
        subscription = _shared(harness.topic())
        consumer = harness.connection.consumer(subscription)
        with pytest.raises(IllegalStateError):
            harness.connect().consumer(replace(subscription, topic=harness.topic()))
        harness.send(subscription.topic, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_another_selector_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """All consumers of one subscription select alike (JMS 3.1, section 8.3.2)."""
        harness.require("selectors")
        subscription = _shared(harness.topic())
        harness.connection.consumer(subscription, selector="n = 1")
        for selector in ("n = 2", None):
            with pytest.raises(IllegalStateError):
                harness.connection.consumer(subscription, selector=selector)

    def test_name_is_free_for_another_topic_afterwards(self, harness: Harness) -> None:
        """Nothing is left of a subscription that ended (JMS 3.1, section 8.3.2)."""
        harness.require("volatile_reuse")
        subscription = _shared(harness.topic())
        harness.connection.consumer(subscription).close()
        other = replace(subscription, topic=harness.topic())
        consumer = harness.connection.consumer(other)
        harness.send(subscription.topic, "old topic")
        harness.send(other.topic, "new topic")
        assert bodies(harness.gather(consumer, 1)) == ["new topic"]

    def test_selector_holds_for_all_consumers(self, harness: Harness) -> None:
        """Messages that are not selected are not added to the subscription (JMS 3.1, section 8.3.2)."""
        harness.require("selectors", "exact_credit")
        subscription = _shared(harness.topic())
        consumers = [harness.connection.consumer(subscription, selector="n > 1", window=0) for _ in range(2)]
        harness.send_messages(subscription.topic, *(TextMessage(str(n), properties={"n": n}) for n in range(4)))
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["2"], ["3"]]

    def test_client_ids_keep_subscriptions_of_one_name_apart(self, harness: Harness) -> None:
        """With a client id the name belongs to the client, without one to all clients (JMS 3.1, section 8.3.2)."""
        topic = harness.topic()
        client = harness.subscription(topic).client_id
        mine = harness.connect(client).consumer(replace(_shared(topic), client_id=client))
        common = harness.connection.consumer(_shared(topic))
        harness.send(topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (mine, common)] == [["a"], ["a"]]

    def test_durable_one_of_the_same_name_is_another(self, harness: Harness) -> None:
        """Such subscriptions are completely separate (JMS 3.1, sections 8.3.2 and 8.3.4)."""
        harness.require("durable")
        volatile = _shared(harness.topic())
        durable = replace(volatile, volatile=False)
        ending, consumer = harness.connection.consumer(volatile), harness.connection.consumer(durable)
        harness.send(volatile.topic, "a")
        assert bodies(harness.gather(ending, 1)) == ["a"]
        ending.close()
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_no_local_is_refused(self, harness: Harness) -> None:
        """They have no such parameter (JMS 3.1, section 16.3.8.1), because they have several connections."""
        with pytest.raises(NotSupportedError):
            harness.connection.consumer(_shared(harness.topic()), no_local=True)


def _shared(topic: Topic, name: str = "s") -> Subscription:
    """Return a subscription without client id. Its name is global, so it contains the unique name of the topic."""
    return Subscription(topic, f"{topic.name}.{name}", shared=True, volatile=True)


class TestSharedDurableSubscriptions(Contract):
    """Shared durable subscriptions (JMS 3.1, section 8.3.4; capabilities shared and durable)."""

    needs = ("shared", "durable")

    def test_consumers_compete(self, harness: Harness) -> None:
        """Each message goes to one of them (JMS 3.1, section 8.3.4)."""
        harness.require("exact_credit")
        subscription = _shared_durable(harness)
        first, second = (c.consumer(subscription, window=0) for c in (harness.connection, harness.connect()))
        harness.send(subscription.topic, *"abcd")
        shares = [bodies(harness.gather(first, 1)), bodies(harness.gather(second, 3))]
        assert sorted(shares[0] + shares[1]) == list("abcd")

    def test_messages_are_kept_while_nobody_consumes(self, harness: Harness) -> None:
        """It outlives its consumers and their connections, without any client id (JMS 3.1, section 8.3.4)."""
        subscription = _shared_durable(harness)
        connection = harness.connect()
        for _ in range(2):
            connection.consumer(subscription)
        connection.close()
        harness.send(subscription.topic, *"ab")
        harness.expect(subscription, "a", "b")

    def test_consumer_that_joins_gets_what_waits(self, harness: Harness) -> None:
        """An additional consumer does not create the subscription again (JMS 3.1, section 8.3.4)."""
        harness.require("exact_credit")
        subscription = _shared_durable(harness)
        harness.connection.consumer(subscription, window=0)
        harness.send(subscription.topic, *"ab")
        late = harness.connect().consumer(subscription, window=0)
        assert bodies(harness.gather(late, 2)) == ["a", "b"]

    def test_settled_by_one_is_gone_for_all(self, harness: Harness) -> None:
        """A settled message is gone, a released one is redelivered (JMS 3.1, section 8.3.4)."""
        harness.require_any_unit()
        subscription = _shared_durable(harness)
        connection = harness.connect()
        first, _ = harness.gather(_subscribed_for_two(harness, subscription, connection), 2)
        harness.settle([first], connection)
        connection.close()
        harness.expect(subscription, "b")

    def test_client_ids_keep_subscriptions_of_one_name_apart(self, harness: Harness) -> None:
        """It is identified by its name and by the client id if there is one (JMS 3.1, section 8.3.4)."""
        common = _shared_durable(harness)
        mine = replace(common, client_id=harness.subscription().client_id)
        consumers = [harness.connect(s.client_id).consumer(s) for s in (mine, common)]
        harness.send(common.topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_another_topic_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """An active consumer keeps the topic (JMS 3.1, section 8.3.4)."""
        subscription = _shared_durable(harness)
        consumer = _subscribed_for_two(harness, subscription)
        with pytest.raises(IllegalStateError):
            harness.connection.consumer(replace(subscription, topic=harness.topic()))
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_another_selector_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """An active consumer keeps the selector (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared_durable(harness)
        consumer = _subscribed_for_two(harness, subscription)
        with pytest.raises(IllegalStateError):
            harness.connection.consumer(subscription, selector="n = 1")
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_another_topic_makes_it_anew(self, harness: Harness) -> None:
        """Without a consumer, another topic is equivalent to unsubscribing (JMS 3.1, section 8.3.4)."""
        subscription = _shared_durable(harness)
        _subscribed_for_two(harness, subscription).close()
        moved = replace(subscription, topic=harness.topic())
        harness.connection.consumer(moved).close()
        harness.send(subscription.topic, "old topic")
        harness.send(moved.topic, "new topic")
        harness.expect(moved, "new topic")

    def test_another_selector_makes_it_anew(self, harness: Harness) -> None:
        """Waiting messages were selected by another selector, so they are deleted (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared_durable(harness)
        _subscribed_for_two(harness, subscription).close()
        consumer = harness.connection.consumer(subscription, selector="n = 1")
        harness.send_messages(subscription.topic, TextMessage("c"), TextMessage("d", properties={"n": 1}))
        assert bodies(harness.gather(consumer, 1)) == ["d"]

    def test_same_selector_goes_on(self, harness: Harness) -> None:
        """Without a change the subscription is kept (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared_durable(harness)
        harness.connection.consumer(subscription, selector="n = 1").close()
        harness.send_messages(subscription.topic, TextMessage("a"), TextMessage("b", properties={"n": 1}))
        consumer = harness.connection.consumer(subscription, selector="n = 1")
        assert bodies(harness.gather(consumer, 1)) == ["b"]

    @pytest.mark.parametrize("shared", [True, False])
    def test_shared_and_unshared_cannot_have_one_name(self, harness: Harness, *, shared: bool) -> None:
        """Also without an active consumer; the attempt loses no message (JMS 3.1, sections 8.3.3 and 8.3.4)."""
        harness.require("subscription_kinds")
        subscription = replace(harness.subscription(), shared=shared)
        connection = harness.connect(subscription.client_id)
        _subscribed_for_two(harness, subscription, connection).close()
        with pytest.raises(IllegalStateError):
            connection.consumer(replace(subscription, shared=not shared))
        connection.close()
        harness.expect(subscription, "a", "b")

    def test_name_is_free_for_the_other_kind_after_removal(self, harness: Harness) -> None:
        """Unsubscribing deletes all of it (JMS 3.1, section 8.3.4)."""
        subscription = replace(harness.subscription(), shared=True)
        connection = harness.connect(subscription.client_id)
        _subscribed_for_two(harness, subscription, connection).close()
        connection.remove(subscription)
        unshared = replace(subscription, shared=False)
        connection.consumer(unshared).close()
        connection.close()
        harness.expect(unshared)

    def test_removal_waits_for_the_last_consumer(self, harness: Harness) -> None:
        """Deleting it under an active consumer is an error, also of another connection (JMS 3.1, section 8.3.4)."""
        subscription = _shared_durable(harness)
        consumers = [harness.connect().consumer(subscription) for _ in range(2)]
        for consumer in consumers:
            with pytest.raises(IllegalStateError):
                harness.connection.remove(subscription)
            consumer.close()
        harness.connection.remove(subscription)
        harness.send(subscription.topic, "unheard")
        harness.expect(subscription)

    def test_no_local_is_refused(self, harness: Harness) -> None:
        """They have no such parameter (JMS 3.1, section 16.3.8.2), because they have several connections."""
        with pytest.raises(NotSupportedError):
            harness.connection.consumer(_shared_durable(harness), no_local=True)


def _shared_durable(harness: Harness) -> Subscription:
    """Return a subscription without client id. Its name is global, so it is the unique name of the topic."""
    topic = harness.topic()
    return Subscription(topic, topic.name, shared=True)


def _subscribed_for_two(harness: Harness, subscription: Subscription, connection: Connection | None = None) -> Consumer:
    """Its first consumer, for which two messages wait."""
    consumer = (connection or harness.connection).consumer(subscription)
    harness.send(subscription.topic, *"ab")
    return consumer
