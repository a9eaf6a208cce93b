"""What holds between processes that use one broker at the same time."""

from __future__ import annotations

import pytest

from jmsjca.destinations import TemporaryQueue
from jmsjca.errors import InvalidDestinationError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.configuring import admin_of, configure
from jmsjca.testing.contract.harness import Contract, Harness, bodies
from jmsjca.testing.contract.processes import another

__all__ = ["TestNeighbours"]

_ANSWER = """
connection = connected()
tell("ready")
[request] = gather(connection.consumer(Queue(names[0])), 1)
send(connection, f"answer to {request.message.body}", request.message.reply_to)
"""
_CONFIGURE = """
from jmsjca.config import DestinationSettings
connected().admin().configure(Queue(names[0]), DestinationSettings(max_deliveries=1, dead_letter=Queue(names[1])))
"""
_FAIL = """
connection = connected()
unit = connection.unit()
unit.take(gather(connection.consumer(Queue(names[0])), 1))
unit.rollback()
"""
_TAKE_ONE = """
connection = connected()
consumer = connection.consumer(Queue(names[0]), window=0)
tell(gather(consumer, 1)[0].message.body)
"""
_SUBSCRIBE = """
from jmsjca.errors import IllegalStateError
connection = connected()
try:
    connection.consumer(Subscription(Topic(names[0]), names[1], shared=True, volatile=True))
except IllegalStateError:
    tell("refused")
"""


class TestNeighbours(Contract):
    """Two processes (capability shared_between_processes)."""

    @pytest.fixture(autouse=True)
    def _needs_processes(self, harness: Harness) -> None:
        harness.require("shared_between_processes")

    def test_reply_comes_from_another_process(self, harness: Harness) -> None:
        """The asker's temporary queue is reached from everywhere (JMS 3.1, sections 2.16 and 6.2.2)."""
        harness.require("temporary")
        requests, made = harness.queue(), harness.connection.temporary("queue")
        replies = harness.connection.consumer(made)
        harness.send(requests, "question", reply_to=made)
        with another(harness, _ANSWER, requests.name):
            assert bodies(harness.gather(replies, 1)) == ["answer to question"]

    def test_temporary_queue_of_another_process_is_not_consumed(self, harness: Harness) -> None:
        """Only its own connection does that, and deletes it (JMS 3.1, section 6.2.2)."""
        harness.require("temporary")
        with another(harness, "connection = connected()\ntell(connection.temporary('queue').name)") as other:
            made = TemporaryQueue(other.told[0])
            with pytest.raises(InvalidDestinationError):
                harness.connection.consumer(made)
            with pytest.raises(InvalidDestinationError):
                harness.connection.remove(made)
            harness.send(made, "reply")

    def test_settings_of_another_process_hold_here(self, harness: Harness) -> None:
        """They are the broker's (Artemis' address-settings), and outlive who set them."""
        harness.require("configurable")
        queue, dead = harness.queue(), harness.queue()
        with another(harness, _CONFIGURE, queue.name, dead.name):
            pass
        assert admin_of(harness).settings(queue).dead_letter == dead
        harness.send(queue, "a")
        harness.holding(harness.gather(harness.connection.consumer(queue), 1)).rollback()
        harness.expect(dead, "a")

    def test_dead_letter_of_another_process_wakes_who_waits_here(self, harness: Harness) -> None:
        """It is a message that arrives (design rule: prompt wake-up)."""
        harness.require("configurable")
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        harness.send(queue, "a")
        waiting = harness.in_background(harness.gather, harness.connect().consumer(dead), 1)
        with another(harness, _FAIL, queue.name):
            assert bodies(waiting.result()) == ["a"]

    def test_groups_are_spread_over_processes(self, harness: Harness) -> None:
        """A group is one consumer's, wherever that is (Artemis' message groups)."""
        harness.require("groups_apart", "exact_credit")
        queue = harness.queue()
        for body in ("a1", "b1", "a2", "b2"):
            harness.send_messages(queue, TextMessage(body, properties={"JMSXGroupID": body[0]}))
        with another(harness, _TAKE_ONE, queue.name) as other:
            assert other.told == ["a1"]
            consumer = harness.connection.consumer(queue, window=0)
            assert bodies(harness.gather(consumer, 2)) == ["b1", "b2"]
            assert harness.nothing_comes(consumer, queue)

    def test_subscription_is_refused_as_within_one_process(self, harness: Harness) -> None:
        """Shared with who names the same topic, refused to others (JMS 3.1, section 8.3.2)."""
        harness.require("shared")
        topic, other_topic = harness.topic(), harness.topic()
        with (
            another(harness, _SUBSCRIBE, topic.name, topic.name) as first,
            another(harness, _SUBSCRIBE, topic.name, topic.name) as second,
            another(harness, _SUBSCRIBE, other_topic.name, topic.name) as third,
        ):
            assert (first.told, second.told, third.told) == ([], [], ["refused"])
