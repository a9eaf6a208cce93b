"""Fifty threads of a web application send with one adapter to a broker on a network."""

import uuid

import pytest
from brokers import PAIRS

from jmsjca import Queue, ResourceAdapter
from tests.unit.outbound.web_application import post_from_threads, serving

SECONDS = 60
IN_EVERY_RUN = {"artemis-amqp", "activemq-stomp", "rabbitmq4-amqp"}
EVERY_BROKER = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in PAIRS]


@pytest.mark.parametrize("pair", EVERY_BROKER)
def test_each_request_of_fifty_threads_is_in_the_queue_once(pair, broker_url):
    name = f"web.{uuid.uuid4().hex}"
    adapter = ResourceAdapter(broker_url(pair))
    with adapter, adapter.connection_factory().create_connection() as connection:
        consumer = connection.create_session().create_consumer(Queue(name))
        with serving(adapter, name) as port:
            ids = post_from_threads(port, threads=50, requests=100)
        received = [consumer.receive(SECONDS) for _ in range(100)]
    assert {message.body for message in received} == set(ids) == {f"order {number}" for number in range(100)}
