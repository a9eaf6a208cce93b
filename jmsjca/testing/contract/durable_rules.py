"""What JMS forbids about durable subscriptions that are not shared, and what makes them anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jmsjca.destinations import Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.spi import Connection, Consumer
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestDurableRules"]


class TestDurableRules(Contract):
    """Unshared durable subscriptions (JMS 3.1, section 8.3.3; capability subscription_lock)."""

    @pytest.fixture(autouse=True)
    def _needs_subscription_lock(self, harness: Harness) -> None:
        harness.require("durable", "subscription_lock")

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
        assert harness.nothing_comes(consumer, moved)

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
