"""Temporary destinations (JMS 3.1, sections 6.2.2, 4.1.5 and 4.2.7)."""

import copy
import pickle

import pytest

from jmsjca import Queue, TemporaryQueue, TemporaryTopic, TextMessage, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from tests.unit.outbound.queues import QUEUE, left, put, take


@pytest.fixture
def session(client):
    """Of a connection that could have durable subscriptions."""
    with client.create_session() as session:
        yield session


@pytest.fixture(params=["queue", "topic"])
def made(request, session):
    return getattr(session, f"create_temporary_{request.param}")()


def test_each_temporary_destination_has_a_unique_name(session):
    """Destinations that are system-generated uniquely for their connection (6.2.2)."""
    queues = {session.create_temporary_queue() for _ in range(3)}
    topics = {session.create_temporary_topic() for _ in range(3)}
    assert [type(d) for d in (*queues, *topics)] == [TemporaryQueue] * 3 + [TemporaryTopic] * 3
    assert len(queues | topics) == 6


def test_is_a_queue_or_a_topic(session):
    assert isinstance(session.create_temporary_queue(), Queue)
    assert isinstance(session.create_temporary_topic(), Topic)


def test_other_sessions_of_the_connection_consume_from_it(client, session, made):
    """Its scope is the entire connection (6.2.2)."""
    with client.create_session() as another:
        consumer = another.create_consumer(made)
        session.create_producer(made).send(TextMessage("a"))
        assert take(consumer, 1) == ["a"]


def test_it_outlives_its_session(client, made, session):
    """Its lifetime is that of the connection (6.2.2)."""
    session.close()
    with client.create_session() as another:
        consumer = another.create_consumer(made)
        another.create_producer(made).send(TextMessage("a"))
        assert take(consumer, 1) == ["a"]


def test_other_connections_do_not_consume_from_it(other, made):
    """Only the connection that created it may (4.1.5)."""
    with other.create_session() as session, pytest.raises(InvalidDestinationError):
        session.create_consumer(made)


def test_reply_finds_the_way(other, session, made):
    """It is used as JMSReplyTo: whoever gets the message sends there (6.2.2)."""
    replies = session.create_consumer(made)
    session.create_producer(QUEUE).send(TextMessage("question", reply_to=made))
    with other.create_session() as answering:
        request = answering.create_consumer(QUEUE).receive(0)
        assert (request.reply_to, type(request.reply_to)) == (made, type(made))
        answering.create_producer().send(TextMessage("answer"), request.reply_to)
    assert take(replies, 1) == ["answer"]


def test_it_goes_with_its_connection(client, other, made):
    """It will be automatically deleted when its connection is closed (6.2.2)."""
    client.close()
    with other.create_session() as session, pytest.raises(InvalidDestinationError):
        session.create_producer(made).send(TextMessage("too late"))


def test_it_can_be_deleted(session, made):
    """If it is no longer needed (6.2.2)."""
    made.delete()
    with pytest.raises(InvalidDestinationError):
        session.create_producer(made).send(TextMessage("a"))
    with pytest.raises(InvalidDestinationError):
        session.create_consumer(made)
    with pytest.raises(InvalidDestinationError):
        made.delete()


def test_what_waits_in_it_is_deleted_with_it(client, session):
    queue = session.create_temporary_queue()
    put(client, "a", to=queue)
    queue.delete()
    assert client.admin.depth(Queue(queue.name)).total == 0


def test_it_is_not_deleted_under_its_consumers(session, made):
    """If there are receivers still using it, deletion is an error; it goes on working."""
    consumer = session.create_consumer(made)
    with pytest.raises(IllegalStateError, match="consumers"):
        made.delete()
    session.create_producer(made).send(TextMessage("a"))
    assert take(consumer, 1) == ["a"]
    consumer.close()
    made.delete()


def pickled(destination):
    return pickle.loads(pickle.dumps(destination))  # noqa: S301  # our own


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_are_names(made, copied):
    """A copy names the same destination, and deletes nothing: it cannot be copied (6.2.2)."""
    other = copied(made)
    assert (other, hash(other), repr(other), str(other)) == (made, hash(made), repr(made), str(made))
    with pytest.raises(IllegalStateError, match="copied"):
        other.delete()


def test_receiver_of_a_request_deletes_nothing(session, made):
    session.create_producer(QUEUE).send(TextMessage("question", reply_to=made))
    with pytest.raises(IllegalStateError, match="received"):
        session.create_consumer(QUEUE).receive(0).reply_to.delete()


def test_durable_subscription_of_a_temporary_topic_is_refused(session):
    """It does not make sense (4.2.7)."""
    topic = session.create_temporary_topic()
    with pytest.raises(InvalidDestinationError, match="durable"):
        session.create_durable_consumer(topic, "s")
    with pytest.raises(InvalidDestinationError, match="durable"):
        session.create_shared_durable_consumer(topic, "s")


def test_shared_subscription_of_a_temporary_topic(session):
    topic = session.create_temporary_topic()
    consumers = [session.create_shared_consumer(topic, "s") for _ in range(2)]
    session.create_producer(topic).send(TextMessage("a"))
    assert sorted(map(left, consumers)) == [[], [("a", 1)]]


def test_broker_without_temporary_destinations(jms_connection_factory, lacking):
    lacking("temporary")
    with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
        for create in (session.create_temporary_queue, session.create_temporary_topic):
            with pytest.raises(NotSupportedError, match="capability temporary"):
                create()
