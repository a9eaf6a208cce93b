"""The names of durable subscriptions on the embedded broker, where it is stricter than brokers must be."""

import pytest

from jmsjca import TextMessage, Topic
from jmsjca.destinations import Subscription
from jmsjca.links import ConnectionSettings, connect

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
