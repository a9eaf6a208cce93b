"""What a killed process leaves: what lived as long as it is gone, and what it kept from others is free."""

from __future__ import annotations

import time

import pytest

from jmsjca.destinations import Destination, Subscription, TemporaryQueue
from jmsjca.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    TransactionRolledBackError,
)
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.configuring import configure
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies
from jmsjca.testing.contract.processes import another

__all__ = ["TestDeaths"]

_WITH_CLIENT_ID = "connection = connected(names[0])"
_DURABLE = """
connection = connected(names[0])
consumer = connection.consumer(Subscription(Topic(names[1]), "s", names[0]))
"""
_SHARED = """
connection = connected()
consumer = connection.consumer(Subscription(Topic(names[0]), names[0], shared=True, volatile=True), window=0)
"""
_CONSUME = """
connection = connected()
consumer = connection.consumer(Queue(names[0]), window=0)
held = gather(consumer, int(names[1]))
unit = connection.unit(atomic=connection.capabilities.atomic)
unit.take(held)
"""


class TestDeaths(Contract):
    """SIGKILL, to a process of its own (capability shared_between_processes)."""

    @pytest.fixture(autouse=True)
    def _needs_processes(self, harness: Harness) -> None:
        harness.require("shared_between_processes")

    def test_client_id_is_free(self, harness: Harness) -> None:
        """No client uses it any more (JMS 3.1, section 6.1.2)."""
        harness.require("client_ids")
        client = f"{harness.subscription().client_id}"
        with another(harness, _WITH_CLIENT_ID, client) as other:
            with pytest.raises(InvalidClientIDError):
                harness.connect(client)
            other.kill()
            _wait_until_free(harness, client)

    def test_durable_subscription_has_no_consumer(self, harness: Harness) -> None:
        """The next one gets what waited (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "client_ids", "subscription_lock")
        subscription = harness.subscription()
        with another(harness, _DURABLE, f"{subscription.client_id}", subscription.topic.name) as other:
            harness.send(subscription.topic, "a")
            other.kill()
            _wait_until_free(harness, f"{subscription.client_id}")
            harness.expect(subscription, "a")

    def test_durable_subscription_can_be_removed(self, harness: Harness) -> None:
        """Only an active consumer keeps an operator from that (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "subscription_lock", "configurable")  # others remove their own client's only
        subscription = harness.subscription()
        with another(harness, _DURABLE, f"{subscription.client_id}", subscription.topic.name) as other:
            with pytest.raises(IllegalStateError):
                harness.connection.remove(subscription)
            other.kill()
            harness.connection.remove(subscription)

    def test_shared_subscription_ends_with_its_last_consumer(self, harness: Harness) -> None:
        """That this one did not close makes no difference (JMS 3.1, section 8.3.2)."""
        harness.require("shared", "volatile_reuse")
        topic = harness.topic()
        with another(harness, _SHARED, topic.name) as other:
            harness.send(topic, "undelivered")
            other.kill()
            shared = Subscription(topic, topic.name, shared=True, volatile=True)
            assert harness.nothing_comes(harness.connection.consumer(shared), shared)

    def test_shared_subscription_goes_on_for_the_others(self, harness: Harness) -> None:
        """What the dead one held comes to them (JMS 3.1, section 8.3.2)."""
        harness.require("shared", "exact_credit")
        topic = harness.topic()
        shared = Subscription(topic, topic.name, shared=True, volatile=True)
        consumer = harness.connection.consumer(shared, window=0)
        harness.send(topic, *"ab")
        with another(harness, f"{_SHARED}gather(consumer, 1)", topic.name) as other:
            assert bodies(harness.gather(consumer, 1)) == ["b"]
            other.kill()
            assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_temporary_queue_is_gone(self, harness: Harness) -> None:
        """Its connection is (JMS 3.1, section 6.2.2)."""
        harness.require("temporary_ends")
        with another(harness, "connection = connected()\ntell(connection.temporary('queue').name)") as other:
            made = TemporaryQueue(other.told[0])
            harness.send(made, "in time")
            other.kill()
            with pytest.raises((InvalidDestinationError, TransactionRolledBackError)):
                _send_until_refused(harness, made)

    def test_groups_go_to_others(self, harness: Harness) -> None:
        """In order and counted (JMS 3.1, section 3.5.11; Artemis' message groups)."""
        harness.require("groups", "exact_credit", "counts_lost")
        queue = harness.queue()
        harness.send_messages(queue, *(TextMessage(body, properties={"JMSXGroupID": "g"}) for body in "abc"))
        with another(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, window=0)
            assert harness.nothing_comes(consumer, queue)
            other.kill()
            again = harness.gather(consumer, 3)
            assert [(d.message.body, d.redelivered) for d in again] == [("a", True), ("b", False), ("c", False)]

    def test_selecting_consumer_finds_what_it_held(self, harness: Harness) -> None:
        """Although it had passed that place (JMS 3.1, sections 3.8 and 4.1.2)."""
        harness.require("selectors", "exact_credit")
        queue = harness.queue()
        harness.send_messages(queue, *(TextMessage(body, properties={"n": 1}) for body in "ab"))
        with another(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
            assert bodies(harness.gather(consumer, 1)) == ["b"]
            other.kill()
            assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_next_exclusive_consumer_takes_over(self, harness: Harness) -> None:
        """Who stands by need not do anything (Artemis' exclusive queues)."""
        harness.require("configurable", "exact_credit")
        queue = harness.queue()
        configure(harness, queue, exclusive=True)
        harness.send(queue, *"ab")
        with another(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, window=0)
            assert bodies(consumer.receive(1, 0)) == []
            other.kill()
            assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_its_death_counts_as_a_failure(self, harness: Harness) -> None:
        """Poison that kills its consumer must not kill for ever (Artemis' max-delivery-attempts)."""
        harness.require("configurable", "exact_credit", "counts_lost")
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=2, dead_letter=dead)
        harness.send(queue, "poison")
        for _ in range(2):
            with another(harness, _CONSUME, queue.name, "1") as other:
                other.kill()
        harness.expect(dead, "poison")  # though nobody asks for the queue that it was in
        harness.expect(queue)


def _wait_until_free(harness: Harness, client: str) -> None:
    """A broker hears of a death a moment later."""
    begin = time.monotonic()
    while True:
        try:
            harness.connect(client).close()
        except InvalidClientIDError:
            if time.monotonic() > begin + PATIENCE:
                raise
        else:
            return


def _send_until_refused(harness: Harness, made: Destination) -> None:
    """A broker hears of a death a moment later."""
    begin = time.monotonic()
    while time.monotonic() < begin + PATIENCE:
        if harness.connection.capabilities.checks:
            harness.connection.check(made)
        harness.send(made, "late")
