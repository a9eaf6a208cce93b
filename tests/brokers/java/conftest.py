"""Ours and Java's Qpid JMS, connected to the same broker."""

import uuid

import pytest
from jms_java import JavaClient, OurClient

from jmsjca import Queue


@pytest.fixture(scope="module", params=["artemis", "qpid"])
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
def queue():
    return Queue(f"java.{uuid.uuid4().hex}")
