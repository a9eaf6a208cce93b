"""The return value of a handler is sent to reply_to in the unit of the request."""

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from jmsjca import DeliveryMode, Hooks, Outcome, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import InvalidDestinationError
from jmsjca.hooks import use_hooks
from tests.unit.inbound.listeners import Recorder

REQUESTS, REPLIES = Queue("requests"), Queue("replies")


class Answer(BaseModel):
    value: int


@dataclass
class Point:
    x: int


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def ask(jms_broker_url, recorder):
    """Send a request to a handler, wait for what became of it, and give the replies."""

    def ask(handler, *expected, transaction="local", map_messages=False, **headers):
        adapter = ResourceAdapter(jms_broker_url, hooks=[recorder], map_messages=map_messages)
        adapter.listener("requests", transaction=transaction)(handler)
        with adapter, adapter.connection_factory().create_connection() as connection:
            session = connection.create_session()
            request = TextMessage("question", **headers)
            session.create_producer(REQUESTS).send(request, priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
            for outcome in expected or [Outcome.COMMITTED]:
                recorder.await_outcome(outcome)
            return request, list(session.create_browser(REPLIES))

    return ask


@pytest.mark.parametrize(
    ("result", "body"),
    [
        ("text", "text"),
        (b"bytes", b"bytes"),
        ({"a": 1}, '{"a":1}'),
        ([1, "two"], '[1,"two"]'),
        (5, "5"),
        (False, "false"),
        (Answer(value=5), '{"value":5}'),
        (Point(1), '{"x":1}'),
        (TextMessage("own", properties={"a": 1}), "own"),
    ],
)
def test_what_is_returned_is_sent(ask, result, body):
    _, [reply] = ask(lambda message: result, reply_to=REPLIES)
    assert reply.body == body


def test_mapping_is_a_map_message_if_the_adapter_says_so(ask):
    _, [reply] = ask(lambda message: {"a": 1}, map_messages=True, reply_to=REPLIES)
    assert reply.body == {"a": 1}


def test_reply_is_tied_to_its_request(ask):
    request, [reply] = ask(lambda message: "answer", reply_to=REPLIES)
    assert reply.correlation_id == request.message_id
    assert (reply.priority, reply.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)


def test_correlation_id_of_the_request_is_kept(ask):
    _, [reply] = ask(lambda message: "answer", reply_to=REPLIES, correlation_id="mine")
    assert reply.correlation_id == "mine"


def test_none_is_no_reply(ask):
    assert ask(lambda message: None, reply_to=REPLIES)[1] == []


def test_nobody_asked_for_a_reply(ask):
    assert ask(lambda message: "answer")[1] == []


def test_a_settlement_is_no_reply(ask):
    assert ask(lambda message: message.acknowledge(), reply_to=REPLIES)[1] == []


@pytest.mark.parametrize("transaction", ["local", "none"])
def test_what_rolls_back_sends_no_reply(ask, transaction):
    def handler(message):
        if not message.redelivered:
            message.set_rollback_only()
        return f"try {message.delivery_count}"

    _, replies = ask(handler, Outcome.ROLLED_BACK, Outcome.COMMITTED, transaction=transaction, reply_to=REPLIES)
    assert [reply.body for reply in replies] == ["try 2"]


async def later(message):
    return "later"


def test_reply_of_a_coroutine(ask):
    _, [reply] = ask(later, reply_to=REPLIES)
    assert reply.body == "later"


def test_result_that_no_message_is_made_of_rolls_back(ask):
    """It fails as a handler that raises fails: the request comes again."""
    results = [object(), "second try"]
    _, [reply] = ask(lambda message: results.pop(0), Outcome.ROLLED_BACK, Outcome.COMMITTED, reply_to=REPLIES)
    assert reply.body == "second try"


@pytest.mark.parametrize("transaction", ["local", "none"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_late_reply_to_a_temporary_destination_is_dropped(jms_adapter, caplog, kind, transaction):
    """The requester has deleted it. The work of the handler is committed all the same."""
    recorder, calls = Recorder(), []
    adapter = ResourceAdapter(jms_adapter.connection_url, hooks=[recorder])

    def handler(message, session):
        calls.append(message.body)
        session.create_producer(REPLIES).send("work")
        return "late"

    adapter.listener("requests", transaction=transaction)(handler)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        gone = session.create_temporary_queue() if kind == "queue" else session.create_temporary_topic()
        session.create_producer(REQUESTS).send(TextMessage("question", reply_to=gone))
        gone.delete()
        with adapter:
            recorder.await_outcome(Outcome.COMMITTED)
        assert calls == ["question"]
        assert [message.body for message in session.create_browser(REPLIES)] == ["work"]
    record = next(record for record in caplog.records if getattr(record, "event", None) == "reply_dropped")
    assert "is dropped, as its temporary destination" in record.getMessage()
    assert record.message_id in record.getMessage()


def test_reply_to_an_invalid_destination_that_is_not_temporary_fails(ask):
    """Such a handler would lose all of its replies."""
    errors = [InvalidDestinationError("There is no such destination.")]

    class Refusing(Hooks):
        def around_send(self, message, destination, call_next):
            if errors:
                raise errors.pop()
            call_next()

    handler = use_hooks(Refusing())(lambda message: "answer")
    _, [reply] = ask(handler, Outcome.ROLLED_BACK, Outcome.COMMITTED, reply_to=REPLIES)
    assert reply.body == "answer"


class Later:
    def __await__(self):
        yield


async def asynchronous_generator():
    yield


async def returns_a_coroutine(message):
    return later(message)


@pytest.mark.parametrize(
    "handler",
    [
        lambda message: (each for each in "ab"),
        lambda message: Later(),
        lambda message: asynchronous_generator(),
        returns_a_coroutine,
    ],
    ids=["generator", "awaitable", "asynchronous generator", "coroutine of a coroutine"],
)
@pytest.mark.filterwarnings("ignore:coroutine 'later' was never awaited:RuntimeWarning")
def test_result_whose_work_is_not_done_rolls_back(jms_adapter, caplog, handler):
    """The message would be lost: nothing runs what the handler has returned."""
    recorder = Recorder()
    adapter = ResourceAdapter(jms_adapter.connection_url, hooks=[recorder])
    adapter.listener("requests", redelivery_handling="1:move(queue:replies)")(handler)
    with adapter:
        adapter.send("requests", "question")
        recorder.await_outcome(Outcome.ROLLED_BACK)
    assert "whose work is not done" in caplog.text
