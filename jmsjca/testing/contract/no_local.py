"""Subscribers that are spared what their own connection sends."""

from __future__ import annotations

from typing import Any

import pytest

from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Connection
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = ["TestNoLocal"]


class TestNoLocal(Contract):
    """``no_local`` (JMS 3.1, sections 8.3.1 and 8.3.3; capability no_local)."""

    @pytest.fixture(autouse=True)
    def _needs_no_local(self, harness: Harness) -> None:
        harness.require("no_local")

    def test_own_messages_are_not_added(self, harness: Harness) -> None:
        """Those of every other connection are (JMS 3.1, section 8.3.1)."""
        topic, other = harness.topic(), harness.connect()
        consumer = harness.connection.consumer(topic, no_local=True)
        _send(harness, harness.connection, topic, "mine")
        _send(harness, other, topic, "another's")
        _send(harness, harness.connection, topic, "mine again")
        assert bodies(harness.gather(consumer, 1)) == ["another's"]
        assert harness.nothing_comes(consumer, topic)

    def test_it_binds_nobody_else(self, harness: Harness) -> None:
        """A neighbour without it hears all, also on the same connection (JMS 3.1, section 8.3.1)."""
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
        """It counts whose unit sent a message, not whose it settles (JMS 3.1, section 8.3.1)."""
        queue, topic, other = harness.queue(), harness.topic(), harness.connect()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(topic, no_local=True)
        for connection, body in ((harness.connection, "mine"), (other, "another's")):
            source = connection.consumer(queue, window=0)
            unit = harness.holding(harness.gather(source, 1), connection)
            harness.note(unit, topic, body)
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
        assert harness.nothing_comes(consumer, subscription)

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
        """Another connection of the client would be heard, and nothing is silently weakened (JMS 3.1, 8.3.3)."""
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
