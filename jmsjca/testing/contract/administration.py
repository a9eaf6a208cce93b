"""Cases for the operator's changes and counters: queues are created and removed, consumers and messages counted."""

from __future__ import annotations

import pytest

from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.spi import Admin
from jmsjca.testing.contract.destination_settings import admin_of
from jmsjca.testing.contract.harness import Contract, Harness

__all__ = ["TestActivity", "TestCreating"]


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
        """Its consumer would wait for ever (design rule of `Admin.remove`)."""
        queue = harness.queue()
        consumer = harness.connect().consumer(queue)
        with pytest.raises(IllegalStateError):
            admin.remove(queue)
        consumer.close()
        admin.remove(queue)

    def test_missing_queue_is_not_removed(self, harness: Harness, admin: Admin) -> None:
        """A name that was mistyped is an error (design rule of `Admin.remove`)."""
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
        """Those of all connections, while they are open."""
        queue = harness.queue()
        harness.send(queue, "a")
        assert admin.activity(queue).consumers == 0
        consumers = [harness.connect().consumer(queue) for _ in range(2)]
        assert admin.activity(queue).consumers == 2
        consumers[0].close()
        assert admin.activity(queue).consumers == 1

    def test_unused_queue_has_no_activity(self, harness: Harness, admin: Admin) -> None:
        """Asking makes nothing."""
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
