"""Cases for temporary queues and topics, which live as long as their connection."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from jmsjca.config.settings import Deadline
from jmsjca.destinations import Destination, Queue, Subscription, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = ["TestTemporaryDestinations", "TestTemporaryQueues", "TestTemporaryTopics"]

Kind = Literal["queue", "topic"]


@pytest.mark.parametrize("kind", ["queue", "topic"])
class TestTemporaryDestinations(Contract):
    """The rules for temporary queues and topics (JMS 3.1, section 6.2.2; capability temporary)."""

    needs = ("temporary",)

    def test_each_one_is_unique(self, harness: Harness, kind: Kind) -> None:
        """Every call makes another one, also over another connection (JMS 3.1, section 6.2.2)."""
        made = [
            harness.connection.temporary(kind),
            harness.connection.temporary(kind),
            harness.connect().temporary(kind),
        ]
        assert len(set(made)) == 3
        assert all(d.temporary for d in made)

    def test_other_connections_cannot_consume(self, harness: Harness, kind: Kind) -> None:
        """Only its own connection may create consumers (JMS 3.1, section 6.2.2), and goes on undisturbed."""
        made = harness.connection.temporary(kind)
        consumer = harness.connection.consumer(made)
        with pytest.raises(InvalidDestinationError):
            harness.connect().consumer(made)
        harness.send(made, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_other_connections_can_send(self, harness: Harness, kind: Kind) -> None:
        """That is what it is for: replies come from elsewhere (JMS 3.1, section 6.2.2)."""
        made = (asking := harness.connect()).temporary(kind)
        consumer = asking.consumer(made)
        harness.send(made, "reply")
        assert bodies(harness.gather(consumer, 1)) == ["reply"]

    def test_it_comes_back_as_reply_to(self, harness: Harness, kind: Kind) -> None:
        """Whoever gets the request can answer it, and the asker knows its own (JMS 3.1, section 3.4.6)."""
        made, requests = harness.connection.temporary(kind), harness.queue()
        replies = harness.connection.consumer(made)
        harness.send(requests, "question", reply_to=made)
        server = harness.connect()
        [request] = harness.gather(server.consumer(requests), 1)
        reply_to = request.message.reply_to
        assert reply_to == made
        assert isinstance(reply_to, type(made))
        unit = harness.holding([request], server)
        harness.record(unit, reply_to, "answer")
        unit.commit()
        [reply] = harness.gather(replies, 1)
        assert (reply.message.body, reply.message.destination) == ("answer", made)

    def test_it_is_gone_with_its_connection(self, harness: Harness, kind: Kind) -> None:
        """Closing the connection deletes it: later sends fail (JMS 3.1, section 6.2.2)."""
        harness.require("temporary_ends")
        made = (asking := harness.connect()).temporary(kind)
        asking.consumer(made)
        harness.connection.check(made)
        asking.close()
        _takes_nothing(harness, made)

    def test_check_tells_that_it_is_gone(self, harness: Harness, kind: Kind) -> None:
        """So a responder learns it before it works on the answer (JMS 3.1, section 6.2.2)."""
        harness.require("checks")
        made = harness.connection.temporary(kind)
        harness.connection.remove(made)
        with pytest.raises(InvalidDestinationError):
            harness.connection.check(made)

    def test_deleted_one_takes_no_messages(self, harness: Harness, kind: Kind) -> None:
        """It can be deleted before its connection closes (JMS 3.1, section 6.2.2), its fellows stay."""
        made, other = (harness.connection.temporary(kind) for _ in range(2))
        consumer = harness.connection.consumer(other)
        harness.connection.remove(made)
        _takes_nothing(harness, made)
        harness.send(other, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_deleted_one_has_no_consumers(self, harness: Harness, kind: Kind) -> None:
        """Nor can it be deleted again (JMS 3.1, section 6.2.2)."""
        made = harness.connection.temporary(kind)
        harness.connection.remove(made)
        with pytest.raises(InvalidDestinationError):
            harness.connection.consumer(made)
        with pytest.raises(InvalidDestinationError):
            harness.connection.remove(made)

    def test_one_in_use_is_not_deleted(self, harness: Harness, kind: Kind) -> None:
        """While it has a consumer, deleting it is an error (JMS 3.1, `TemporaryQueue.delete`)."""
        made = harness.connection.temporary(kind)
        consumer = harness.connection.consumer(made)
        with pytest.raises(IllegalStateError):
            harness.connection.remove(made)
        harness.send(made, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        consumer.close()
        harness.connection.remove(made)

    def test_other_connections_cannot_delete_it(self, harness: Harness, kind: Kind) -> None:
        """It is its own connection's in everything but sending (JMS 3.1, section 6.2.2)."""
        made = harness.connection.temporary(kind)
        with pytest.raises(InvalidDestinationError):
            harness.connect().remove(made)
        harness.unit().send(TextMessage("still there"), made)

    def test_send_that_comes_too_late_fails_the_unit(self, harness: Harness, kind: Kind) -> None:
        """Deleted between send and commit: all of the unit is undone (JMS 3.1, sections 6.2.2 and 6.2.7)."""
        harness.require("atomic", "temporary_ends")
        made, source, other = harness.connection.temporary(kind), harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.record(unit, made, "late")
        harness.record(unit, other, "never")
        harness.connection.remove(made)
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        harness.connection.close()
        harness.expect(source, "a")
        harness.expect(other)


def _takes_nothing(harness: Harness, gone: Destination) -> None:
    """Sending there fails: at once where the connection knows that it is gone, else at the commit."""
    with pytest.raises((InvalidDestinationError, TransactionRolledBackError)):
        harness.send(gone, "late")


class TestTemporaryQueues(Contract):
    """Temporary queues (JMS 3.1, section 4.1.5)."""

    needs = ("temporary",)

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
        """A client that uses the name as an ordinary queue could read the replies of others (JMS 3.1, 6.2.2)."""
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
        harness.require("admin", "lists_destinations")
        queue, topic = (harness.connection.temporary(kind) for kind in ("queue", "topic"))
        harness.send(queue, "a")
        harness.connection.consumer(topic)
        admin = harness.connection.admin()
        assert admin is not None
        assert {queue, topic} <= set(admin.destinations())

    def test_lost_one_does_not_come_back(self, harness: Harness) -> None:
        """Deliveries of an open unit are deleted with the queue, not moved to its namesake (JMS 3.1, section 6.2.2)."""
        harness.require("admin")
        made = (asking := harness.connect()).temporary("queue")
        harness.send(made, *"ab")
        harness.holding(harness.gather(asking.consumer(made), 1), asking)
        asking.close()
        admin = harness.connection.admin()
        assert admin is not None
        deadline = Deadline(PATIENCE)  # Artemis deletes the queue some time after the connection has closed
        while admin.depth(made).total and deadline.remaining():
            time.sleep(0.01)
        assert admin.depth(made).total == 0
        if harness.connection.capabilities.lists_destinations:
            assert made.name not in {d.name for d in admin.destinations()}


class TestTemporaryTopics(Contract):
    """Temporary topics (JMS 3.1, section 4.2.7)."""

    needs = ("temporary",)

    def test_every_subscriber_gets_its_own_copy(self, harness: Harness) -> None:
        """It is a topic: a subscriber receives only later messages (JMS 3.1, sections 4.2.2 and 4.2.7)."""
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
