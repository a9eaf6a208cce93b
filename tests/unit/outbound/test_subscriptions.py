"""Subscriptions of sessions: durable, shared, and neither (JMS 3.1, section 8.3)."""

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage, Topic
from jmsjca.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    NotSupportedError,
)
from tests.unit.outbound.queues import QUEUE, left, put, take

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


def test_consumers_share_a_subscription(session, connection):
    """Each message of a shared subscription is delivered to only one of its consumers (8.3.2)."""
    first, second = (session.create_shared_consumer(TOPIC, "s") for _ in range(2))
    put(connection, *"abc", to=TOPIC)
    assert sorted(bodies(first) + bodies(second)) == ["a", "b", "c"]


def test_shared_subscriptions_of_other_names_are_others(session, connection):
    """Each gets every message (8.3.2)."""
    consumers = [session.create_shared_consumer(TOPIC, name) for name in ("s", "t")]
    put(connection, "a", to=TOPIC)
    assert [bodies(consumer) for consumer in consumers] == [["a"], ["a"]]


def test_shared_subscription_ends_with_its_last_consumer(session, connection):
    """With what waits in it (8.3.2)."""
    first, second = (session.create_shared_consumer(TOPIC, "s") for _ in range(2))
    first.close()
    put(connection, "kept", to=TOPIC)
    assert bodies(second) == ["kept"]
    second.close()
    put(connection, "lost", to=TOPIC)
    assert bodies(session.create_shared_consumer(TOPIC, "s")) == []


def test_shared_subscription_in_use_keeps_its_selector(session):
    """Another topic or selector is an error as long as it has consumers (8.3.2)."""
    session.create_shared_consumer(TOPIC, "s", "a = 1")
    for topic, selector in ((TOPIC, "a = 2"), (TOPIC, None), (Topic("other"), "a = 1")):
        with pytest.raises(IllegalStateError):
            session.create_shared_consumer(topic, "s", selector)


def test_shared_subscription_is_the_client_s(session, mine, connection):
    """It is identified by its name and by the client id, if that is set (8.3.2)."""
    consumers = [s.create_shared_consumer(TOPIC, "s") for s in (session, mine)]
    put(connection, "a", to=TOPIC)
    assert [bodies(consumer) for consumer in consumers] == [["a"], ["a"]]


def test_subscriber_is_spared_what_its_connection_sends(session, other):
    """noLocal (8.3.1)."""
    consumer = session.create_consumer(TOPIC, no_local=True)
    session.create_producer(TOPIC).send(TextMessage("mine"))
    put(other, "theirs", to=TOPIC)
    assert bodies(consumer) == ["theirs"]


def test_queue_knows_no_locality(session):
    """noLocal is about topics (8.2)."""
    with pytest.raises(InvalidDestinationError, match="no_local"):
        session.create_consumer(QUEUE, no_local=True)


@pytest.mark.parametrize(
    "make", ["create_consumer", "create_shared_consumer", "create_durable_consumer", "create_shared_durable_consumer"]
)
def test_every_sort_takes_a_selector(mine, make):
    """Only messages that match are added to the subscription (8.3)."""
    name = () if make == "create_consumer" else ("s",)
    consumer = getattr(mine, make)(TOPIC, *name, "region = 'EU'")
    assert consumer.selector == "region = 'EU'"
    producer = mine.create_producer(TOPIC)
    for region in ("US", "EU"):
        producer.send(TextMessage(region, properties={"region": region}))
    assert bodies(consumer) == ["EU"]


def test_selector_that_is_none(session):
    """An InvalidSelectorException (10.3)."""
    with pytest.raises(InvalidSelectorError):
        session.create_consumer(QUEUE, "region = ")


@pytest.mark.parametrize(
    "make", ["create_shared_consumer", "create_durable_consumer", "create_shared_durable_consumer"]
)
def test_named_subscription_needs_a_name_and_a_topic(mine, make):
    with pytest.raises(InvalidDestinationError, match="name"):
        getattr(mine, make)(TOPIC, "")
    with pytest.raises(InvalidDestinationError, match="queue:q"):
        getattr(mine, make)(QUEUE, "s")
    with pytest.raises(InvalidDestinationError, match="'t' is no destination"):
        getattr(mine, make)("t", "s")


def test_consumer_of_what_is_no_destination(session):
    with pytest.raises(InvalidDestinationError, match="'q' is no destination"):
        session.create_consumer("q")


@pytest.mark.parametrize(
    ("capability", "use"),
    [
        ("selectors", lambda s: s.create_consumer(QUEUE, "a = 1")),
        ("selectors", lambda s: s.create_browser(QUEUE, "a = 1")),
        ("no_local", lambda s: s.create_consumer(TOPIC, no_local=True)),
        ("browse", lambda s: s.create_browser(QUEUE)),
        ("shared", lambda s: s.create_shared_consumer(TOPIC, "s")),
        ("shared", lambda s: s.create_shared_durable_consumer(TOPIC, "s")),
        ("durable", lambda s: s.create_shared_durable_consumer(TOPIC, "s")),
        ("durable", lambda s: s.create_durable_consumer(TOPIC, "s")),
    ],
)
def test_broker_that_cannot(jms_broker_url, lacking, capability, use):
    """It is refused, and the capability named."""
    lacking(capability)
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    with factory.create_context() as context, pytest.raises(NotSupportedError, match=f"capability {capability}"):
        use(context)


def test_unsubscribing_at_a_broker_without_shared_subscriptions(jms_connection_factory, lacking):
    """There every durable subscription has a client id."""
    lacking("shared")
    with jms_connection_factory.create_context() as context, pytest.raises(InvalidClientIDError):
        context.unsubscribe(TOPIC, "s")


def test_message_of_a_topic_is_taken_once_by_each(session, connection):
    """Two consumers of one session have a subscription each (8.3.1)."""
    consumers = [session.create_consumer(TOPIC) for _ in range(2)]
    put(connection, "a", to=TOPIC)
    assert [take(consumer, 1) for consumer in consumers] == [["a"], ["a"]]


def test_queue_named_as_a_topic(session, connection):
    """The kind belongs to the name (2.11)."""
    consumer = session.create_consumer(Queue(TOPIC.name))
    put(connection, "to the topic", to=TOPIC)
    assert bodies(consumer) == []


def test_a_second_process_on_a_durable_subscription_is_told_how_processes_share_one(jms_broker_url):
    """With another client id, which other libraries advise, each process would get all messages."""
    factory = ConnectionFactory(jms_broker_url, client_id="shop")
    with (
        factory.create_connection(),
        pytest.raises(InvalidClientIDError, match=r"in use.*subscription_shared=True.*another client id each gets all"),
    ):
        factory.create_connection()
