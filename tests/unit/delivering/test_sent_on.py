"""A handler that sends the very message on that it got: its delivery is still known by the id that it came with."""

import queue
import threading

import pytest

from jmsjca import ActivationSpec, Message, Outcome, Queue, Session, TextMessage
from tests.unit.inbound import PATIENCE, Recorder, send

OUT = Queue("out")


def send_on(message: Message, session: Session):
    session.create_producer(OUT).send(message)


@pytest.fixture
def listen(adapter):
    def listen(handler, **spec):
        activation = adapter.activate(
            ActivationSpec(**{"destination": "q", "endpoint_pool_max_size": 1} | spec), handler
        )
        activation.start()
        return activation

    return listen


@pytest.fixture
def moved(listen):
    """What comes to the queue that messages are moved to."""
    moved = queue.Queue()
    listen(moved.put, destination="dlq")
    return lambda: moved.get(timeout=PATIENCE)


def test_what_is_remembered_of_it_is_found_again(adapter, listen, moved):
    seen = []

    def handler(message: Message, session: Session):
        send_on(message, session)
        seen.append((message.redelivery_count, message.user_rollback_data.get("tries")))
        message.user_rollback_data["tries"] = f"{len(seen)}"
        raise KeyError("no such order")

    listen(handler, redelivery_handling="2:move(queue:dlq)")
    send(adapter, "a")
    told = moved().properties
    assert seen == [(0, None), (1, "1")]
    assert told["JMS_Sun_JMSJCA_UserRollbackData.tries"] == "2"
    assert told["JMS_Sun_JMSJCA_ExceptionMessage"] == "'no such order'"


def test_it_does_not_wait_for_ever_for_a_handler_that_was_left_behind(adapter, listen):
    got, go_on = queue.Queue(), threading.Event()

    def handler(message: Message, session: Session):
        got.put(message.redelivered)
        if not message.redelivered:
            assert go_on.wait(PATIENCE)
            send_on(message, session)

    activation = listen(handler, concurrency_mode="cc")
    send(adapter, "a")
    assert got.get(timeout=PATIENCE) is False
    assert not activation.stop(timeout=0)
    activation.start()
    go_on.set()
    assert got.get(timeout=PATIENCE) is True


def test_the_good_messages_of_a_failed_batch_are_not_moved_with_the_bad_one(adapter, recorder: Recorder, listen, moved):
    def handler(message: Message, session: Session):
        body = message.body
        if not message.end_of_batch:
            send_on(message, session)
        if body == "bad":
            raise KeyError

    spec = {"concurrency_mode": "sync", "batch_size": 3, "split_failed_batches": True}
    send(adapter, "a", "b", "bad")
    listen(handler, redelivery_handling="2:move(queue:dlq)", **spec)
    assert moved().body == "bad"
    outcomes = [recorder.outcomes.get(timeout=PATIENCE) for _ in range(5)]
    assert outcomes.count((Outcome.COMMITTED, 1)) == 3  # a, b, and what was moved


def test_a_reply_names_the_request_that_came(adapter, listen):
    replies = queue.Queue()

    def handler(message: Message, session: Session):
        send_on(message, session)
        return "reply"

    listen(replies.put, destination="replies")
    listen(handler)
    request = TextMessage("a", reply_to=Queue("replies"))
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(request)
    assert replies.get(timeout=PATIENCE).correlation_id == request.message_id
