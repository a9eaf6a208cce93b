"""Connections: metadata, exception listener, start and stop (JMS 3.1, sections 6.1.4 to 6.1.7)."""

import logging
import queue
import threading
from pathlib import Path

import pytest

import jmsjca
from jmsjca import TextMessage
from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.outbound.connection import ExceptionNotifier
from tests.unit.inbound.deliveries import until
from tests.unit.outbound.queues import PATIENCE, QUEUE, left, put, shown, take

LOST = ConnectionLostError("gone")


def test_metadata(connection):
    """The version of JMS, the provider's name and version, the JMSX properties (6.1.6)."""
    metadata = connection.metadata
    assert (metadata.protocol, metadata.provider_name, metadata.jms_version) == ("embedded", "jmsjca", "3.1")
    assert metadata.provider_version == jmsjca.__version__
    assert metadata.jmsx_property_names == ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")


def test_exception_listener_hears_of_the_loss(connection):
    """It is called with an exception that describes the problem, on a thread that may close the connection (6.1.7)."""
    told = queue.Queue()

    def listener(error):
        connection.close()
        told.put((error, threading.current_thread() is threading.main_thread()))

    assert connection.exception_listener is None
    connection.exception_listener = listener
    connection._notifier.notify(LOST)  # what the provider was given to call
    assert told.get(timeout=PATIENCE) == (LOST, False)


@pytest.mark.parametrize("jms_broker_url", ["file"], indirect=True)
def test_loss_that_message_listeners_find_is_reported_once(connection, jms_broker_url):
    """No provider reports it where there is no network, as when the file of a broker is removed (6.1.7)."""
    told = queue.Queue()
    connection.exception_listener = told.put
    session = connection.create_session()
    consumers = [session.create_consumer(jmsjca.Queue(name)) for name in "ab"]
    for consumer in consumers:
        consumer.set_message_listener(print)
    Path(jms_broker_url.removeprefix("embedded://")).unlink()
    error = told.get(timeout=PATIENCE)
    assert isinstance(error, ConnectionLostError)
    assert connection.failure is error
    until(lambda: [consumer.message_listener for consumer in consumers] == [None, None])
    assert told.empty()


def test_provider_is_given_the_exception_notifier(monkeypatch):
    """And rings it when the connection breaks."""
    given = []

    def connect(settings, lost):
        given.append(lost)
        raise ConnectionRefusedError

    monkeypatch.setattr("jmsjca.outbound.connection.connect", connect)
    with pytest.raises(ConnectionRefusedError):
        jmsjca.ConnectionFactory("embedded://x").create_connection()
    assert [type(lost.__self__) for lost in given] == [ExceptionNotifier]


def test_nobody_listens(connection):
    connection.exception_listener = None
    assert connection.failure is None
    connection._notifier.notify_loss(LOST)
    assert connection.failure is LOST


@pytest.mark.parametrize("timeout", [0, None])
def test_a_receive_of_a_stopped_connection_reports_its_loss(connection, receiving, timeout):
    """Neither as the end of its timeout, nor by no end at all; also while it waits for the start."""
    with connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        connection.stop()
        waiting = receiving(consumer, None, stopped=True)
        connection._notifier.notify_loss(LOST)
        with pytest.raises(ConnectionLostError, match="gone"):
            waiting.result()
        with pytest.raises(ConnectionLostError, match="gone"):
            consumer.receive(timeout)


def test_listener_that_fails(connection, caplog):
    """It is logged; nothing else changes."""
    told = queue.Queue()

    class Watching(logging.Handler):
        def emit(self, record):
            told.put(record.getMessage())

    def failing(error):
        raise ValueError("mine")

    handler = Watching()
    logging.getLogger("jmsjca.outbound").addHandler(handler)
    try:
        connection.exception_listener = failing
        connection._notifier.notify(LOST)
        assert "exception listener failed" in told.get(timeout=PATIENCE)
    finally:
        logging.getLogger("jmsjca.outbound").removeHandler(handler)


