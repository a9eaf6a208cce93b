"""Asynchronous sends: order, completion listeners and futures, and what waits for them (JMS 3.1, section 7.3)."""

import threading
from concurrent.futures import CancelledError

import pytest

from jmsjca import ConnectionFactory, Hooks, Limits, Queue, Requestor, TextMessage
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
    TransactionInDoubtError,
)
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.session import session_for_delivery
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound.queues import PATIENCE, QUEUE, shown


class Recorder:
    """A completion listener that notes what it is told."""

    def __init__(self):
        self.told, self.threads = [], set()

    def on_completion(self, message):
        self.note(message, None)

    def on_exception(self, message, error):
        self.note(message, error)

    def note(self, message, error):
        self.told.append((message.body, error))
        self.threads.add(threading.current_thread())


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


@pytest.fixture
def producer(session):
    return session.create_producer(QUEUE)


@pytest.fixture
def delayed(monkeypatch):
    """Makes the outcome of every asynchronous send wait until `release` is set."""
    release, real = threading.Event(), EmbeddedUnit.start_commit

    def start_commit(self):
        wait = real(self)

        def wait_for_release():
            assert release.wait(PATIENCE)
            wait()

        return wait_for_release

    monkeypatch.setattr(EmbeddedUnit, "start_commit", start_commit)
    yield release
    release.set()


@pytest.fixture
def failing(monkeypatch):
    """Makes the outcome of every asynchronous send this error."""

    def fail(error):
        def fail_later():
            raise error

        monkeypatch.setattr(EmbeddedUnit, "start_commit", lambda _: fail_later)

    return fail


def test_future_is_done_with_the_message_when_it_is_in_the_queue(producer, other):
    message = TextMessage("a")
    assert producer.send_async(message).result(PATIENCE) is message
    assert shown(other) == ["a"]


def test_headers_are_set_when_the_call_returns(producer, delayed):
    message = TextMessage("a")
    producer.send_async(message, priority=7, time_to_live=60)
    assert message.message_id.startswith("ID:")
    assert (message.destination, message.priority) == (QUEUE, 7)
    assert message.expiration is not None


def test_message_may_be_changed_and_sent_again_at_once(producer, session, other):
    message = TextMessage()
    for body in "abc":
        message.body = body
        producer.send_async(message)
    session.close()
    assert shown(other) == ["a", "b", "c"]


def test_many_messages_stay_in_order_with_synchronous_ones_among_them(producer, other):
    for number in range(300):
        (producer.send if number % 7 == 0 else producer.send_async)(TextMessage(str(number)))
    producer.close()
    assert shown(other) == [str(number) for number in range(300)]


def test_listeners_are_called_in_order_on_one_thread_of_the_session(session):
    recorder, queues = Recorder(), [Queue("a"), Queue("b")]
    producer = session.create_producer()
    for number in range(50):
        producer.send(TextMessage(str(number)), queues[number % 2], on_completion=recorder)
    session.close()
    assert recorder.told == [(str(number), None) for number in range(50)]
    (thread,) = recorder.threads
    assert thread is not threading.current_thread()


def test_function_is_called_with_the_message_and_no_error(producer):
    recorder = Recorder()
    producer.send(TextMessage("a"), on_completion=recorder.note)
    producer.close()
    assert recorder.told == [("a", None)]


def test_listener_is_called_before_the_future_is_done(producer):
    recorder = Recorder()
    producer.send_async(TextMessage("a"), on_completion=recorder).result(PATIENCE)
    assert recorder.told == [("a", None)]


@pytest.mark.parametrize("error", [ConnectionLostError("cut"), TransactionInDoubtError("cut")])
def test_send_without_an_answer_is_in_doubt(producer, failing, error):
    recorder = Recorder()
    failing(error)
    future = producer.send_async(TextMessage("a"), on_completion=recorder)
    with pytest.raises(TransactionInDoubtError, match=r"in doubt.*cut") as raised:
        future.result(PATIENCE)
    assert raised.value.__cause__ is error
    assert recorder.told == [("a", raised.value)]


def test_refused_send_fails_alone(session, producer, failing, other, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedUnit, "start_commit", lambda _: lambda: (_ for _ in ()).throw(JMSError("refused")))
        refused = producer.send_async(TextMessage("a"))
    accepted = producer.send_async(TextMessage("b"))
    session.close()
    with pytest.raises(JMSError, match="refused"):
        refused.result(PATIENCE)
    assert accepted.result(PATIENCE).body == "b"
    assert shown(other) == ["b"]


def test_message_that_cannot_be_sent_is_refused_by_the_call(session, producer):
    recorder = Recorder()
    with pytest.raises(MessageFormatError):
        producer.send_async(TextMessage("a"), priority=11, on_completion=recorder)
    with pytest.raises(JMSError):
        session.create_producer().send(TextMessage("a"), on_completion=recorder)
    session.close()
    assert recorder.told == []


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_exception_of_a_listener_is_logged_and_changes_nothing(producer, session, caplog, error):
    def fail(message, _):
        raise error

    recorder = Recorder()
    future = producer.send_async(TextMessage("a"), on_completion=fail)
    producer.send(TextMessage("b"), on_completion=recorder)
    session.close()
    assert future.result(PATIENCE).body == "a"
    assert recorder.told == [("b", None)]
    assert any("completion listener" in record.getMessage() and record.exc_info for record in caplog.records)


