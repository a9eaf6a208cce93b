"""Who is called at the end of a batch, and with what."""

import queue

import pytest
from pydantic import BaseModel

from jmsjca import Message, Outcome, TextMessage
from tests.unit.inbound import PATIENCE, send

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


def test_held_messages_need_no_end_that_nobody_saw(deliver, got, adapter):
    """The unit is settled when the messages are: there is no end of the batch to acknowledge."""

    def handler(order: Order, message_id):
        adapter.activations[0].settle(message_id, "JBXCommit")
        got.put(order.item)

    assert deliver(handler, hold_until_ack=True) == (["tea", "tea"], 2)
