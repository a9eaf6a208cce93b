"""Producers and consumers of a session, and starting and stopping their connection."""

import threading

import pytest

from jmsjca import BytesMessage, Limits, Message, TextMessage, Topic
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError, MessageFormatError
from jmsjca.outbound import ConnectionFactory
from tests.unit.outbound import QUEUE, put, shown

PATIENCE = 30


def test_producer_sets_headers(connection, session):
    message = TextMessage("a", correlation_id="c", properties={"p": 1})
    producer = session.create_producer(QUEUE)
    producer.send(message, priority=7, time_to_live=60)
    first = message.message_id
    producer.send(message)
    session.commit()
    assert first != message.message_id
    one, two = session.create_browser(QUEUE)
    assert (one.message_id, one.priority, one.correlation_id, one.destination) == (first, 7, "c", QUEUE)
    assert (one.expiration - one.timestamp).total_seconds() == 60
    assert (two.message_id, two.priority, two.expiration) == (message.message_id, 4, None)


@pytest.mark.parametrize("wrong", [{"priority": -1}, {"priority": 10}, {"time_to_live": -1}, {"delivery_delay": -0.1}])
def test_producer_refuses_what_makes_no_sense(session, wrong):
    with pytest.raises(MessageFormatError):
        session.create_producer(QUEUE).send(TextMessage("a"), **wrong)


def test_destination_is_named_once(session):
    with pytest.raises(InvalidDestinationError, match="once"):
        session.create_producer().send(TextMessage("a"))
    with pytest.raises(InvalidDestinationError, match="once"):
        session.create_producer(QUEUE).send(TextMessage("a"), QUEUE)
    session.create_producer().send(TextMessage("a"), QUEUE)


def test_messages_are_made(session):
    assert type(session.create_message(properties={"a": 1})) is Message
    assert type(session.create_text_message("a")) is TextMessage
    assert type(session.create_bytes_message(b"a")) is BytesMessage


def test_durable_consumer_needs_a_client_id(session):
    with pytest.raises(InvalidClientIDError, match="client_id"):
        session.create_durable_consumer(Topic("t"), "s")


def test_durable_consumer(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    topic = Topic("t")
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_durable_consumer(topic, "s").close()
        session.create_producer(topic).send(TextMessage("kept"))
        with session.create_durable_consumer(topic, "s") as consumer:
            assert consumer.receive(0).body == "kept"
        session.unsubscribe(topic, "s")
        with pytest.raises(InvalidDestinationError):
            session.unsubscribe(topic, "s")


def test_message_over_the_limit_is_refused(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, limits=Limits(message_bytes=10))
    with factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        producer.send(TextMessage("x" * 10))
        with pytest.raises(Exception, match="over the limit of 10 bytes"):
            producer.send(TextMessage("x" * 11))
        assert shown(connection) == ["x" * 10]


def test_stopped_connection_does_not_deliver(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    put(connection, "a")
    consumer = connection.create_session().create_consumer(QUEUE)
    assert consumer.receive(0) is None
    connection.start()
    connection.stop()
    assert consumer.receive(0.001) is None
    connection.start()
    assert consumer.receive(0).body == "a"
    connection.close()


def test_starting_lets_a_waiting_receive_go_on(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    put(connection, "a")
    consumer = connection.create_session().create_consumer(QUEUE)
    results: list[Message | None] = []
    waiter = threading.Thread(target=lambda: results.append(consumer.receive(PATIENCE)))
    waiter.start()
    connection.start()
    waiter.join(PATIENCE)
    assert results[0].body == "a"
    connection.close()


def test_closing_the_connection_ends_a_waiting_receive(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    connection.start()
    consumer = connection.create_session().create_consumer(QUEUE)
    results: list[Message | None] = []
    waiter = threading.Thread(target=lambda: results.append(consumer.receive()), daemon=True)
    waiter.start()
    connection.close()
    waiter.join(PATIENCE)
    assert results in ([None], [])
    assert not waiter.is_alive()
