"""The event connector over brokers on a network: the order of events, events in doubt, and what is refused."""

import itertools
import uuid

import pytest

from jmsjca import ConnectionFactory, Queue, Short
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, DeliveryOutcome, ReturnCode
from jmsjca.connector.data_handlers import data_handler
from jmsjca.errors import NotSupportedError

ORDER = '{"_type": "Order", "id": "%s"}'
PATIENCE = 60
POLLS = 200
WAIT = 0.2  # seconds of a read: over STOMP one that does not wait may come back empty although there is a message


@pytest.fixture(params=["artemis-amqp", "activemq-amqp", "qpid-amqp", "activemq-stomp"])
def url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture
def session(url):
    with ConnectionFactory(url).create_connection() as connection:
        yield connection.create_session()


@pytest.fixture
def name():
    """Name a queue of this test's own."""
    prefix = f"connector-{uuid.uuid4().hex}"
    return lambda queue: f"{prefix}-{queue}"


def poll_until(connector, done):
    """Poll until a condition holds."""
    for _ in range(POLLS):
        assert connector.poll_for_events() is ReturnCode.SUCCEED
        if done():
            return
    pytest.fail(f"not done after {POLLS} polls")


def put(session, queue, *ids):
    producer = session.create_producer(Queue(queue))
    for each in ids:
        producer.send(ORDER % each)


def test_events_of_several_queues_are_archived_once_and_in_order(url, session, name):
    for queue, count in {"A": 2, "B": 1, "C": 5}.items():
        put(session, name(queue), *[f"{queue}{number}" for number in range(count)])
    delivered = []
    config = ConnectorConfig(
        connection_url=url,
        receive_timeout=WAIT,
        input_destination=[name("A"), name("B"), name("C")],
        poll_quantity=2,
        archive_destination=name("archive"),
    )
    with Connector(config, lambda order: delivered.append(order.get("id"))) as connector:
        poll_until(connector, lambda: len(delivered) == 8)
    for queue, count in {"A": 2, "B": 1, "C": 5}.items():
        assert [each for each in delivered if each[0] == queue] == [f"{queue}{number}" for number in range(count)]
    archive = session.create_consumer(Queue(name("archive")))
    assert [archive.receive(PATIENCE).body for _ in delivered] == [ORDER % each for each in delivered]


def test_events_in_doubt_are_processed_again(url, session, name):
    put(session, name("in"), "a", "b")
    config = ConnectorConfig(
        connection_url=url,
        receive_timeout=WAIT,
        input_destination=name("in"),
        in_progress_destination=name("held"),
        error_destination=name("errors"),
    )
    calls = itertools.count()
    delivered = []

    def collaboration(order):
        delivered.append(order.get("id"))
        if next(calls) == 0:
            raise KeyboardInterrupt
        return DeliveryOutcome.FAIL

    with Connector(config, collaboration) as connector, pytest.raises(KeyboardInterrupt):
        poll_until(connector, lambda: False)
    with Connector(config, collaboration) as connector:
        poll_until(connector, lambda: len(delivered) == 3)
    assert delivered[0] == "a"
    assert sorted(delivered[1:]) == ["a", "b"]
    errors = session.create_consumer(Queue(name("errors")))
    for each in delivered[1:]:
        copy = errors.receive(PATIENCE)
        assert (copy.body, copy.properties["_JMSJCA_OriginalDestinationName"]) == (ORDER % each, name("in"))


def test_a_broker_without_transactions_is_refused_at_the_first_poll(broker_url):
    config = ConnectorConfig(connection_url=broker_url("artemis-stomp"), input_destination="in")
    with Connector(config, print) as connector, pytest.raises(NotSupportedError, match="transacted session"):
        connector.run()


def test_meta_objects_and_a_queue_as_collaboration(url, session, name):
    message = session.create_text_message("Name=Ada", properties={"hub_level": Short(3)})
    message.type, message.correlation_id = "Cust_In", "c-1"
    session.create_producer(Queue(name("in"))).send(message, priority=7)
    config = ConnectorConfig(
        connection_url=url,
        receive_timeout=WAIT,
        input_destination=name("in"),
        configuration_meta_object={"Customer_Create": "InputFormat=Cust_In;DataHandlerMimeType=text/namevalue"},
        definitions={
            "Customer": {"attributes": {"Name": {}, "MO": {"type": "Transport"}}, "meta_object": "MO"},
            "Transport": {
                "attributes": {"CorrelationID": {}, "Priority": {"type": "integer"}, "JMSProperties": {"type": "Props"}}
            },
            "Props": {"attributes": {"level": {"type": "integer", "information": "name=hub_level;type=Short"}}},
        },
    )
    consumer = session.create_consumer(Queue(name("out")))
    published = []
    with Connector(config, Queue(name("out"))) as connector:
        poll_until(connector, lambda: published or published.extend(filter(None, [consumer.receive(WAIT)])))
    order = data_handler("application/json").to_business_object(published[0].body)
    transport = {"CorrelationID": "c-1", "Priority": 7, "JMSProperties": BusinessObject("Props", "", {"level": 3})}
    assert (order.type, order.verb, order.get("Name")) == ("Customer", "Create", "Ada")
    assert order.get("MO").attributes == transport
    assert published[0].properties["ObjectEventId"]
