"""The names of durable subscriptions and of clients on the embedded broker: none is taken for another."""

import pytest

from jmsjca import TextMessage, Topic
from jmsjca.destinations import Subscription
from jmsjca.reconnection import ConnectionSettings, connect

TOPIC = Topic("news")


@pytest.fixture
def connection(jms_broker_url):
    connection = connect(ConnectionSettings(jms_broker_url))
    yield connection
    connection.close()


def test_dots_do_not_make_two_names_one(connection):
    consumers = [connection.consumer(Subscription(TOPIC, *names)) for names in (("s", "x.y"), ("y.s", "x"))]
    unit = connection.unit()
    unit.send(TextMessage("a"), TOPIC)
    unit.commit()
    assert [[d.message.body for d in consumer.receive(10, 0)] for consumer in consumers] == [["a"], ["a"]]


def test_no_client_is_taken_for_one_without_a_name(connection, jms_broker_url):
    """A subscription that is spared the messages of the client "None" hears connections that have no client id."""
    named = connect(ConnectionSettings(jms_broker_url, client_id="None"))
    consumer = named.consumer(Subscription(TOPIC, "s", "None"), no_local=True)
    for sender, body in ((named, "mine"), (connection, "another's")):
        unit = sender.unit()
        unit.send(TextMessage(body), TOPIC)
        unit.commit()
    assert [d.message.body for d in consumer.receive(10, 0)] == ["another's"]
    named.close()
