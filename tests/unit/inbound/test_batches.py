"""Batches: their content, the wait for the next message, failures, and the EndOfBatch call."""

import queue
import threading
from collections.abc import Sequence

import pytest
from poisoning import poison_embedded
from pydantic import BaseModel

from jmsjca import Message, Outcome, Queue, TextMessage
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms
from tests.unit.inbound.listeners import PATIENCE, send

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


@pytest.mark.parametrize("mode", MODES)
def test_its_messages_are_one_unit(connected, recorder, mode):
    link, seen = connected(), []
    put(link, *"abc")
    performance = Performance(endpoint_of(lambda message: seen.append(message.body), batches(mode), recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
    performance.stop()
    assert seen == ["a", "b", "c", None]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["raises", "rolls back"])
def test_a_failure_of_its_last_message_rolls_all_of_it_back(connected, recorder, mode, how):
    link, failing, seen = connected(), ["c"], []

    def handler(message):
        seen.append(message.body)
        if message.body in failing:
            failing.clear()
            message.set_rollback_only()
            if how == "raises":
                raise ValueError("no")

    put(link, *"abc")
    performance = Performance(endpoint_of(handler, batches(mode), recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 3)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
    performance.stop()
    assert sorted(filter(None, seen)) == sorted("abc" * 2)
    assert depth(link).total == 0


def test_in_mode_cc_it_is_what_the_provider_has(connected, recorder):
    """The worker waits for no more messages."""
    link = connected()
    put(link, "a", "b")
    performance = Performance(endpoint_of(lambda message: None, batches("cc"), recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 2)
    performance.stop()


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_ends_it_and_its_end_is_told(connected, recorder, mode):
    """The manual allows the end to be missing then."""
    link, seen, begun = connected(), [], threading.Event()

    def handler(message):
        seen.append(message.body)
        assert begun.wait(PATIENCE)
        performance.dispatcher.stop()

    put(link, *"abc")
    performance = Performance(endpoint_of(handler, batches(mode), recorder), link)
    begun.set()
    assert performance.ends() is None
    assert seen == ["a", None]
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 1)
    assert depth(link).ready == 2


class CountingHandler:
    """A handler with state."""

    def __init__(self):
        self.calls = 0
        self.numbers = queue.Queue()

    def __call__(self, message):
        self.calls += 1
        self.numbers.put(self.calls)


@pytest.mark.parametrize("mode", MODES)
def test_one_handler_object_gets_all_messages(connected, recorder, mode):
    link, handler = connected(), CountingHandler()
    put(link, *"abcdef")
    performance = Performance(endpoint_of(handler, batches(mode), recorder), link)
    assert [handler.numbers.get(timeout=PATIENCE) for _ in range(8)] == list(range(1, 9))
    performance.stop()


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


JSON = '{"item": "tea"}'


class Order(BaseModel):
    item: str


@pytest.fixture
def got():
    return queue.Queue()


@pytest.fixture
def deliver(adapter, recorder, got):
    """Deliver a batch of two, see it committed, and give what the handler noted and how many calls were counted."""

    def deliver(handler, **spec):
        spec = {"concurrency_mode": "sync", "endpoint_pool_max_size": 1, "batch_size": 2} | spec
        adapter.listener("q", **spec)(handler)
        send(adapter, JSON, JSON)
        with adapter:
            assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 2)
        return list(got.queue), adapter.activations[0].stats.n_messages

    return deliver


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_with_a_message_parameter_and_bodies_are_none_then(deliver, got, mode):
    def handler(*, order: Order, message: Message, body, session, headers, message_id, properties):
        got.put(
            (order, message.end_of_batch, body, message_id is None, dict(properties), headers["message_id"] is None)
        )

    order = (Order(item="tea"), False, JSON, False, {}, False)
    assert deliver(handler, concurrency_mode=mode) == ([order, order, (None, True, None, True, {}, True)], 3)


def only_untyped(got):
    def handler(anything):
        got.put(anything.end_of_batch)

    return handler


def only_by_kind(got):
    def handler(text: TextMessage):
        got.put(text.end_of_batch)

    return handler


@pytest.mark.parametrize("make", [only_untyped, only_by_kind])
def test_whoever_gets_messages_gets_it(deliver, got, make):
    assert deliver(make(got)) == ([False, False, True], 3)


def only_a_model(got):
    def handler(order: Order):
        got.put(order.item)

    return handler


def only_a_body(got):
    def handler(body):
        got.put("tea")

    return handler


def only_headers(got):
    def handler(priority, session):
        got.put("tea")

    return handler


@pytest.mark.parametrize("make", [only_a_model, only_a_body, only_headers])
@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_without_one_there_is_no_call(deliver, got, make, mode):
    assert deliver(make(got), concurrency_mode=mode) == (["tea", "tea"], 2)


def test_a_held_batch_without_an_end_of_batch_settles_with_its_messages(deliver, got, adapter):
    """The unit is settled when the messages are: there is no end of the batch to acknowledge."""

    def handler(order: Order, message_id):
        adapter.activations[0].settle(message_id, "JBXCommit")
        got.put(order.item)

    assert deliver(handler, hold_until_ack=True) == (["tea", "tea"], 2)
