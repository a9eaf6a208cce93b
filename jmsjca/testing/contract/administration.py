"""Cases for the operator: create, remove and purge queues, browse messages, count consumers."""

from __future__ import annotations

from itertools import chain

import pytest

from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError, InvalidSelectorError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Admin, Depth
from jmsjca.testing.contract.destinations import admin_of
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = ["TestActivity", "TestAdmin", "TestBrowsing", "TestCreating", "TestRemoving"]

_DAY = 86_400.0  # seconds


class TestCreating(Contract):
    """`Admin.create` and `Admin.remove` (left to administrators by JMS 3.1, 4.1.3; capability creates_queues)."""

    needs = ("admin", "creates_queues")

    @pytest.fixture
    def admin(self, harness: Harness) -> Admin:
        """Return the operator's view of the connection."""
        return admin_of(harness)

    def test_created_queue_is_there_and_empty(self, harness: Harness, admin: Admin) -> None:
        """It is listed before anything was sent to it (design rule of `Admin.create`)."""
        queue = harness.queue()
        admin.create(queue)
        if harness.connection.capabilities.lists_destinations:
            assert queue in admin.destinations()
        assert admin.depth(queue).total == 0
        harness.send(queue, "a")
        harness.expect(queue, "a")

    def test_queue_that_exists_stays(self, harness: Harness, admin: Admin) -> None:
        """With its messages, however often it is created (design rule of `Admin.create`)."""
        queue = harness.queue()
        harness.send(queue, "a")
        for _ in range(2):
            admin.create(queue)
        harness.expect(queue, "a")

    def test_topic_is_not_created(self, harness: Harness, admin: Admin) -> None:
        """A topic exists as soon as it is used (design rule of `Admin.create`)."""
        with pytest.raises(InvalidDestinationError):
            admin.create(harness.topic())

    def test_created_queue_is_removed(self, harness: Harness, admin: Admin) -> None:
        """It can be created again, and is empty then (design rule of `Admin.remove`)."""
        queue = harness.queue()
        admin.create(queue)
        harness.send(queue, "a")
        admin.remove(queue)
        admin.create(queue)
        harness.expect(queue)

    def test_queue_in_use_is_not_removed_by_the_operator(self, harness: Harness, admin: Admin) -> None:
        """Its consumer would wait forever (design rule of `Admin.remove`)."""
        queue = harness.queue()
        consumer = harness.connect().consumer(queue)
        with pytest.raises(IllegalStateError):
            admin.remove(queue)
        consumer.close()
        admin.remove(queue)

    def test_missing_queue_is_not_removed(self, harness: Harness, admin: Admin) -> None:
        """A mistyped name is an error (design rule of `Admin.remove`)."""
        with pytest.raises(InvalidDestinationError):
            admin.remove(harness.queue())


class TestActivity(Contract):
    """`Admin.activity` (design rule; capabilities counts_consumers and counts_traffic)."""

    needs = ("admin", "counts_consumers")

    @pytest.fixture
    def admin(self, harness: Harness) -> Admin:
        """Return the operator's view of the connection."""
        return admin_of(harness)

    def test_consumers_are_counted(self, harness: Harness, admin: Admin) -> None:
        """All open consumers count, on any connection."""
        queue = harness.queue()
        harness.send(queue, "a")
        assert admin.activity(queue).consumers == 0
        consumers = [harness.connect().consumer(queue) for _ in range(2)]
        assert admin.activity(queue).consumers == 2
        consumers[0].close()
        assert admin.activity(queue).consumers == 1

    def test_unused_queue_has_no_activity(self, harness: Harness, admin: Admin) -> None:
        """Reading the activity does not create the queue."""
        assert not admin.activity(harness.queue()).consumers

    def test_messages_that_came_and_went_are_counted(self, harness: Harness, admin: Admin) -> None:
        """Differences of the counters are the messages in between."""
        harness.require("counts_traffic")
        queue = harness.queue()
        harness.send(queue, "before")
        before = admin.activity(queue)
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, window=0)
        harness.settle(harness.gather(consumer, 2))
        after = admin.activity(queue)
        assert before.added is not None
        assert before.settled is not None
        assert after.added == before.added + 3
        assert after.settled == before.settled + 2


