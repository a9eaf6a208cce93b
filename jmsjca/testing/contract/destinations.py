"""Cases for the settings of destinations, for expiry, and for temporary queues and topics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from jmsjca.config import DestinationSettings
from jmsjca.config.clock import Deadline
from jmsjca.destinations import Destination, Queue, Subscription, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidDestinationError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.spi import Admin, Depth
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies, moment

__all__ = [
    "Configured",
    "TestDefaultSettings",
    "TestExpiry",
    "TestSettings",
    "TestTemporaryDestinations",
    "TestTemporaryQueues",
    "TestTemporaryTopics",
    "admin_of",
    "configure",
    "fail",
    "failing",
    "reject",
]


class Configured(Contract):
    """The base of contract classes that configure destinations."""

    needs = ("admin", "configurable", "exact_credit")


def admin_of(harness: Harness) -> Admin:
    """The operator's view of the connection."""
    admin = harness.connection.admin()
    assert admin is not None
    return admin


def configure(harness: Harness, address: Destination | None, **settings: Any) -> None:
    """Set what a destination does with its messages."""
    admin_of(harness).configure(address, DestinationSettings(**settings))


def failing(harness: Harness, *, max_deliveries: int) -> tuple[Queue, Queue]:
    """A queue that gives up after so many deliveries, and its dead-letter queue."""
    queue, dead = harness.queue(), harness.queue()
    configure(harness, queue, max_deliveries=max_deliveries, dead_letter=dead)
    return queue, dead


def fail(harness: Harness, queue: Queue, *bodies: str) -> None:
    """Send text messages that are received and rolled back, all in one unit."""
    harness.send(queue, *bodies)
    reject(harness, queue)


def reject(harness: Harness, queue: Queue) -> None:
    """Receive what is in a queue, and roll it back."""
    waiting = admin_of(harness).depth(queue).ready
    consumer = harness.connection.consumer(queue, window=0)
    harness.holding(harness.gather(consumer, waiting)).rollback()
    consumer.close()


class TestSettings(Configured):
    """`Admin.configure` and `Admin.settings` (beyond JMS: Artemis' address-settings)."""

    def test_settings_are_told(self, harness: Harness) -> None:
        """As they were set, destinations with their kind (Artemis' address-settings)."""
        queue, dead, expired = harness.queue(), harness.topic(), harness.queue()
        settings = DestinationSettings(max_deliveries=5, dead_letter=dead, expiry=expired, exclusive=True)
        admin_of(harness).configure(queue, settings)
        assert admin_of(harness).settings(queue) == settings

    def test_unconfigured_destination_has_none(self, harness: Harness) -> None:
        """There are no limits and no moves (Artemis has other defaults; these lose nothing)."""
        assert admin_of(harness).settings(harness.queue()) == DestinationSettings()

    def test_later_settings_replace_earlier_ones(self, harness: Harness) -> None:
        """As a whole: what is not named is off again (Artemis' address-settings)."""
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        configure(harness, queue)
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        harness.holding(harness.gather(consumer, 1)).rollback()
        assert [d.count for d in harness.gather(consumer, 1)] == [2]

    def test_settings_hold_for_one_destination_only(self, harness: Harness) -> None:
        """Not for a neighbour, and not for the topic of that name (design rule: the kind is part of the identity)."""
        queue, other = harness.queue(), harness.queue()
        topic = Topic(queue.name)
        subscriber = harness.connection.consumer(topic)
        configure(harness, queue, max_deliveries=1)
        for consumer, to in ((harness.connection.consumer(other), other), (subscriber, topic)):
            harness.send(to, "a")
            harness.holding(harness.gather(consumer, 1)).rollback()
            assert [d.count for d in harness.gather(consumer, 1)] == [2]

    def test_settings_come_before_their_destination(self, harness: Harness) -> None:
        """A queue has them from its first message (Artemis' address-settings)."""
        queue, dead = Queue(f"{harness.queue().name}.new"), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        assert queue not in admin_of(harness).destinations()
        fail(harness, queue, "a")
        harness.expect(dead, "a")

    def test_new_subscription_has_the_settings_of_its_topic(self, harness: Harness) -> None:
        """Whether it was there when they were set or not (Artemis' address-settings)."""
        topic, dead = harness.topic(), harness.queue()
        early = harness.connection.consumer(topic)
        configure(harness, topic, max_deliveries=1, dead_letter=dead)
        late = harness.connection.consumer(topic)
        harness.send(topic, "a")
        for consumer in (early, late):
            harness.holding(harness.gather(consumer, 1)).rollback()
        harness.expect(dead, "a", "a")

    def test_settings_hold_for_other_connections(self, harness: Harness) -> None:
        """Settings belong to the broker, not to the connection that made them (Artemis' address-settings)."""
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        harness.connection.close()
        other = harness.connect()
        unit = harness.unit(other)
        harness.record(unit, queue, "a")
        unit.commit()
        harness.holding(harness.gather(other.consumer(queue), 1), other).rollback()
        harness.expect(dead, "a")

    def test_settings_outlive_their_queue(self, harness: Harness) -> None:
        """They belong to the name: removing the queue removes messages only (Artemis' address-settings)."""
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        harness.send(queue, "old")
        harness.connection.remove(queue)
        fail(harness, queue, "new")
        harness.expect(dead, "new")

    def test_settings_of_a_temporary_queue(self, harness: Harness) -> None:
        """It is a queue like others while it is there (design rule)."""
        harness.require("temporary")
        made, dead = harness.connection.temporary("queue"), harness.queue()
        consumer = harness.connection.consumer(made)
        configure(harness, made, max_deliveries=1, dead_letter=dead)
        harness.send(made, "a")
        harness.holding(harness.gather(consumer, 1)).rollback()
        harness.expect(dead, "a")


