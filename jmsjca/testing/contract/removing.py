"""Removing and emptying queues and subscriptions: what goes, what stays, what is refused."""

from __future__ import annotations

import pytest

from jmsjca.destinations import Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.messages import TextMessage
from jmsjca.spi import Admin, Depth
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = ["TestRemoving"]


class TestRemoving(Contract):
    """`Connection.remove` and `Admin.purge` (left to administrators by JMS 3.1, section 4.1.3; capability admin)."""

    @pytest.fixture
    def admin(self, harness: Harness) -> Admin:
        """Give the admin, or skip."""
        harness.require("admin")
        admin = harness.connection.admin()
        assert admin is not None
        return admin

    def test_queue_in_use_is_not_removed(self, harness: Harness, admin: Admin) -> None:
        """Its consumer would wait for ever (design rule of `Connection.remove`)."""
        queue = harness.queue()
        consumer = harness.connect().consumer(queue)
        with pytest.raises(IllegalStateError):
            harness.connection.remove(queue)
        harness.send(queue, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        consumer.close()
        harness.connection.remove(queue)
        assert queue not in admin.destinations()

    @pytest.mark.usefixtures("admin")
    def test_what_is_not_there_cannot_be_removed(self, harness: Harness) -> None:
        """A queue that nobody used, and a topic, which holds nothing (design rule of `Connection.remove`)."""
        for what in (harness.queue(), harness.topic()):
            with pytest.raises(InvalidDestinationError):
                harness.connection.remove(what)

    @pytest.mark.usefixtures("admin")
    def test_unit_outlives_the_removed_queue(self, harness: Harness) -> None:
        """What it took is its own; rolled back, it has no place to go to (JMS 3.1, section 8.8)."""
        harness.require("ends_at_close")
        queue, target = harness.queue(), harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        committed, rolled_back = (harness.holding([d]) for d in harness.gather(consumer, 2))
        harness.note(committed, target, "done")
        consumer.close()
        harness.connection.remove(queue)
        committed.commit()
        rolled_back.rollback()
        harness.expect(target, "done")
        harness.expect(queue)

    @pytest.mark.usefixtures("admin")
    def test_removed_queue_forgets_duplicate_ids(self, harness: Harness) -> None:
        """Its name begins anew, so nothing sent there is a duplicate (Artemis removes the cache with the address)."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, TextMessage("old", properties={"_AMQ_DUPL_ID": "1"}))
        harness.connection.remove(queue)
        harness.send_messages(queue, TextMessage("new", properties={"_AMQ_DUPL_ID": "1"}))
        harness.expect(queue, "new")

    @pytest.mark.usefixtures("admin")
    def test_removing_a_queue_leaves_its_neighbours(self, harness: Harness) -> None:
        """Another queue, and the topic of the same name (design rule: the kind is part of the identity)."""
        harness.require("durable")
        subscription, queue = harness.subscription(), harness.queue()
        twin = type(queue)(subscription.topic.name)
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription)
        for to in (queue, twin, subscription.topic):
            harness.send(to, "a")
        harness.connection.remove(twin)
        connection.close()
        harness.expect(queue, "a")
        harness.expect(subscription, "a")
        harness.expect(twin)

    def test_purge_removes_what_is_not_due(self, harness: Harness, admin: Admin) -> None:
        """All that waits goes, whatever it waits for (design rule of `Admin.purge`)."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "now")
        harness.send(queue, "later", delivery_time=moment(3600))
        assert admin.purge(queue) == 2
        assert admin.depth(queue) == Depth(0, 0, 0)

    def test_purged_queue_goes_on(self, harness: Harness, admin: Admin) -> None:
        """Its consumers stay and get what comes (design rule of `Admin.purge`)."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        admin.purge(queue)
        consumer = harness.connection.consumer(queue)
        harness.send(queue, "c")
        assert bodies(harness.gather(consumer, 1)) == ["c"]

    def test_purge_of_a_subscription_leaves_the_others(self, harness: Harness, admin: Admin) -> None:
        """Each copy is a separate message (JMS 3.1, section 4.2.2)."""
        harness.require("durable")
        topic = harness.topic()
        purged, other = harness.subscription(topic), harness.subscription(topic)
        for subscription in (purged, other):
            harness.connect(subscription.client_id).consumer(subscription).close()
        harness.send(topic, *"ab")
        assert admin.purge(purged) == 2
        assert (admin.depth(purged).total, admin.depth(other).total) == (0, 2)

    def test_what_is_not_there_is_empty(self, harness: Harness, admin: Admin) -> None:
        """Asking for a depth makes nothing, and purging nothing is no error (design rule of `Admin`)."""
        queue = harness.queue()
        assert admin.depth(queue) == Depth(0, 0, 0)
        assert admin.purge(queue) == 0
        assert queue not in admin.destinations()

    def test_depth_of_a_topic_is_that_of_its_subscriptions(self, harness: Harness, admin: Admin) -> None:
        """A topic holds nothing itself, so there is no number to tell (JMS 3.1, section 4.2.2)."""
        with pytest.raises(InvalidDestinationError):
            admin.depth(harness.topic())

    def test_depth_of_a_shared_subscription(self, harness: Harness, admin: Admin) -> None:
        """Volatile or not, it is found by its name (JMS 3.1, sections 8.3.2 and 8.3.4)."""
        harness.require("shared", "durable", "exact_credit")
        topic = harness.topic()
        for volatile in (True, False):
            subscription = Subscription(topic, topic.name, shared=True, volatile=volatile)
            consumer = harness.connection.consumer(subscription, window=0)
            harness.send(topic, *"ab")
            harness.gather(consumer, 1)
            assert admin.depth(subscription) == Depth(ready=1, held=1, scheduled=0)
