"""Cases for the settings of destinations, and for messages that expire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import ConfigurationError
from jmsjca.messages import TextMessage
from jmsjca.spi import Admin, Depth
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = [
    "Configured",
    "TestDefaultSettings",
    "TestExpiry",
    "TestSettings",
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
        """Nothing is limited, nothing moved (Artemis has other defaults; ours lose nothing)."""
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
        """The broker has them, not who set them (Artemis' address-settings)."""
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
    """Settings for all destinations that have none of their own (beyond JMS: Artemis' match ``#``)."""

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
        """Set before or after, and also when they say that nothing is to be done (Artemis merges; we do not)."""
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
        """Each message has one end: the dead letter does not expire as well (Artemis' settings)."""
        queue, dead, expired = harness.queue(), harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead, expiry=expired)
        configure(harness, dead, expiry=expired)
        harness.send(queue, "a", expiration=moment(3600))
        harness.holding(harness.gather(harness.connection.consumer(queue), 1)).rollback()
        harness.expect(dead, "a")
        harness.expect(expired)

    def test_expired_message_of_an_expiry_destination(self, harness: Harness) -> None:
        """There messages are sent as to any other; its own would go in circles, so they are deleted."""
        expired = harness.queue()
        configure(harness, expired, expiry=expired)
        harness.send(expired, "old", expiration=moment(-1))
        harness.send(expired, "young")
        harness.expect(expired, "young")

    def test_expired_messages_are_not_counted(self, harness: Harness) -> None:
        """Nobody can get them any more, delayed or not (JMS 3.1, section 3.4.9; design rule of `Depth`)."""
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
