"""Batches: what is in one, how long it waits for its next message, and what becomes of it when its handler fails."""

import queue
import threading
from collections.abc import Sequence

import pytest
from poisoning import poison_embedded

from jmsjca import Message, Outcome, Queue, TextMessage
from tests.unit.delivering.stage import Performance, depth, endpoint_of, put, terms
from tests.unit.inbound import PATIENCE

MODES = ["sync", "cc"]
QUEUE = Queue("q")


def batches(mode="sync", **changes):
    return terms(mode, **{"batch_size": 3, "pool_size": 1} | changes)


@pytest.mark.parametrize("mode", MODES)
def test_its_end_is_not_told_if_the_handler_saw_nothing_of_it(connected, jms_broker_url, recorder, mode):
    link, seen = connected(), []
    poison_embedded(jms_broker_url, QUEUE)
    endpoint = endpoint_of(seen.append, batches(mode), recorder)
    performance = Performance(endpoint, link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 1)
    performance.stop()
    assert seen == []


class Asked:
    """A consumer that notes for how long it is asked to wait."""

    def __init__(self, real, seconds):
        self._real, self._seconds = real, seconds

    def __getattr__(self, name):
        return getattr(self._real, name)

    def receive(self, limit, timeout):
        self._seconds.append(timeout)
        return self._real.receive(limit, timeout)


def test_a_receiver_waits_100_milliseconds_for_the_next_message(connected, recorder):
    link, seconds = connected(), []
    put(link, "a")
    consume = link.consumer
    link.consumer = lambda *args, **kwargs: Asked(consume(*args, **kwargs), seconds)
    performance = Performance(endpoint_of(lambda message: None, batches(receive_timeout=7.0), recorder), link)
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert seconds[:2] == [7.0, 0.1]


@pytest.mark.parametrize("mode", MODES)
def test_what_was_in_a_failed_batch_is_not_added_to_another_one(connected, recorder, mode):
    """Also if the other one begins with a message that is new."""
    link, failures, got, begun = connected(), [ValueError("no")], queue.Queue(), threading.Event()
    new = TextMessage("new")
    new.message_id, new.priority = "ID:new", 9

    def handler(messages: Sequence[Message]):
        got.put([message.body for message in messages])
        if failures:
            assert begun.wait(PATIENCE)
            performance.dispatcher.stop()
            raise failures.pop()

    put(link, "a", "b")
    endpoint = endpoint_of(handler, batches(mode, split_failed_batches=True), recorder)
    performance = Performance(endpoint, link)
    begun.set()
    assert got.get(timeout=PATIENCE) == ["a", "b"]
    performance.stop()
    unit = link.unit()
    unit.send(new, QUEUE)
    unit.commit()
    performance = Performance(endpoint, link)
    assert [got.get(timeout=PATIENCE) for _ in range(3)] == [["new"], ["a"], ["b"]]
    performance.stop()
    assert depth(link).total == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_batch_that_fails_waits_for_no_acknowledgement(connected, recorder, mode):
    link, failures = connected(), [ValueError("no")]

    def handler(messages: Sequence[Message]):
        if failures:
            raise failures.pop()
        for message in messages:
            message.acknowledge()

    put(link, *"abc")
    performance = Performance(endpoint_of(handler, batches(mode, hold_until_ack=True), recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 3)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
    performance.stop()
    assert depth(link).total == 0
