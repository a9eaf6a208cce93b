"""Cases for several processes on one broker: side by side, killed at work, and what a killed one leaves."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from jmsjca.destinations import Destination, Queue, Subscription, TemporaryQueue
from jmsjca.errors import IllegalStateError, InvalidClientIDError, InvalidDestinationError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.destinations import admin_of, configure
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = ["ChildProcess", "TestConcurrentProcesses", "TestCrashes", "TestKilledProcesses", "child_process"]

_BEGIN = """
import sys
from jmsjca.destinations import Queue, Subscription, TemporaryQueue, Topic
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.messages import TextMessage
url, names = sys.argv[1], sys.argv[2:]
def connected(client_id=None):
    return connect(ConnectionSettings(url, client_id=client_id))
def gather(consumer, count):
    got = []
    while len(got) < count:
        got += consumer.receive(count - len(got), None)
    return got
def send(connection, body, to):
    unit = connection.unit(atomic=connection.capabilities.atomic)
    unit.send(TextMessage(body), to)
    unit.commit()
def tell(words):
    print(words, flush=True)
"""
_END = """
tell("done")
sys.stdin.read()
"""


class ChildProcess:
    """A child process.

    Args:
        child: The process.
        told: Lines that it printed.
    """

    def __init__(self, child: subprocess.Popen[str], told: list[str]) -> None:
        self._child = child
        self.told = told

    def kill(self) -> None:
        """Kill it at once: SIGKILL, or the closest equivalent."""
        self._child.kill()
        self._child.wait(PATIENCE)


@contextmanager
def child_process(harness: Harness, script: str, *names: str) -> Generator[ChildProcess]:
    """Run a script in a child process up to its end; there it waits with everything open.

    Args:
        harness: The harness of the broker.
        script: The script. Its globals are ``names``, ``connected``, ``gather``, ``send`` and ``tell``.
        names: The names passed to the script.

    Yields:
        The process at the end of its script; it ends with the context.
    """
    command = [sys.executable, "-c", _BEGIN + script + _END, harness.url, *names]
    with subprocess.Popen(  # noqa: S603  # our own interpreter and script
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        told = harness.in_background(_told, child).result(PATIENCE)
        yield ChildProcess(child, told)


def _told(child: subprocess.Popen[str]) -> list[str]:
    """Yield the lines that a process prints before its script ends."""
    assert child.stdout is not None
    told: list[str] = []
    for line in child.stdout:
        if line == "done\n":
            return told
        told.append(line.strip())
    raise AssertionError(f"The other process ended with {child.wait()} before it was done.")


class NeedsProcesses(Contract):
    """The base of contract classes that run other processes (capability shared_between_processes)."""

    needs = ("shared_between_processes",)


# Takes three messages: one in a unit that commits, one in a unit that stays open and sends, one in none.
_WORK = """
from jmsjca.spi import Order
connection = connected()
consumer, atomic = connection.consumer(Queue(names[0]), order=Order.ANY), connection.capabilities.atomic
held = gather(consumer, 3)
done, unit = connection.unit(atomic=atomic), connection.unit(atomic=atomic)
done.take(held[:1])
done.commit()
unit.take(held[1:2])
consumer.hand_over(held[1:2])
unit.send(TextMessage("never"), Queue(names[1]))
"""


class TestCrashes(NeedsProcesses):
    """SIGKILL to a separate process (capability shared_between_processes)."""

    def test_killed_process_leaves_what_it_had_not_committed(self, harness: Harness) -> None:
        """Committed work is done; held messages are redelivered; pending sends are not sent."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, *"abcd")
        _work_and_die(harness, source, target)
        harness.expect(source, "b", "c", "d", ordered=False)  # "d" may come before the death is noticed
        harness.expect(target)

    def test_message_of_a_killed_process_is_marked_redelivered(self, harness: Harness) -> None:
        """A handler may have seen it (JMS 3.1, section 3.4.7; capability counts_lost)."""
        harness.require("counts_lost")
        source = harness.queue()
        harness.send(source, *"abcd")
        _work_and_die(harness, source, harness.queue())
        came = {d.message.body: d for d in harness.gather(harness.connection.consumer(source), 3)}
        assert came["b"].redelivered
        assert came["b"].count in {2, None}


