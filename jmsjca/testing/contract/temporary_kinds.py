"""Temporary queues, and temporary topics: what each is besides."""

from __future__ import annotations

import pytest

from jmsjca.destinations import Queue, Subscription, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import InvalidDestinationError
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestTemporaryQueues", "TestTemporaryTopics"]


class _NeedsTemporary(Contract):
    @pytest.fixture(autouse=True)
    def _needs_temporary(self, harness: Harness) -> None:
        harness.require("temporary")


class TestTemporaryQueues(_NeedsTemporary):
    """Temporary queues (JMS 3.1, section 4.1.5)."""

    def test_it_keeps_messages_for_a_consumer_to_come(self, harness: Harness) -> None:
        """It is a queue: what comes before its first consumer waits (JMS 3.1, sections 4.1.2 and 4.1.5)."""
        made = harness.connection.temporary("queue")
        assert isinstance(made, TemporaryQueue)
        harness.send(made, *"ab")
        first = harness.connection.consumer(made)
        first.close()
        assert bodies(harness.gather(harness.connection.consumer(made), 2)) == ["a", "b"]

    def test_consumers_of_its_connection_compete(self, harness: Harness) -> None:
        """Every consumer of that connection may take from it (JMS 3.1, section 6.2.2)."""
        harness.require("exact_credit")
        made = harness.connection.temporary("queue")
        first, second = (harness.connection.consumer(made, window=0) for _ in range(2))
        harness.send(made, *"ab")
        assert [bodies(harness.gather(consumer, 1)) for consumer in (first, second)] == [["a"], ["b"]]

    def test_it_can_be_browsed(self, harness: Harness) -> None:
        """It is a queue, so it has browsers (JMS 3.1, section 4.1.6)."""
        harness.require("browse")
        made = harness.connection.temporary("queue")
        harness.send(made, *"ab")
        assert [d.message.body for chunk in harness.connection.browse(made) for d in chunk] == ["a", "b"]

    def test_rolled_back_message_comes_again(self, harness: Harness) -> None:
        """Units treat it as any queue (JMS 3.1, section 6.2.7)."""
        made = harness.connection.temporary("queue")
        harness.send(made, *"ab")
        consumer = harness.connection.consumer(made)
        harness.holding(harness.gather(consumer, 2)).rollback()
        again = harness.gather(consumer, 2)
        assert [(d.message.body, d.redelivered) for d in again] == [("a", True), ("b", True)]

    def test_its_name_is_not_enough(self, harness: Harness) -> None:
        """Who names it as an ordinary queue gets no further: it could read the replies of others (JMS 3.1, 6.2.2)."""
        harness.require("temporary_guarded")
        made = harness.connection.temporary("queue")
        harness.send(made, "reply")
        with pytest.raises(InvalidDestinationError):
            harness.connect().consumer(Queue(made.name))
        if harness.connection.capabilities.admin:
            with pytest.raises(InvalidDestinationError):
                harness.connect().remove(Queue(made.name))
        assert bodies(harness.gather(harness.connection.consumer(Queue(made.name)), 1)) == ["reply"]

    def test_operator_sees_it_as_what_it_is(self, harness: Harness) -> None:
        """It will go by itself, which a queue of that name would not (design rule of `Admin.destinations`)."""
        harness.require("admin")
        queue, topic = (harness.connection.temporary(kind) for kind in ("queue", "topic"))
        harness.send(queue, "a")
        harness.connection.consumer(topic)
        admin = harness.connection.admin()
        assert admin is not None
        assert {queue, topic} <= set(admin.destinations())

    def test_lost_one_does_not_come_back(self, harness: Harness) -> None:
        """What an open unit held goes with the queue, not to a queue of its name (JMS 3.1, section 6.2.2)."""
        harness.require("admin")
        made = (asking := harness.connect()).temporary("queue")
        harness.send(made, *"ab")
        harness.holding(harness.gather(asking.consumer(made), 1), asking)
        asking.close()
        admin = harness.connection.admin()
        assert admin is not None
        assert admin.depth(made).total == 0
        assert made.name not in {d.name for d in admin.destinations()}


class TestTemporaryTopics(_NeedsTemporary):
    """Temporary topics (JMS 3.1, section 4.2.7)."""

    def test_every_subscriber_gets_its_own_copy(self, harness: Harness) -> None:
        """It is a topic, and sends to nobody what came before him (JMS 3.1, sections 4.2.2 and 4.2.7)."""
        made = harness.connection.temporary("topic")
        assert isinstance(made, TemporaryTopic)
        harness.send(made, "before")
        consumers = [harness.connection.consumer(made) for _ in range(2)]
        harness.send(made, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_durable_subscription_is_refused(self, harness: Harness) -> None:
        """It does not make sense, as the topic does not last (JMS 3.1, section 4.2.7)."""
        harness.require("durable")
        client = harness.subscription().client_id
        connection = harness.connect(client)
        made = connection.temporary("topic")
        assert isinstance(made, Topic)
        with pytest.raises(InvalidDestinationError):
            connection.consumer(Subscription(made, "s", client))

    def test_its_connection_may_share_a_subscription(self, harness: Harness) -> None:
        """Shared by consumers of one connection, and by no others (JMS 3.1, sections 4.2.7 and 8.3.2)."""
        harness.require("shared", "exact_credit")
        made = harness.connection.temporary("topic")
        assert isinstance(made, Topic)
        shared = Subscription(made, made.name, shared=True, volatile=True)
        consumers = [harness.connection.consumer(shared, window=0) for _ in range(2)]
        with pytest.raises(InvalidDestinationError):
            harness.connect().consumer(shared)
        harness.send(made, *"ab")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["b"]]