def test_future_cannot_be_cancelled(producer, delayed):
    future = producer.send_async(TextMessage("a"))
    assert not future.cancel()
    delayed.set()
    try:
        assert future.result(PATIENCE).body == "a"
    except CancelledError:
        pytest.fail("It was cancelled.")


@pytest.mark.parametrize("end", ["producer", "session", "connection"])
def test_close_waits_for_all_listeners(connection, delayed, in_thread, end):
    session = connection.create_session()
    producer, recorder = session.create_producer(QUEUE), Recorder()
    producer.send(TextMessage("a"), on_completion=recorder)
    closing = in_thread({"producer": producer, "session": session, "connection": connection}[end].close)
    assert not closing.ended()
    assert recorder.told == []
    delayed.set()
    closing.result()
    assert recorder.told == [("a", None)]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_transaction_waits_for_all_listeners(connection, in_thread, other, end):
    entered, release = threading.Event(), threading.Event()

    def listener(*_):
        entered.set()
        assert release.wait(PATIENCE)

    with connection.create_session(transacted=True) as session:
        session.create_producer(QUEUE).send(TextMessage("a"), on_completion=listener)
        ending = in_thread(getattr(session, end))
        assert entered.wait(PATIENCE)
        assert not ending.ended()
        assert shown(other) == []
        release.set()
        ending.result()
    assert shown(other) == (["a"] if end == "commit" else [])


def test_listener_cannot_call_what_waits_for_it(connection):
    session = connection.create_session(transacted=True)
    producer, refused = session.create_producer(QUEUE), []

    def listener(*_):
        for call in (session.commit, session.rollback, session.close, connection.close, producer.close):
            with pytest.raises(IllegalStateError):
                call()
            refused.append(call)

    producer.send_async(TextMessage("a"), on_completion=listener).result(PATIENCE)
    session.commit()
    assert len(refused) == 5
    assert not session.closed


def test_context_cannot_be_closed_by_its_listener(context, other):
    refused = threading.Event()

    def listener(*_):
        with pytest.raises(IllegalStateError, match="completion listener"):
            context.close()
        refused.set()

    context.create_producer(on_completion=listener).send(QUEUE, "a")
    assert refused.wait(PATIENCE)
    context.create_producer().send(QUEUE, "b")
    assert shown(other) == ["a", "b"]


def test_listener_may_send(session, producer, other):
    def send_another(message, _):
        producer.send(TextMessage(message.body + "!"))

    producer.send_async(TextMessage("a"), on_completion=send_another).result(PATIENCE)
    session.close()
    assert shown(other) == ["a", "a!"]


def test_number_in_flight_is_bounded(jms_broker_url, delayed, in_thread):
    limits = Limits(sends_in_flight=4)
    with ConnectionFactory(jms_broker_url, limits=limits).create_connection() as connection:
        producer = connection.create_session().create_producer(QUEUE)
        futures = [producer.send_async(TextMessage(str(number))) for number in range(4)]
        fifth = in_thread(lambda: producer.send_async(TextMessage("4")))
        assert not fifth.ended()
        delayed.set()
        futures.append(fifth.result())
        assert [future.result(PATIENCE).body for future in futures] == list("01234")


def test_listener_may_send_beyond_the_bound(jms_broker_url, other):
    limits = Limits(sends_in_flight=1)
    with ConnectionFactory(jms_broker_url, limits=limits).create_connection() as connection:
        session = connection.create_session()
        producer = session.create_producer(QUEUE)

        def send_another(*_):
            producer.send_async(TextMessage("b"))

        producer.send_async(TextMessage("a"), on_completion=send_another).result(PATIENCE)
        session.close()
    assert shown(other) == ["a", "b"]


def test_simplified_producer_sends_asynchronously(context, other):
    recorder = Recorder()
    producer = context.create_producer(on_completion=recorder, properties={"n": 1})
    producer.send(QUEUE, "a").send(QUEUE, "b")
    assert producer.send_async(QUEUE, b"c").result(PATIENCE).body == b"c"
    assert recorder.told == [("a", None), ("b", None), (b"c", None)]
    assert shown(other) == ["a", "b", b"c"]


def test_session_of_a_delivery_refuses_them(connection, other):
    provider = connection._provider_connection
    unit = UnitOfWork.begin(provider)
    session = session_for_delivery(ConnectionContext.for_listener(provider, Limits()), unit)
    with pytest.raises(NotSupportedError, match=r"7\.3\.5"):
        session.create_producer(QUEUE).send_async(TextMessage("a"))
    unit.commit()
    assert shown(other) == []


def test_requestors_producer_sends_asynchronously(session, other):
    with Requestor(session, QUEUE) as requestor:
        requestor.producer.send_async(TextMessage("a")).result(PATIENCE)
    assert shown(other) == ["a"]


class _Hook(Hooks):
    """Sends, drops or fails, as the message says."""

    def around_send(self, message, destination, call_next):
        if message.body != "dropped":
            message.properties["seen"] = True
            call_next()
        if message.body == "failed":
            raise ZeroDivisionError


def test_hooks_surround_the_beginning_of_the_send(jms_broker_url, other):
    factory = ConnectionFactory(jms_broker_url, hooks=[_Hook()])
    with factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        assert producer.send_async(TextMessage("a")).result(PATIENCE).get_object_property("seen")
        assert producer.send_async(TextMessage("dropped")).result(PATIENCE)
        with pytest.raises(JMSError, match="hook"):
            producer.send_async(TextMessage("failed"))
    assert shown(other) == ["a", "failed"]
