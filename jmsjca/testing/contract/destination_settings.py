"""The settings of destinations themselves: which hold where, and from when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Queue, Topic
from jmsjca.testing.contract.configuring import Configured, admin_of, configure, fail, reject
from jmsjca.testing.contract.harness import Harness, moment

__all__ = ["TestDefaultSettings", "TestSettings"]


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
        harness.note(unit, queue, "a")
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
    def _taken_back(self, harness: Harness, _needs_configurable: None) -> Iterator[None]:
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
        """`Admin.settings` tells what holds; for the dead-letter destination that is no limit."""
        dead = harness.queue()
        settings = DestinationSettings(max_deliveries=3, dead_letter=dead)
        admin_of(harness).configure(None, settings)
        assert admin_of(harness).settings(None) == settings
        assert admin_of(harness).settings(harness.queue()) == settings
        assert admin_of(harness).settings(dead) == DestinationSettings()

    def test_expiry_destination_does_not_send_to_itself(self, harness: Harness) -> None:
        """What expires there is deleted (design rule: never in circles)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, None, expiry=expired)
        harness.send(queue, "there", expiration=moment(-1))
        harness.send(expired, "gone", expiration=moment(-1))
        harness.expect(queue)
        harness.expect(expired, "there")
