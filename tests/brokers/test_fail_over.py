"""A fail-over list of two hosts of one broker: the listener goes on at the other one; nothing is lost or doubled."""

import uuid
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.testing.contract.network import FaultProxy
from tests.unit.inbound.listeners import PATIENCE, Recorder, send

IN_EVERY_RUN = {"artemis-amqp", "activemq-stomp"}
ATOMIC = ["artemis-amqp", "activemq-amqp", "activemq-stomp", "qpid-amqp"]  # they settle and send as one
PAIRS = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in ATOMIC]
MESSAGES = 50


def ends(wire):
    """The host is gone, and refuses new connections."""
    wire.close()


def falls_silent(wire):
    """The host swallows what it gets; only missing heartbeats tell."""
    wire.cut_at("any", "never")


@contextmanager
def two_hosts(url):
    """Two ways to one broker, and the URL that lists both."""
    first, second = FaultProxy(url), FaultProxy(url)
    parts = urlsplit(first.url)
    try:
        yield first, second, f"{parts.scheme}://{parts.netloc},{urlsplit(second.url).netloc}?heartbeat=1"
    finally:
        first.close()
        second.close()


FEW = [("artemis-amqp", falls_silent), ("activemq-stomp", ends)]
EVERY_CASE = [(pair, fault) for pair in ATOMIC for fault in (ends, falls_silent)]
CASES = [pytest.param(*c, marks=[] if c in FEW else [pytest.mark.torture]) for c in EVERY_CASE]


@pytest.mark.parametrize(("pair", "fault"), CASES)
def test_a_listener_goes_on_at_the_next_host(pair, fault, broker_url):
    url, recorder, name = broker_url(pair), Recorder(), f"fail-over.{uuid.uuid4().hex}"
    bodies = list(map(str, range(MESSAGES)))
    send(ResourceAdapter(url), *bodies, to=name)
    with two_hosts(url) as (first, second, hosts):
        adapter = ResourceAdapter(hosts, hooks=[recorder])

        @adapter.listener(name)
        def forward(message, session):
            if message.body == str(MESSAGES // 2) and not message.redelivered:
                fault(first)
            session.create_producer(Queue(f"{name}.out")).send(TextMessage(message.body))

        with adapter:
            recorder.await_status("Connecting", "Up", "Connecting", "Up")
            assert sorted(received(url, f"{name}.out", MESSAGES), key=int) == bodies
            second.cut()
            recorder.await_status("Connecting")  # there it was
    assert not received(url, name, 1, timeout=0)


def received(url, name, count, timeout=PATIENCE):
    """So many messages, or all that are there in time."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(name))
        messages = [consumer.receive(timeout) for _ in range(count)]
    return [message.body for message in messages if message is not None]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_connection_is_made_to_the_first_host_that_answers(pair, broker_url):
    with two_hosts(broker_url(pair)) as (first, _, hosts):
        first.close()
        with ConnectionFactory(hosts).create_connection() as connection, connection.create_session() as session:
            queue = Queue(f"fail-over.{uuid.uuid4().hex}")
            session.create_producer(queue).send(TextMessage("a"))
            assert session.create_consumer(queue).receive(PATIENCE).body == "a"
