"""What is pickled, as closures of Spark are: factories, specs and messages of one's own; the rest names the remedy."""

import copy
import pickle
import queue

import pytest

from jmsjca import AcknowledgeMode, ActivationSpec, ConnectionFactory, Message, Queue, ResourceAdapter, TextMessage
from jmsjca.connector import Activities, Connector, ConnectorConfig
from jmsjca.outbound import ConnectionPool

PATIENCE = 60


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own


@pytest.fixture
def url():
    return "embedded://pickling"


@pytest.fixture
def connection(url):
    with ConnectionFactory(url).create_connection() as connection:
        yield connection


OF_THE_PROCESS = {
    "Connection": lambda connection: connection,
    "Session": lambda connection: connection.create_session(),
    "MessageProducer": lambda connection: connection.create_session().create_producer(Queue("q")),
    "MessageConsumer": lambda connection: connection.create_session().create_consumer(Queue("q")),
    "QueueBrowser": lambda connection: connection.create_session().create_browser(Queue("q")),
    "ConnectionPool": lambda _: ConnectionPool(ConnectionFactory("embedded://pickling")),
    "ResourceAdapter": lambda _: ResourceAdapter("embedded://pickling"),
    "Connector": lambda _: Connector(
        ConnectorConfig(connection_url="embedded://pickling", input_destination="q"), print
    ),
}


@pytest.mark.parametrize("kind", OF_THE_PROCESS)
@pytest.mark.parametrize("encode", [pickle.dumps, copy.deepcopy])
def test_what_belongs_to_a_process_names_the_remedy(connection, kind, encode):
    bound = OF_THE_PROCESS[kind](connection)
    with pytest.raises(TypeError, match=f"^This {kind} cannot be pickled: .*from a ConnectionFactory"):
        encode(bound)
    assert vars(copy.copy(bound)) == vars(bound)


def test_an_object_with_an_adapter_refuses_to_be_pickled_and_names_it(url):
    adapter = ResourceAdapter(url)
    for each in (adapter.publisher("q", str), Activities(adapter)):
        with pytest.raises(TypeError, match="This ResourceAdapter cannot be pickled"):
            pickle.dumps(each)
    adapter.listener("q")(print)
    with pytest.raises(TypeError, match="This Activation cannot be pickled"):
        pickle.dumps(adapter.activations[0])


@pytest.mark.parametrize("mode", [None, *AcknowledgeMode])
def test_a_received_message_names_the_remedy_and_can_be_copied(connection, mode):
    session = connection.create_session(transacted=mode is None, acknowledge_mode=mode or AcknowledgeMode.AUTO)
    connection.create_session().create_producer(Queue("q")).send(TextMessage("a pear", properties={"shop": "Bern"}))
    received = session.create_consumer(Queue("q")).receive(PATIENCE)
    for encode in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"^This received TextMessage cannot be pickled: .*message\.body"):
            encode(received)
    twin = copy.copy(received)
    assert (twin.body, twin.properties, twin.message_id) == (received.body, received.properties, received.message_id)
    assert pickled((received.body, dict(received.properties))) == ("a pear", {"shop": "Bern"})


def test_a_message_of_a_listener_names_the_remedy(url):
    texts = queue.Queue()
    adapter = ResourceAdapter(url)

    @adapter.listener("listened")
    def take(message: Message) -> None:
        with pytest.raises(TypeError) as caught:
            pickle.dumps(message)
        texts.put(str(caught.value))

    with adapter:
        adapter.send("listened", "a pear")
        assert texts.get(timeout=PATIENCE).startswith("This received TextMessage cannot be pickled")


def test_what_is_made_without_a_broker_can_be_pickled(url, connection):
    session = connection.create_session()
    sent = session.create_text_message("a pear", properties={"shop": "Bern"})
    session.create_producer(Queue("sent")).send(sent)
    for message in (TextMessage("a pear", properties={"shop": "Bern"}), sent):
        for twin in (pickled(message), copy.copy(message), copy.deepcopy(message)):
            assert (twin.body, twin.properties, twin.message_id) == ("a pear", {"shop": "Bern"}, message.message_id)
    assert pickled(ConnectionFactory(url)).login.url == url
    assert pickled(ActivationSpec(destination="q")) == ActivationSpec(destination="q")