def test_listener_is_called_once_at_a_time(connection):
    """A connection serializes execution of its ExceptionListener (6.1.7)."""
    inside, most, done = [], [], queue.Queue()
    both_rang = threading.Event()

    def listener(error):
        inside.append(error)
        assert both_rang.wait(PATIENCE)
        most.append(len(inside))
        inside.pop()
        done.put(error)

    connection.exception_listener = listener
    for _ in range(2):
        connection._notifier.notify(LOST)
    both_rang.set()
    for _ in range(2):
        done.get(timeout=PATIENCE)
    assert most == [1, 1]


def test_stopped_connection_sends(connection):
    """Starting and stopping is about receiving only (6.1.4)."""
    connection.stop()
    put(connection, "a")
    assert shown(connection) == ["a"]


def test_waiting_receive_gets_nothing_once_stopped(connection, other, receiving):
    """A receive that asked the broker before the stop does not return with a message after it (6.1.5)."""
    call = receiving(connection.create_session().create_consumer(QUEUE))
    connection.stop()
    put(other, "a")
    assert shown(other) == ["a"]  # it is free for others meanwhile
    connection.start()
    assert call.result().body == "a"


def test_time_of_a_receive_runs_on(connection, receiving):
    """The receive timers of a stopped connection continue to advance (6.1.5)."""
    put(connection, "a")
    connection.stop()
    consumer = connection.create_session().create_consumer(QUEUE)
    assert receiving(consumer, 0.01, stopped=True).result() is None
    connection.start()
    assert take(consumer, 1) == ["a"]


def test_what_was_taken_ahead_waits_for_the_start(connection):
    put(connection, *"abc")
    consumer = connection.create_session().create_consumer(QUEUE)
    assert take(consumer, 1) == ["a"]
    connection.stop()
    assert consumer.receive_no_wait() is None
    connection.start()
    assert left(consumer) == [("b", 1), ("c", 1)]


def test_stop_and_start_leave_no_trace(connection):
    """The next receive is not cut short, not even one that does not wait."""
    put(connection, *"ab")
    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    for body in "ab":
        connection.stop()
        connection.stop()
        connection.start()
        connection.start()
        assert consumer.receive(0).body == body


def test_stop_waits_for_a_message_that_is_being_handed_over(connection, in_thread, monkeypatch):
    """When it returns, no receive will return with a message any more (6.1.5)."""
    put(connection, "a")
    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    take_it, pause, pausing, stops, order = session._mode.take, consumer._receiver.pause, threading.Event(), [], []

    def handing_over(delivery, source):
        stops.append(in_thread(lambda: (connection.stop(), order.append("stopped"))))
        assert pausing.wait(PATIENCE)
        order.append("handed over")
        return take_it(delivery, source)

    monkeypatch.setattr(session._mode, "take", handing_over)
    monkeypatch.setattr(consumer._receiver, "pause", lambda: (pausing.set(), pause()))
    assert consumer.receive(PATIENCE).body == "a"
    stops[0].result()
    assert order == ["handed over", "stopped"]


def test_closed_connection_is_neither_started_nor_stopped(connection):
    """Its use is an error, but for closing it again (6.1.8)."""
    connection.close()
    connection.close()
    for use in (connection.start, connection.stop, connection.create_session, connection.__enter__):
        with pytest.raises(IllegalStateError, match="closed"):
            use()


def test_closing_goes_on_when_something_fails(connection, jms_connection_factory, monkeypatch):
    """Every session is closed, and the link, which gives back what is held."""
    sessions = [connection.create_session(transacted=True) for _ in range(3)]
    for session in sessions:
        session.create_producer(QUEUE).send(TextMessage("never"))

    def failing():
        raise ValueError("planted")

    monkeypatch.setattr(sessions[1]._mode, "close", failing)
    with pytest.raises(ValueError, match="planted"):
        connection.close()
    assert [session.closed for session in sessions] == [True, True, True]
    with pytest.raises(IllegalStateError):
        connection._provider_connection.unit()
    with jms_connection_factory.create_connection() as after:
        assert shown(after) == []