class TestBrowsing(Contract):
    """Browsing (JMS 3.1, section 4.1.6; capability browse)."""

    needs = ("browse",)

    def test_browser_shows_the_queue_in_order(self, harness: Harness) -> None:
        """In the order in which consumers would get the messages."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        assert _browse(harness, queue) == ["a", "b", "c"]

    def test_browsed_message_has_its_size(self, harness: Harness) -> None:
        """`Delivery.size` is also available when browsing."""
        queue = harness.queue()
        harness.send(queue, "a", "b" * 1000)
        chunks = harness.connection.browse(queue)
        small, large = (delivery.size for chunk in chunks for delivery in chunk)
        assert 0 < small < large - 900

    def test_browser_shows_higher_priorities_first(self, harness: Harness) -> None:
        """As consumers would get them."""
        harness.require("priority")
        queue = harness.queue()
        harness.send(queue, *"ab")
        harness.send(queue, "c", priority=9)
        assert _browse(harness, queue) == ["c", "a", "b"]

    def test_browser_shows_long_queues_whole(self, harness: Harness) -> None:
        """However many chunks that takes, each message is shown once."""
        queue = harness.queue()
        sent = [str(n) for n in range(250)]
        harness.send(queue, *sent)
        assert _browse(harness, queue) == sent

    @pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
    def test_limit(self, harness: Harness, limit: int) -> None:
        """No more messages are shown than were asked for."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        assert _browse(harness, queue, limit) == list("abc")[:limit]

    def test_browsing_takes_nothing(self, harness: Harness) -> None:
        """Browsed messages are delivered as if they had not been browsed."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        _browse(harness, queue)
        deliveries = harness.gather(harness.connection.consumer(queue), 2)
        assert [(d.message.body, d.redelivered) for d in deliveries] == [("a", False), ("b", False)]

    def test_browser_of_an_empty_queue_shows_nothing(self, harness: Harness) -> None:
        """It ends, it does not wait."""
        assert _browse(harness, harness.queue()) == []

    def test_held_messages_do_not_hide_others(self, harness: Harness) -> None:
        """JMS leaves open whether held messages are shown; all other messages are shown, in order."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        harness.gather(harness.connection.consumer(queue, window=0), 1)
        assert _browse(harness, queue)[-2:] == ["b", "c"]

    def test_message_that_became_due_is_shown(self, harness: Harness) -> None:
        """A message is shown when its delay is over, even before a consumer has asked for it."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "due", delivery_time=moment(-1))
        harness.send(queue, "not due", delivery_time=moment(3600))
        assert _browse(harness, queue) == ["due"]

    def test_selecting_browser_shows_long_queues_whole(self, harness: Harness) -> None:
        """All chunks are filtered, and sorted by priority and age (JMS 3.1, sections 4.1.6 and 3.8)."""
        harness.require("selectors", "priority")
        queue = harness.queue()
        for priority in (2, 8):
            messages = (TextMessage(f"{priority}.{n}", properties={"n": n}) for n in range(300))
            harness.send_messages(queue, *messages, priority=priority)
        shown = chain.from_iterable(harness.connection.browse(queue, selector="n >= 250"))
        assert bodies(shown) == [f"{priority}.{n}" for priority in (8, 2) for n in range(250, 300)]

    def test_limit_counts_what_is_shown(self, harness: Harness) -> None:
        """Skipped messages do not count (JMS 3.1, section 4.1.6)."""
        harness.require("selectors")
        queue = harness.queue()
        harness.send_messages(queue, *(TextMessage(str(n), properties={"n": n}) for n in range(9)))
        shown = chain.from_iterable(harness.connection.browse(queue, selector="n > 3", limit=2))
        assert bodies(shown) == ["4", "5"]

    def test_invalid_selector_is_refused(self, harness: Harness) -> None:
        """An error when the browser is made, not when it is used (JMS 3.1, section 3.8.1.1)."""
        harness.require("selectors")
        with pytest.raises(InvalidSelectorError):
            next(iter(harness.connection.browse(harness.queue(), selector="n = = 1")), None)

    def test_messages_are_as_a_consumer_would_get_them(self, harness: Harness) -> None:
        """Marked redelivered, and counted as if delivered now. Browsing is not a delivery (JMS 3.1, section 3.5.11)."""
        harness.require("browse_counts")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback()
        for _ in range(2):
            seen = chain.from_iterable(harness.connection.browse(queue))
            assert [(d.count, d.redelivered) for d in seen] == [(2, True), (1, False)]
        assert [d.count for d in harness.gather(consumer, 2)] == [2, 1]

    def test_topics_cannot_be_browsed(self, harness: Harness) -> None:
        """Only queues have browsers (JMS 3.1, section 4.1.6)."""
        with pytest.raises(InvalidDestinationError):
            list(harness.connection.browse(harness.topic()))


class NeedsAdmin(Contract):
    """The base of contract classes about the operator's view of a broker (capability admin)."""

    needs = ("admin",)

    @pytest.fixture
    def admin(self, harness: Harness) -> Admin:
        """Return the operator's view of the connection."""
        return admin_of(harness)


