"""Parameters by name and by type, replies, and bodies that do not fit, in every mode."""

import queue

import pytest
from pydantic import BaseModel

from jmsjca import Message, Outcome, Queue, Session, TextMessage
from tests.unit.inbound import PATIENCE, send, waiting

MODES = {
    "serial": {},
    "sync": {"concurrency_mode": "sync", "endpoint_pool_max_size": 1},
    "cc": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1},
    "batch": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "batch_size": 2},
    "held": {"concurrency_mode": "sync", "endpoint_pool_max_size": 1, "hold_until_ack": True},
    "held batch": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "batch_size": 2, "hold_until_ack": True},
}
EVERY_MODE = pytest.mark.parametrize("spec", MODES.values(), ids=MODES.keys())


class Order(BaseModel):
    item: str


@EVERY_MODE
def test_what_is_asked_for_is_given_and_what_is_returned_is_sent(adapter, recorder, spec):
    got: queue.Queue[object] = queue.Queue()

    @adapter.listener("q", **spec)
    def handler(*, order: Order | None, message: Message, priority, outbox: Session):
        message.acknowledge()
        if order is not None:
            got.put((order.item, message.body, priority))
            outbox.create_producer(Queue("out")).send(TextMessage(order.item))
        return "reply"

    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage('{"item": "tea"}', reply_to=Queue("replies")), priority=7)
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
        assert got.get_nowait() == ("tea", '{"item": "tea"}', 7)
        assert waiting(adapter, "out") == [("tea", 0)]
        assert waiting(adapter, "replies") == [("reply", 0)]


@EVERY_MODE
def test_a_body_that_does_not_fit_is_a_failure_of_the_handler(adapter, recorder, spec):
    """Rolled back, remembered, and moved by the redelivery handling with what was wrong."""

    @adapter.listener("q", redelivery_handling="2:move(queue:dead)", **spec)
    def handler(order: Order) -> None:
        raise AssertionError("not to be called")

    errors: queue.Queue[str | None] = queue.Queue()

    @adapter.listener("dead")
    def reading(message: Message) -> None:
        errors.put(message.get_string_property("JMS_Sun_JMSJCA_ExceptionMessage"))

    send(adapter, '{"item": 5}')
    with adapter:
        assert "'order': item: Input should be a valid string" in str(errors.get(timeout=PATIENCE))
        for _ in range(2):
            recorder.await_outcome(Outcome.ROLLED_BACK)
