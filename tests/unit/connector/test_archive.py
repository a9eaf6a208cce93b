"""An archive on a broker of its own: its copy is there before the message is gone."""

import socket

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import ConnectorConfig, DeliveryOutcome, ReturnCode
from jmsjca.connector.collaborations import BrokerSession, Receiver
from jmsjca.connector.event_conversion import Event, EventConversion, default_data_handler
from jmsjca.connector.event_flow import EventFlow

BODY = '{"_type": "Order", "id": 1}'


@pytest.fixture
def archive(url):
    """The session of another program on the broker of the archive."""
    with ConnectionFactory(f"{url}-archive").create_connection() as connection:
        yield connection.create_session()


@pytest.fixture
def archived(archive):
    """Return the messages of the archive without removing them."""

    def browse():
        with archive.create_browser(Queue("archive")) as browser:
            return list(browser)

    return browse


@pytest.fixture(params=[None, "held"])
def fields(url, request):
    return {
        "archive_destination": "archive",
        "archival_connection_url": f"{url}-archive",
        "error_destination": "errors",
        "in_progress_destination": request.param,
    }


def test_the_copy_is_on_the_other_broker(connector, session, messages, archived, fields):
    text = session.create_text_message(BODY, properties={"region": "EU"})
    session.create_producer(Queue("in")).send(text, time_to_live=3600)
    (sent,) = messages("in")
    assert connector(lambda _: None, **fields).poll_for_events() is ReturnCode.SUCCEED
    (copy,) = archived()
    assert (copy.body, copy.properties["region"], copy.expiration) == (BODY, "EU", None)
    assert copy.properties["_JMSJCA_OriginalExpiration"] == round(sent.expiration.timestamp() * 1000)
    assert copy.properties["JMS_Sun_JMSJCA_OriginalJMSMessageID"] == sent.message_id
    assert [messages(queue) for queue in ("in", "held", "archive")] == [[], [], []]


def test_a_failed_event_stays_on_the_broker_of_the_connector(connector, session, messages, archived, fields):
    session.create_producer(Queue("in")).send(BODY)
    connector(lambda _: DeliveryOutcome.FAIL, **fields).poll_for_events()
    assert ([message.body for message in messages("errors")], archived()) == ([BODY], [])


def test_a_broker_of_the_archive_that_is_away_keeps_the_message(connector, session, messages, fields):
    session.create_producer(Queue("in")).send(BODY)
    called = []
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    polling = connector(called.append, **(fields | {"archival_connection_url": f"amqp://127.0.0.1:{port}"}))
    assert polling.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert ([message.body for message in messages("in")], called) == ([BODY], [])


class Dying:
    """A session whose program ends before the commit."""

    def __init__(self, session):
        self.send, self.rollback = session.send, session.rollback

    def commit(self):
        raise KeyboardInterrupt


def test_a_crash_before_the_commit_leaves_one_copy_where_the_broker_knows_duplicates(
    url, session, archive, archived, fields
):
    session.create_producer(Queue("in")).send(BODY)
    config = ConnectorConfig(connection_url=url, input_destination="in", **fields)
    receiver = Receiver(lambda *_: None, transactional=False)
    flow = EventFlow(config, EventConversion(config, default_data_handler(config)), receiver, {})
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        transacted = connection.create_session(transacted=True)
        consumer = transacted.create_consumer(Queue("in"))
        event = Event(consumer.receive(60), Queue("in"), {})
        with pytest.raises(KeyboardInterrupt):
            flow.process(Dying(BrokerSession(transacted)), event, archive=BrokerSession(archive))
        assert len(archived()) == 1
        transacted.rollback()
        again = Event(consumer.receive(60), Queue("in"), {})
        assert flow.process(BrokerSession(transacted), again, archive=BrokerSession(archive)) is DeliveryOutcome.SUCCEED
    assert len(archived()) == 1


def test_the_documented_name_takes_a_bound_factory_and_its_password_is_not_shown():
    properties = {"ConnectionFactoryName": "embedded://x", "ArchivalConnectionFactoryName": "vault"}
    config = ConnectorConfig.from_properties(properties)
    assert config.archival_connection_url == "lookup://vault"
    shown = repr(ConnectorConfig(connection_url="embedded://x", archival_connection_url="amqp://u:secret@h"))
    assert "secret" not in shown
