"""Durable subscriptions, shared and not, as a session makes and ends them (JMS 3.1, sections 8.3.3 and 8.3.4)."""

import pytest

from jmsjca import ConnectionFactory, Topic
from jmsjca.errors import IllegalStateError, InvalidClientIDError, InvalidDestinationError
from tests.unit.outbound import left, put

TOPIC = Topic("t")


@pytest.fixture
def session(connection):
    """Of a connection without client id."""
    with connection.create_session() as session:
        yield session


@pytest.fixture
def mine(client):
    """Of a connection with client id."""
    with client.create_session() as session:
        yield session


def bodies(consumer):
    return [body for body, _ in left(consumer)]


def test_shared_durable_subscription_needs_no_client_id(session, connection):
    """And keeps messages while nobody consumes (8.3.4)."""
    session.create_shared_durable_consumer(TOPIC, "s").close()
    put(connection, *"ab", to=TOPIC)
    first, second = (session.create_shared_durable_consumer(TOPIC, "s") for _ in range(2))
    assert sorted(bodies(first) + bodies(second)) == ["a", "b"]


def test_durable_subscription_needs_a_client_id(session):
    """It must be set (8.3.3)."""
    with pytest.raises(InvalidClientIDError, match="client_id"):
        session.create_durable_consumer(TOPIC, "s")


def test_durable_subscription_has_one_consumer(mine):
    """An attempt to create an additional one is an error (8.3.3)."""
    with mine.create_durable_consumer(TOPIC, "s"), pytest.raises(IllegalStateError, match="consumer"):
        mine.create_durable_consumer(TOPIC, "s")
    mine.create_durable_consumer(TOPIC, "s")


def test_durable_subscription_is_shared_or_not(mine):
    """There cannot be one of each with the same name and client id (8.3.3 and 8.3.4)."""
    mine.create_durable_consumer(TOPIC, "alone").close()
    mine.create_shared_durable_consumer(TOPIC, "together").close()
    with pytest.raises(IllegalStateError, match="shared"):
        mine.create_shared_durable_consumer(TOPIC, "alone")
    with pytest.raises(IllegalStateError, match="shared"):
        mine.create_durable_consumer(TOPIC, "together")


def test_durable_subscription_and_shared_one_of_the_same_name(mine, connection):
    """They are completely separate (8.3.2)."""
    consumers = mine.create_durable_consumer(TOPIC, "s"), mine.create_shared_consumer(TOPIC, "s")
    put(connection, "a", to=TOPIC)
    assert [bodies(consumer) for consumer in consumers] == [["a"], ["a"]]


def test_durable_subscription_that_changes_begins_anew(mine, connection):
    """Another selector is equivalent to deleting it and creating a new one (8.3.3)."""
    mine.create_durable_consumer(TOPIC, "s").close()
    put(connection, "old", to=TOPIC)
    consumer = mine.create_durable_consumer(TOPIC, "s", "JMSPriority = 4")
    put(connection, "new", to=TOPIC)
    assert bodies(consumer) == ["new"]


@pytest.mark.parametrize("make", ["create_durable_consumer", "create_shared_durable_consumer"])
def test_unsubscribing(mine, connection, make):
    """It deletes the subscription with what waits in it (8.3.3)."""
    getattr(mine, make)(TOPIC, "s").close()
    put(connection, "old", to=TOPIC)
    mine.unsubscribe(TOPIC, "s")
    assert bodies(getattr(mine, make)(TOPIC, "s")) == []


def test_unsubscribing_without_client_id(session, connection):
    """A shared durable subscription may have been made without (8.3.4)."""
    session.create_shared_durable_consumer(TOPIC, "s").close()
    put(connection, "old", to=TOPIC)
    session.unsubscribe(TOPIC, "s")
    assert bodies(session.create_shared_durable_consumer(TOPIC, "s")) == []


def test_unsubscribing_while_somebody_consumes(mine):
    """It is erroneous (8.3.3)."""
    consumer = mine.create_durable_consumer(TOPIC, "s")
    with pytest.raises(IllegalStateError):
        mine.unsubscribe(TOPIC, "s")
    consumer.close()
    mine.unsubscribe(TOPIC, "s")


def test_unsubscribing_what_is_not_there(session, mine):
    for unsubscribing in (session, mine):
        with pytest.raises(InvalidDestinationError):
            unsubscribing.unsubscribe(TOPIC, "s")


def test_durable_subscriber_is_spared_what_its_client_sends(client, jms_broker_url, other):
    """By any connection of that client id (8.3.3)."""
    with client.create_session() as session:
        session.create_durable_consumer(TOPIC, "s", no_local=True).close()
    put(client, "mine", to=TOPIC)
    client.close()
    with ConnectionFactory(jms_broker_url, client_id="me").create_connection() as again:
        put(again, "mine too", to=TOPIC)
        put(other, "theirs", to=TOPIC)
        with again.create_session() as session:
            assert bodies(session.create_durable_consumer(TOPIC, "s", no_local=True)) == ["theirs"]


def test_name_of_128_signs(mine, connection):
    """Letters, digits, underscore, dot and minus; 128 of them must do (4.2.4)."""
    name = ("aZ09_.-" * 19)[:128]
    mine.create_durable_consumer(TOPIC, name).close()
    put(connection, "a", to=TOPIC)
    assert bodies(mine.create_durable_consumer(TOPIC, name)) == ["a"]


def test_client_id_belongs_to_one_connection(jms_broker_url, client):
    """Concurrently executing clients are prevented from using it (6.1.2)."""
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    with pytest.raises(InvalidClientIDError):
        factory.create_connection()
    client.close()
    with factory.create_connection() as connection:
        assert connection.client_id == "me"
