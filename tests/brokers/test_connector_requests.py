"""Requests of the event connector over brokers on a network: the response by message id, and by a selector."""

import threading
import uuid

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, ReturnCode

PATIENCE = 60


@pytest.fixture(params=["artemis-amqp", "activemq-stomp"])
def url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture
def prefix():
    return f"connector-{uuid.uuid4().hex}"


@pytest.fixture
def application(url, prefix):
    """An application that answers each of two requests: by the message id, and with a name."""

    def serve():
        with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
            connection.start()
            consumer = session.create_consumer(Queue(f"{prefix}-requests"))
            for number in range(2):
                request = consumer.receive(PATIENCE)
                properties = {"result": "VALCHANGE", "name": "Ada" if number else "nobody"}
                response = session.create_text_message(f'{{"Number": {number}}}', properties=properties)
                response.correlation_id = "another" if number else request.message_id
                session.create_producer(request.reply_to).send(response)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.usefixtures("application")
def test_a_response_changes_the_business_object(url, prefix):
    config = ConnectorConfig(
        connection_url=url,
        configuration_meta_object={"Default": f"OutputDestination={prefix}-requests;ResponseTimeout=60000"},
        definitions={
            "Customer": {
                "attributes": {"Name": {}, "Number": {"type": "integer"}, "MO": {"type": "Transport"}},
                "meta_object": "MO",
                "verbs": {"Retrieve": "response_selector=name = '{1}':Name"},
            },
            "Transport": {"attributes": {"CorrelationID": {}}},
        },
        reply_to_destination=f"{prefix}-replies",
        message_response_result_property="result",
    )
    with Connector(config) as connector:
        for number, verb in enumerate(("Update", "Retrieve")):
            request = BusinessObject("Customer", verb, {"Name": "Ada"})
            assert connector.do_verb_for(request) is ReturnCode.VALCHANGE
            assert request.attributes["Number"] == number
            assert request.get("MO.CorrelationID")


def test_a_response_that_does_not_arrive(url, prefix):
    config = ConnectorConfig(
        connection_url=url,
        configuration_meta_object={
            "Default": f"OutputDestination={prefix}-requests;ResponseTimeout=0;TimeoutFatal=false"
        },
        reply_to_destination=f"{prefix}-replies",
    )
    with Connector(config) as connector:
        assert connector.do_verb_for(BusinessObject("Customer", "Create")) is ReturnCode.FAIL


def test_a_report_goes_to_the_sender(url, prefix):
    rules = {"Order_Create": "CollaborationName=orders"}
    config = ConnectorConfig(
        connection_url=url, input_destination=f"{prefix}-in", receive_timeout=0.2, configuration_meta_object=rules
    )
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_text_message('{"_type": "Order", "id": 1}', properties={"JMS_IBM_Report_PAN": 1})
        message.reply_to = Queue(f"{prefix}-reports")
        session.create_producer(Queue(f"{prefix}-in")).send(message)
        replies = session.create_consumer(Queue(f"{prefix}-reports"))
        reports = []
        with Connector(config, print, collaborations={"orders": lambda _: None}) as connector:
            while not reports:
                assert connector.poll_for_events() is ReturnCode.SUCCEED
                reports += filter(None, [replies.receive(0.2)])
    assert (reports[0].get_int_property("JMS_IBM_Feedback"), '"id": 1' in reports[0].body) == (275, True)
    assert reports[0].correlation_id
