"""Durable subscriptions that several consumers share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jmsjca.destinations import Subscription
from jmsjca.errors import IllegalStateError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Connection, Consumer
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestSharedDurableSubscriptions"]


class TestSharedDurableSubscriptions(Contract):
    """Shared durable subscriptions (JMS 3.1, section 8.3.4; capabilities shared and durable)."""

    @pytest.fixture(autouse=True)
    def _needs_shared_and_durable(self, harness: Harness) -> None:
        harness.require("shared", "durable")

    def test_consumers_compete(self, harness: Harness) -> None:
        """Each message goes to one of them (JMS 3.1, section 8.3.4)."""
        harness.require("exact_credit")
        subscription = _shared(harness)
        first, second = (c.consumer(subscription, window=0) for c in (harness.connection, harness.connect()))
        harness.send(subscription.topic, *"abcd")
        shares = [bodies(harness.gather(first, 1)), bodies(harness.gather(second, 3))]
        assert sorted(shares[0] + shares[1]) == list("abcd")

    def test_messages_are_kept_while_nobody_consumes(self, harness: Harness) -> None:
        """It outlives its consumers and their connections, without any client id (JMS 3.1, section 8.3.4)."""
        subscription = _shared(harness)
        connection = harness.connect()
        for _ in range(2):
            connection.consumer(subscription)
        connection.close()
        harness.send(subscription.topic, *"ab")
        harness.expect(subscription, "a", "b")

    def test_consumer_that_joins_gets_what_waits(self, harness: Harness) -> None:
        """A further consumer makes nothing anew (JMS 3.1, section 8.3.4)."""
        harness.require("exact_credit")
        subscription = _shared(harness)
        harness.connection.consumer(subscription, window=0)
        harness.send(subscription.topic, *"ab")
        late = harness.connect().consumer(subscription, window=0)
        assert bodies(harness.gather(late, 2)) == ["a", "b"]

    def test_settled_by_one_is_gone_for_all(self, harness: Harness) -> None:
        """What the first consumer settled and what it gave back part ways (JMS 3.1, section 8.3.4)."""
        subscription = _shared(harness)
        connection = harness.connect()
        first, _ = harness.gather(_subscribed(harness, subscription, connection), 2)
        harness.settle([first], connection)
        connection.close()
        harness.expect(subscription, "b")

    def test_client_ids_keep_subscriptions_of_one_name_apart(self, harness: Harness) -> None:
        """It is identified by its name and by the client id if there is one (JMS 3.1, section 8.3.4)."""
        common = _shared(harness)
        mine = replace(common, client_id=harness.subscription().client_id)
        consumers = [harness.connect(s.client_id).consumer(s) for s in (mine, common)]
        harness.send(common.topic, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_another_topic_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """Who consumes keeps the topic (JMS 3.1, section 8.3.4)."""
        subscription = _shared(harness)
        consumer = _subscribed(harness, subscription)
        with pytest.raises(IllegalStateError):
            harness.connection.consumer(replace(subscription, topic=harness.topic()))
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_another_selector_is_refused_while_it_is_in_use(self, harness: Harness) -> None:
        """Who consumes keeps the selector (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared(harness)
        consumer = _subscribed(harness, subscription)
        with pytest.raises(IllegalStateError):
            harness.connection.consumer(subscription, selector="n = 1")
        assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_another_topic_makes_it_anew(self, harness: Harness) -> None:
        """When nobody consumes, that is as good as unsubscribing (JMS 3.1, section 8.3.4)."""
        subscription = _shared(harness)
        _subscribed(harness, subscription).close()
        moved = replace(subscription, topic=harness.topic())
        harness.connection.consumer(moved).close()
        harness.send(subscription.topic, "old topic")
        harness.send(moved.topic, "new topic")
        harness.expect(moved, "new topic")

    def test_another_selector_makes_it_anew(self, harness: Harness) -> None:
        """What waited had been selected otherwise, so it goes (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared(harness)
        _subscribed(harness, subscription).close()
        consumer = harness.connection.consumer(subscription, selector="n = 1")
        harness.send_messages(subscription.topic, TextMessage("c"), TextMessage("d", properties={"n": 1}))
        assert bodies(harness.gather(consumer, 1)) == ["d"]

    def test_same_selector_goes_on(self, harness: Harness) -> None:
        """Nothing changed, so nothing is made anew (JMS 3.1, section 8.3.4)."""
        harness.require("selectors")
        subscription = _shared(harness)
        harness.connection.consumer(subscription, selector="n = 1").close()
        harness.send_messages(subscription.topic, TextMessage("a"), TextMessage("b", properties={"n": 1}))
        consumer = harness.connection.consumer(subscription, selector="n = 1")
        assert bodies(harness.gather(consumer, 1)) == ["b"]

    @pytest.mark.parametrize("shared", [True, False])
    def test_shared_and_unshared_cannot_have_one_name(self, harness: Harness, *, shared: bool) -> None:
        """Not even while nobody consumes, and nothing is lost by the attempt (JMS 3.1, sections 8.3.3 and 8.3.4)."""
        harness.require("subscription_kinds")
        subscription = replace(harness.subscription(), shared=shared)
        connection = harness.connect(subscription.client_id)
        _subscribed(harness, subscription, connection).close()
        with pytest.raises(IllegalStateError):
            connection.consumer(replace(subscription, shared=not shared))
        connection.close()
        harness.expect(subscription, "a", "b")

    def test_name_is_free_for_the_other_kind_after_removal(self, harness: Harness) -> None:
        """Unsubscribing deletes all of it (JMS 3.1, section 8.3.4)."""
        subscription = replace(harness.subscription(), shared=True)
        connection = harness.connect(subscription.client_id)
        _subscribed(harness, subscription, connection).close()
        connection.remove(subscription)
        unshared = replace(subscription, shared=False)
        connection.consumer(unshared).close()
        connection.close()
        harness.expect(unshared)

    def test_removal_waits_for_the_last_consumer(self, harness: Harness) -> None:
        """Deleting it under an active consumer is an error, also of another connection (JMS 3.1, section 8.3.4)."""
        subscription = _shared(harness)
        consumers = [harness.connect().consumer(subscription) for _ in range(2)]
        for consumer in consumers:
            with pytest.raises(IllegalStateError):
                harness.connection.remove(subscription)
            consumer.close()
        harness.connection.remove(subscription)
        harness.send(subscription.topic, "unheard")
        harness.expect(subscription)

    def test_no_local_is_refused(self, harness: Harness) -> None:
        """Shared subscriptions have no such parameter (JMS 3.1, section 16.3.8.2): whose messages would it mean?"""
        with pytest.raises(NotSupportedError):
            harness.connection.consumer(_shared(harness), no_local=True)


def _shared(harness: Harness) -> Subscription:
    """A subscription without client id: its name is everybody's, so it is the topic's, which nobody else uses."""
    topic = harness.topic()
    return Subscription(topic, topic.name, shared=True)


def _subscribed(harness: Harness, subscription: Subscription, connection: Connection | None = None) -> Consumer:
    """Its first consumer, for which two messages wait."""
    consumer = (connection or harness.connection).consumer(subscription)
    harness.send(subscription.topic, *"ab")
    return consumer