def _work_and_die(harness: Harness, source: Queue, target: Queue) -> None:
    with child_process(harness, _WORK, source.name, target.name) as other:
        other.kill()


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
consumer.hand_over(held)
"""
_HAND_OVER_SECOND = _CONSUME.replace("hand_over(held)", "hand_over(held[1:2])")


class TestKilledProcesses(NeedsProcesses):
    """SIGKILL to a separate process (capability shared_between_processes)."""

    def test_client_id_is_free(self, harness: Harness) -> None:
        """A dead client does not use it (JMS 3.1, section 6.1.2)."""
        harness.require("client_ids")
        client = f"{harness.subscription().client_id}"
        with child_process(harness, _WITH_CLIENT_ID, client) as other:
            with pytest.raises(InvalidClientIDError):
                harness.connect(client)
            other.kill()
            _wait_until_free(harness, client)

    def test_durable_subscription_has_no_consumer(self, harness: Harness) -> None:
        """The next one gets what waited (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "client_ids", "subscription_lock")
        subscription = harness.subscription()
        with child_process(harness, _DURABLE, f"{subscription.client_id}", subscription.topic.name) as other:
            harness.send(subscription.topic, "a")
            other.kill()
            _wait_until_free(harness, f"{subscription.client_id}")
            harness.expect(subscription, "a")

    def test_durable_subscription_can_be_removed(self, harness: Harness) -> None:
        """Only an active consumer keeps an operator from that (JMS 3.1, section 8.3.3)."""
        harness.require("durable", "subscription_lock", "configurable")  # others remove their own client's only
        subscription = harness.subscription()
        with child_process(harness, _DURABLE, f"{subscription.client_id}", subscription.topic.name) as other:
            with pytest.raises(IllegalStateError):
                harness.connection.remove(subscription)
            other.kill()
            harness.connection.remove(subscription)

    def test_shared_subscription_ends_with_its_last_consumer(self, harness: Harness) -> None:
        """It ends although the killed consumer did not close (JMS 3.1, section 8.3.2)."""
        harness.require("shared", "volatile_reuse")
        topic = harness.topic()
        with child_process(harness, _SHARED, topic.name) as other:
            harness.send(topic, "undelivered")
            other.kill()
            shared = Subscription(topic, topic.name, shared=True, volatile=True)
            assert harness.receives_nothing(harness.connection.consumer(shared), shared)

    def test_shared_subscription_goes_on_for_the_others(self, harness: Harness) -> None:
        """Messages held by the dead process are redelivered to them (JMS 3.1, section 8.3.2)."""
        harness.require("shared", "exact_credit")
        topic = harness.topic()
        shared = Subscription(topic, topic.name, shared=True, volatile=True)
        consumer = harness.connection.consumer(shared, window=0)
        harness.send(topic, *"ab")
        with child_process(harness, f"{_SHARED}gather(consumer, 1)", topic.name) as other:
            assert bodies(harness.gather(consumer, 1)) == ["b"]
            other.kill()
            assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_temporary_queue_is_gone(self, harness: Harness) -> None:
        """Its connection is (JMS 3.1, section 6.2.2)."""
        harness.require("temporary_ends")
        with child_process(harness, "connection = connected()\ntell(connection.temporary('queue').name)") as other:
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
        with child_process(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, window=0)
            assert harness.receives_nothing(consumer, queue)
            other.kill()
            again = harness.gather(consumer, 3)
            assert [(d.message.body, d.redelivered) for d in again] == [("a", True), ("b", False), ("c", False)]

    def test_selecting_consumer_finds_what_it_held(self, harness: Harness) -> None:
        """Although it had passed that place (JMS 3.1, sections 3.8 and 4.1.2)."""
        harness.require("selectors", "exact_credit")
        queue = harness.queue()
        harness.send_messages(queue, *(TextMessage(body, properties={"n": 1}) for body in "ab"))
        with child_process(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
            assert bodies(harness.gather(consumer, 1)) == ["b"]
            other.kill()
            assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_next_exclusive_consumer_takes_over(self, harness: Harness) -> None:
        """The waiting consumer need not call anything (Artemis' exclusive queues)."""
        harness.require("configurable", "exact_credit")
        queue = harness.queue()
        configure(harness, queue, exclusive=True)
        harness.send(queue, *"ab")
        with child_process(harness, _CONSUME, queue.name, "1") as other:
            consumer = harness.connection.consumer(queue, window=0)
            assert bodies(consumer.receive(1, 0)) == []
            other.kill()
            assert bodies(harness.gather(consumer, 2)) == ["a", "b"]

    def test_its_death_counts_as_a_failure(self, harness: Harness) -> None:
        """Poison that kills its consumer must not do so forever (Artemis' max-delivery-attempts)."""
        harness.require("configurable", "exact_credit", "counts_lost")
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=2, dead_letter=dead)
        harness.send(queue, "poison")
        for _ in range(2):
            with child_process(harness, _CONSUME, queue.name, "1") as other:
                other.kill()
        harness.expect(dead, "poison")  # although its queue has no consumer
        harness.expect(queue)

    def test_only_what_it_handed_over_counts(self, harness: Harness) -> None:
        """No handler has seen the others (capability counts_handovers)."""
        harness.require("counts_handovers")
        queue = harness.queue()
        harness.send(queue, *"abc")
        with child_process(harness, _HAND_OVER_SECOND, queue.name, "3") as other:
            other.kill()
        again = harness.gather(harness.connection.consumer(queue), 3)
        assert [(d.message.body, d.count) for d in again] == [("a", 1), ("b", 2), ("c", 1)]

    def test_what_it_did_not_hand_over_is_no_failure(self, harness: Harness) -> None:
        """The broker dead-letters no message that no handler has seen (capability counts_handovers)."""
        harness.require("configurable", "counts_handovers")
        queue, dead = harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        harness.send(queue, *"abc")
        with child_process(harness, _HAND_OVER_SECOND, queue.name, "3") as other:
            other.kill()
        harness.expect(dead, "b")
        harness.expect(queue, "a", "c")