class TestAdmin(NeedsAdmin):
    """`Connection.admin`, where the broker offers it."""

    def test_clock_is_that_of_the_broker(self, admin: Admin) -> None:
        """A time of today, which advances; None where the broker reports none (design rule of `Admin.clock`)."""
        first, second = admin.clock(), admin.clock()
        assert (first is None) is (second is None)
        if first is not None and second is not None:
            assert first <= second
            assert abs(second - moment(0).timestamp()) < _DAY

    def test_depth_tells_ready_held_and_scheduled(self, harness: Harness, admin: Admin) -> None:
        """The three add up to everything in the queue."""
        harness.require("delivery_delay", "exact_credit", "counts_held")
        queue = harness.queue()
        harness.send(queue, *"abc")
        harness.send(queue, "later", delivery_time=moment(3600))
        harness.gather(harness.connection.consumer(queue, window=0), 1)
        harness.send(queue, "due by now", delivery_time=moment(-1))
        assert admin.depth(queue) == Depth(ready=3, held=1, scheduled=1)
        assert admin.depth(queue).total == 5

    def test_depth_of_a_durable_subscription(self, harness: Harness, admin: Admin) -> None:
        """A durable subscription holds messages as a queue does."""
        harness.require("durable")
        subscription = harness.subscription()
        harness.connect(subscription.client_id).consumer(subscription).close()
        harness.send(subscription.topic, *"ab")
        assert admin.depth(subscription).ready == 2

    def test_purge_removes_what_waits(self, harness: Harness, admin: Admin) -> None:
        """Purge returns the number of removed messages; messages held by a consumer stay."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        held = harness.gather(harness.connection.consumer(queue, window=0), 1)
        assert admin.purge(queue) == 2
        harness.settle(held)
        assert admin.depth(queue).total == 0
        assert bodies(held) == ["a"]

    def test_destinations_are_listed(self, harness: Harness, admin: Admin) -> None:
        """Queues that hold messages, and topics that have subscribers."""
        harness.require("lists_destinations")
        queue, topic = harness.queue(), harness.topic()
        harness.send(queue, "a")
        harness.connection.consumer(topic)
        assert {queue, topic} <= set(admin.destinations())

    def test_removed_queue_is_gone_with_its_messages(self, harness: Harness, admin: Admin) -> None:
        """`Connection.remove` of a queue; the name can be used for a new queue."""
        queue = harness.queue()
        harness.send(queue, "a")
        harness.connection.remove(queue)
        assert _is_not_listed(harness, admin, queue)
        harness.expect(queue)

    def test_missing_listing_is_refused(self, harness: Harness, admin: Admin) -> None:
        """An empty list would be misleading (design rule of `Admin.destinations`)."""
        harness.require_lack("lists_destinations")
        with pytest.raises(NotSupportedError):
            admin.destinations()


def _is_not_listed(harness: Harness, admin: Admin, what: Destination) -> bool:
    """Return False if the broker lists a destination; one that lists none is asked for its depth instead."""
    if harness.connection.capabilities.lists_destinations:
        return what not in admin.destinations()
    return admin.depth(what).total == 0


def _browse(harness: Harness, queue: Destination, limit: int | None = None) -> list[str]:
    return [seen.message.body for seen in chain.from_iterable(harness.connection.browse(queue, limit=limit))]


class TestRemoving(NeedsAdmin):
    """`Connection.remove` and `Admin.purge` (left to administrators by JMS 3.1, section 4.1.3; capability admin)."""

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
        assert _is_not_listed(harness, admin, queue)

    def test_what_is_not_there_cannot_be_removed(self, harness: Harness) -> None:
        """An unused queue, and a topic, which holds no messages (design rule of `Connection.remove`)."""
        for what in (harness.queue(), harness.topic()):
            with pytest.raises(InvalidDestinationError):
                harness.connection.remove(what)

    def test_unit_outlives_the_removed_queue(self, harness: Harness) -> None:
        """The unit keeps its deliveries; a rollback has no queue to return them to (JMS 3.1, section 8.8)."""
        harness.require("ends_at_close")
        queue, target = harness.queue(), harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        committed, rolled_back = (harness.holding([d]) for d in harness.gather(consumer, 2))
        harness.record(committed, target, "done")
        consumer.close()
        harness.connection.remove(queue)
        committed.commit()
        rolled_back.rollback()
        harness.expect(target, "done")
        harness.expect(queue)

    def test_removed_queue_forgets_duplicate_ids(self, harness: Harness) -> None:
        """The name stands for a new queue, so no send is a duplicate (Artemis removes the cache with the address)."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, TextMessage("old", properties={"_AMQ_DUPL_ID": "1"}))
        harness.connection.remove(queue)
        harness.send_messages(queue, TextMessage("new", properties={"_AMQ_DUPL_ID": "1"}))
        harness.expect(queue, "new")

    def test_removing_a_queue_leaves_its_neighbours(self, harness: Harness) -> None:
        """Another queue, and the topic of the same name (design rule: the kind is part of the identity)."""
        harness.require("durable")
        subscription, queue = harness.subscription(), harness.queue()
        namesake = type(queue)(subscription.topic.name)
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription)
        for to in (queue, namesake, subscription.topic):
            harness.send(to, "a")
        harness.connection.remove(namesake)
        connection.close()
        harness.expect(queue, "a")
        harness.expect(subscription, "a")
        harness.expect(namesake)

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
        """Reading a depth does not create a queue, and an empty purge is not an error (design rule of `Admin`)."""
        queue = harness.queue()
        assert admin.depth(queue) == Depth(0, 0, 0)
        assert admin.purge(queue) == 0
        assert _is_not_listed(harness, admin, queue)

    def test_depth_of_a_topic_is_that_of_its_subscriptions(self, harness: Harness, admin: Admin) -> None:
        """A topic does not hold messages, so it has no depth (JMS 3.1, section 4.2.2)."""
        with pytest.raises(InvalidDestinationError):
            admin.depth(harness.topic())

    def test_depth_of_a_shared_subscription(self, harness: Harness, admin: Admin) -> None:
        """Volatile or not, it is found by its name (JMS 3.1, sections 8.3.2 and 8.3.4)."""
        harness.require("shared", "durable", "exact_credit", "counts_held")
        topic = harness.topic()
        for volatile in (True, False):
            subscription = Subscription(topic, topic.name, shared=True, volatile=volatile)
            consumer = harness.connection.consumer(subscription, window=0)
            harness.send(topic, *"ab")
            harness.gather(consumer, 1)
            assert admin.depth(subscription) == Depth(ready=1, held=1, scheduled=0)
