"""Ours and Java's clients, connected to the same broker."""

import uuid

import pytest
from jms_java import JavaClient, OurClient

from jmsjca import Queue, Topic


@pytest.fixture(scope="module", params=["artemis", "qpid", "activemq"])
def broker(request):
    return request.param


@pytest.fixture(scope="module")
def ours(broker, broker_url):
    client = OurClient(broker_url(f"{broker}-amqp"))
    yield client
    client.close()


@pytest.fixture(scope="module")
def theirs(broker, broker_url, java):
    client = JavaClient(java, broker_url(f"{broker}-amqp"))
    yield client
    client.close()


@pytest.fixture
def theirs_with(broker, broker_url, java):
    """Give a function that connects Java with options of the URL."""
    clients = []
    yield lambda options: clients.append(JavaClient(java, f"{broker_url(f'{broker}-amqp')}?{options}")) or clients[-1]
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def over_stomp(broker_url):
    """Ours on ActiveMQ."""
    client = OurClient(broker_url("activemq-stomp"))
    yield client
    client.close()


@pytest.fixture(scope="module")
def over_openwire(broker_url, java):
    """ActiveMQ's own Java client."""
    client = JavaClient(java, broker_url("activemq-openwire").replace("openwire:", "tcp:"))
    yield client
    client.close()


@pytest.fixture
def queue():
    return Queue(f"java.{uuid.uuid4().hex}")


@pytest.fixture
def names(broker):
    """A topic, by our name and by theirs: to Java an address of Broker-J's is a name."""
    name = f"java.{uuid.uuid4().hex}"
    return Topic(name), Topic(f"amq.topic/{name}" if broker == "qpid" else name)
