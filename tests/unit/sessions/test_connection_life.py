"""What a connection tells of itself, and of its end (JMS 3.1, sections 6.1.6 and 6.1.7)."""

import logging
import queue
import threading

import pytest

import jmsjca
from jmsjca.errors import ConnectionLostError
from jmsjca.outbound.connection import ExceptionNotifier
from tests.unit.outbound import PATIENCE

LOST = ConnectionLostError("gone")


def test_metadata(connection):
    """The version of JMS, the provider's name and version, the JMSX properties (6.1.6)."""
    metadata = connection.metadata
    assert (metadata.protocol, metadata.provider_name, metadata.jms_version) == ("embedded", "jmsjca", "3.1")
    assert metadata.provider_version == jmsjca.__version__
    assert metadata.jmsx_property_names == ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")


def test_metadata_of_a_broker_that_does_not_count(jms_connection_factory, lacking):
    lacking("delivery_count")
    with jms_connection_factory.create_connection() as connection:
        assert "JMSXDeliveryCount" not in connection.metadata.jmsx_property_names


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
    connection._notifier.notify(LOST)


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
