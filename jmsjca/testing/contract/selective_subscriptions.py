"""Subscriptions that are added to only what they select."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jmsjca.destinations import Destination
from jmsjca.messages import DeliveryMode, TextMessage
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestSelectiveSubscriptions"]


class TestSelectiveSubscriptions(Contract):
    """Selectors of subscriptions (JMS 3.1, sections 4.2.2 and 8.3; capability selectors)."""

    @pytest.fixture(autouse=True)
    def _needs_selectors(self, harness: Harness) -> None:
        harness.require("selectors")

    def test_each_subscriber_selects_for_itself(self, harness: Harness) -> None:
        """One message may be for several, for one or for none (JMS 3.1, section 4.2.2)."""
        topic = harness.topic()
        selectors = ("n < 3", "n > 1", None)
        consumers = [harness.connection.consumer(topic, selector=selector) for selector in selectors]
        _send(harness, topic, 1, 2, 3)
        came = [bodies(harness.gather(consumer, count)) for consumer, count in zip(consumers, (2, 2, 3), strict=True)]
        assert came == [["1", "2"], ["2", "3"], ["1", "2", "3"]]

    def test_message_that_nobody_selects_is_gone(self, harness: Harness) -> None:
        """It is not an error, and comes to no later subscriber (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.connection.consumer(topic, selector="n = 9")
        _send(harness, topic, 1)
        late = harness.connection.consumer(topic, selector="n < 9")
        _send(harness, topic, 2)
        assert bodies(harness.gather(late, 1)) == ["2"]

    def test_headers_can_be_selected(self, harness: Harness) -> None:
        """When a message is sent they are as known as its properties (JMS 3.1, section 3.8.1.1)."""
        harness.require("priority")
        topic = harness.topic()
        selector = "JMSPriority > 6 AND JMSDeliveryMode = 'NON_PERSISTENT'"
        consumer = harness.connection.consumer(topic, selector=selector)
        for priority, mode in ((9, DeliveryMode.PERSISTENT), (1, DeliveryMode.NON_PERSISTENT)):
            harness.send(topic, "other", priority=priority, delivery_mode=mode)
        harness.send(topic, "selected", priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
        assert bodies(harness.gather(consumer, 1)) == ["selected"]

    def test_durable_one_selects_while_it_is_inactive(self, harness: Harness) -> None:
        """It is the subscription that has the selector, not its consumer (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 2").close()
        _send(harness, subscription.topic, 1, 2, 3)
        consumer = connection.consumer(subscription, selector="n = 2")
        _send(harness, subscription.topic, 1, 2)
        assert bodies(harness.gather(consumer, 2)) == ["2", "2"]

    def test_another_selector_makes_a_durable_one_anew(self, harness: Harness) -> None:
        """As good as unsubscribing: what waited goes (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "subscription_lock")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 1").close()
        _send(harness, subscription.topic, 1)
        consumer = connection.consumer(subscription, selector="n > 0")
        _send(harness, subscription.topic, 2)
        assert bodies(harness.gather(consumer, 1)) == ["2"]

    def test_not_selected_message_is_not_counted(self, harness: Harness) -> None:
        """It is not added to the subscription, so it takes no room (JMS 3.1, section 4.2.2)."""
        harness.require("durable", "admin")
        subscription = harness.subscription()
        harness.connect(subscription.client_id).consumer(subscription, selector="n = 2")
        _send(harness, subscription.topic, 1, 2, 3)
        admin = harness.connection.admin()
        assert admin is not None
        assert admin.depth(subscription).total == 1

    def test_names_of_two_clients_select_apart(self, harness: Harness) -> None:
        """A selector belongs to one subscription of one client (JMS 3.1, sections 6.1.2 and 8.3.3)."""
        harness.require("durable")
        mine = harness.subscription()
        other = replace(mine, client_id=harness.subscription().client_id)
        consumers = [
            harness.connect(subscription.client_id).consumer(subscription, selector=f"n = {n}")
            for subscription, n in ((mine, 1), (other, 2))
        ]
        _send(harness, mine.topic, 1, 2)
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["1"], ["2"]]

    def test_removed_subscription_begins_without_selector(self, harness: Harness) -> None:
        """Nothing of it is left (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 1").close()
        connection.remove(subscription)
        consumer = connection.consumer(subscription)
        _send(harness, subscription.topic, 2)
        assert bodies(harness.gather(consumer, 1)) == ["2"]


def _send(harness: Harness, to: Destination, *numbers: int) -> None:
    harness.send_messages(to, *(TextMessage(str(n), properties={"n": n}) for n in numbers))