def _wait_until_free(harness: Harness, client: str) -> None:
    """Wait until the broker notices the death of a process."""
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
    """Send until the broker notices the death of a process."""
    begin = time.monotonic()
    while time.monotonic() < begin + PATIENCE:
        if harness.connection.capabilities.checks:
            harness.connection.check(made)
        harness.send(made, "late")


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


class TestConcurrentProcesses(NeedsProcesses):
    """Two processes (capability shared_between_processes)."""

    def test_reply_comes_from_another_process(self, harness: Harness) -> None:
        """The asker's temporary queue is reached from everywhere (JMS 3.1, sections 2.16 and 6.2.2)."""
        harness.require("temporary")
        requests, made = harness.queue(), harness.connection.temporary("queue")
        replies = harness.connection.consumer(made)
        harness.send(requests, "question", reply_to=made)
        with child_process(harness, _ANSWER, requests.name):
            assert bodies(harness.gather(replies, 1)) == ["answer to question"]

    def test_temporary_queue_of_another_process_is_not_consumed(self, harness: Harness) -> None:
        """Only its own connection does that, and deletes it (JMS 3.1, section 6.2.2)."""
        harness.require("temporary")
        with child_process(harness, "connection = connected()\ntell(connection.temporary('queue').name)") as other:
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
        with child_process(harness, _CONFIGURE, queue.name, dead.name):
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
        with child_process(harness, _FAIL, queue.name):
            assert bodies(waiting.result()) == ["a"]

    def test_groups_are_spread_over_processes(self, harness: Harness) -> None:
        """A group belongs to one consumer, in any process (Artemis' message groups)."""
        harness.require("groups_apart", "exact_credit")
        queue = harness.queue()
        for body in ("a1", "b1", "a2", "b2"):
            harness.send_messages(queue, TextMessage(body, properties={"JMSXGroupID": body[0]}))
        with child_process(harness, _TAKE_ONE, queue.name) as other:
            assert other.told == ["a1"]
            consumer = harness.connection.consumer(queue, window=0)
            assert bodies(harness.gather(consumer, 2)) == ["b1", "b2"]
            assert harness.receives_nothing(consumer, queue)

    def test_subscription_is_refused_as_within_one_process(self, harness: Harness) -> None:
        """Shared with consumers that name the same topic, refused to others (JMS 3.1, section 8.3.2)."""
        harness.require("shared")
        topic, other_topic = harness.topic(), harness.topic()
        with (
            child_process(harness, _SUBSCRIBE, topic.name, topic.name) as first,
            child_process(harness, _SUBSCRIBE, topic.name, topic.name) as second,
            child_process(harness, _SUBSCRIBE, other_topic.name, topic.name) as third,
        ):
            assert (first.told, second.told, third.told) == ([], [], ["refused"])