class TestDefaultSettings(Configured):
    """Settings for all destinations without specific settings (beyond JMS: Artemis' match ``#``)."""

    @pytest.fixture(autouse=True)
    def _taken_back(self, harness: Harness, _capabilities: None) -> Iterator[None]:
        """They hold for the whole broker, so each case takes them back."""
        yield
        connection = harness.connect()
        admin = connection.admin()
        assert admin is not None
        admin.configure(None, DestinationSettings())

    def test_they_hold_where_there_are_no_others(self, harness: Harness) -> None:
        """For destinations that were there and for those to come (Artemis' match ``#``)."""
        old, new, dead = harness.queue(), harness.queue(), harness.queue()
        harness.send(old, "old")
        configure(harness, None, max_deliveries=1, dead_letter=dead)
        reject(harness, old)
        fail(harness, new, "new")
        harness.expect(dead, "old", "new")

    def test_own_settings_replace_them_as_a_whole(self, harness: Harness) -> None:
        """Also if they are set earlier, or disable everything (Artemis merges settings; jmsjca does not)."""
        before, after, dead = harness.queue(), harness.queue(), harness.queue()
        configure(harness, before)
        configure(harness, None, max_deliveries=1, dead_letter=dead)
        configure(harness, after, exclusive=True)
        for queue in (before, after):
            fail(harness, queue, "a")
            harness.expect(queue, "a")

    def test_dead_letter_destination_does_not_send_to_itself(self, harness: Harness) -> None:
        """There a message stays, however often it fails (design rule: never in circles)."""
        queue, dead = harness.queue(), harness.queue()
        configure(harness, None, max_deliveries=1, dead_letter=dead)
        fail(harness, queue, "a")
        consumer = harness.connection.consumer(dead, window=0)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, delivery.message.properties["_AMQ_ORIG_ADDRESS"]) == (expected, queue.name)
            harness.holding([delivery]).rollback()

    def test_they_are_told_for_each_destination(self, harness: Harness) -> None:
        """`Admin.settings` returns the settings in force; for the dead-letter destination there is no limit."""
        dead = harness.queue()
        settings = DestinationSettings(max_deliveries=3, dead_letter=dead)
        admin_of(harness).configure(None, settings)
        assert admin_of(harness).settings(None) == settings
        assert admin_of(harness).settings(harness.queue()) == settings
        assert admin_of(harness).settings(dead) == DestinationSettings()

    def test_expiry_destination_does_not_send_to_itself(self, harness: Harness) -> None:
        """A message that expires there is deleted (design rule: never in circles)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, None, expiry=expired)
        harness.send(queue, "there", expiration=moment(-1))
        harness.send(expired, "gone", expiration=moment(-1))
        harness.expect(queue)
        harness.expect(expired, "there")


class TestExpiry(Configured):
    """JMSExpiration (JMS 3.1, section 3.4.9) and the setting ``expiry`` (beyond JMS: Artemis' expiry-address)."""

    def test_expired_message_goes_there(self, harness: Harness) -> None:
        """A message that has not expired stays (Artemis' expiry-address)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young", expiration=moment(3600))
        harness.expect(queue, "young")
        harness.expect(expired, "old")

    def test_it_goes_although_nobody_consumes_where_it_was(self, harness: Harness) -> None:
        """A consumer of the expiry destination receives it without a consumer at its origin (Artemis scans for it)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        waiting = harness.in_background(harness.gather, harness.connect().consumer(expired), 1)
        harness.send(queue, "old", expiration=moment(-1))
        assert bodies(waiting.result()) == ["old"]

    def test_expired_messages_arrive_in_order(self, harness: Harness) -> None:
        """More than a broker would move at a time (JMS 3.1, section 6.2.9)."""
        queue, expired, sent = harness.queue(), harness.queue(), [str(n) for n in range(250)]
        configure(harness, queue, expiry=expired)
        harness.send(queue, *sent, expiration=moment(-1))
        harness.expect(queue)
        harness.expect(expired, *sent)

    def test_it_is_the_message_that_expired(self, harness: Harness) -> None:
        """Body and properties are unchanged, and properties record its origin (Artemis' names)."""
        queue, expired, end = harness.queue(), harness.queue(), moment(-1)
        configure(harness, queue, expiry=expired)
        sent = TextMessage("old", properties={"n": 1 << 40, "s": "x"})
        sent.correlation_id = "c"
        harness.send_messages(queue, sent, expiration=end, priority=2)
        harness.expect(queue)
        [delivery] = harness.gather(harness.connection.consumer(expired), 1)
        came = delivery.message
        assert (came.body, came.correlation_id, came.message_id, came.priority) == ("old", "c", sent.message_id, 2)
        assert (came.expiration, came.destination, delivery.count) == (None, expired, 1)
        assert dict(came.properties) == {
            "n": 1 << 40,
            "s": "x",
            "_AMQ_ORIG_ADDRESS": queue.name,
            "_AMQ_ORIG_MESSAGE_ID": sent.message_id,
            "_AMQ_ORIG_ROUTING_TYPE": 1,
            "_AMQ_ACTUAL_EXPIRY": round(end.timestamp() * 1000),
        }

    def test_expiry_destination_may_be_a_topic(self, harness: Harness) -> None:
        """Every subscriber gets a copy (Artemis: a multicast expiry-address)."""
        queue, expired = harness.queue(), harness.topic()
        configure(harness, queue, expiry=expired)
        consumers = [harness.connection.consumer(expired) for _ in range(2)]
        harness.send(queue, "old", expiration=moment(-1))
        harness.expect(queue)
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["old"], ["old"]]

    def test_expired_in_a_durable_subscription(self, harness: Harness) -> None:
        """A subscription retains messages until they expire (JMS 3.1, section 4.2.2); settings are the topic's."""
        harness.require("durable")
        subscription, expired = harness.subscription(), harness.queue()
        configure(harness, subscription.topic, expiry=expired)
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription)
        harness.send(subscription.topic, "old", expiration=moment(-1))
        connection.close()
        harness.expect(subscription)
        harness.expect(expired, "old")

    def test_expired_before_it_is_due(self, harness: Harness) -> None:
        """A delay does not keep it alive (JMS 3.1, sections 3.4.9 and 3.4.13)."""
        harness.require("delivery_delay")
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        harness.send(queue, "old", expiration=moment(-1), delivery_time=moment(3600))
        harness.expect(queue)
        harness.expect(expired, "old")

    def test_failed_before_it_expired(self, harness: Harness) -> None:
        """A dead-lettered message does not also expire (Artemis' settings)."""
        queue, dead, expired = harness.queue(), harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead, expiry=expired)
        configure(harness, dead, expiry=expired)
        harness.send(queue, "a", expiration=moment(3600))
        harness.holding(harness.gather(harness.connection.consumer(queue), 1)).rollback()
        harness.expect(dead, "a")
        harness.expect(expired)

    def test_expired_message_of_an_expiry_destination(self, harness: Harness) -> None:
        """Messages to it expire as elsewhere. They are deleted, because moving them would go in circles."""
        expired = harness.queue()
        configure(harness, expired, expiry=expired)
        harness.send(expired, "old", expiration=moment(-1))
        harness.send(expired, "young")
        harness.expect(expired, "young")

    def test_expired_messages_are_not_counted(self, harness: Harness) -> None:
        """No consumer can receive them, delayed or not (JMS 3.1, section 3.4.9; design rule of `Depth`)."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "ready")
        harness.send(queue, "later", delivery_time=moment(3600))
        for delivery_time in (None, moment(-2), moment(3600)):
            harness.send(queue, "expired", expiration=moment(-1), delivery_time=delivery_time)
        assert admin_of(harness).depth(queue) == Depth(ready=1, held=0, scheduled=1)

    def test_selecting_consumer_does_not_get_it(self, harness: Harness) -> None:
        """However it comes to its messages (JMS 3.1, sections 3.4.9 and 3.8)."""
        harness.require("selectors")
        queue = harness.queue()
        for body, end in (("old", -1), ("young", 3600)):
            harness.send_messages(queue, TextMessage(body, properties={"n": 1}), expiration=moment(end))
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert bodies(harness.gather(consumer, 1)) == ["young"]

    def test_expired_message_of_a_group(self, harness: Harness) -> None:
        """It leaves its group to the next one (JMS 3.1, section 3.4.9; Artemis' message groups)."""
        harness.require("groups")
        queue = harness.queue()
        for body, end in (("old", -1), ("young", 3600)):
            harness.send_messages(queue, TextMessage(body, properties={"JMSXGroupID": "g"}), expiration=moment(end))
        assert bodies(harness.gather(harness.connection.consumer(queue, window=0), 1)) == ["young"]

    def test_temporary_expiry_destination_is_refused(self, harness: Harness) -> None:
        """It would be gone when it is needed (design rule: wrong settings are refused)."""
        harness.require("temporary")
        with pytest.raises(ConfigurationError):
            configure(harness, harness.queue(), expiry=harness.connection.temporary("queue"))


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
        """The receiver of the request can answer, and the sender knows its own queue (JMS 3.1, section 3.4.6)."""
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
        """A responder gets the error before it works on the answer (JMS 3.1, section 6.2.2)."""
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
        """Other connections may only send to it (JMS 3.1, section 6.2.2)."""
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
        """It is listed as temporary, because it disappears by itself (design rule of `Admin.destinations`)."""
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
