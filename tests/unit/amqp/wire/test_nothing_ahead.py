"""Consumers that take nothing ahead: each message comes when it is asked for, and an empty queue is told as one."""

import pytest
from amqp_peer import SECONDS, Broker

from jmsjca import ConnectionFactory, Limits, Outcome, Queue, ResourceAdapter
from tests.unit.amqp.wire.account import encoded
from tests.unit.inbound import Recorder

NONE_AHEAD = Limits(prefetch_messages=0)


@pytest.fixture
def address(stage):
    broker = Broker()
    for body in "ab":
        broker.store.put("q", encoded(body))
    return f"amqp://{stage(broker).peer.address}"


def test_session(address):
    with ConnectionFactory(address, limits=NONE_AHEAD).create_connection() as connection:
        consumer = connection.create_session().create_consumer(Queue("q"))
        connection.start()
        assert [consumer.receive(SECONDS).body, consumer.receive_no_wait().body] == ["a", "b"]
        assert consumer.receive_no_wait() is None


def test_listener(address):
    recorder, seen = Recorder(), []
    with ResourceAdapter(address, limits=NONE_AHEAD, hooks=[recorder]) as adapter:
        adapter.listener("q")(lambda message: seen.append(message.body))
        adapter.start()
        for _ in "ab":
            recorder.await_outcome(Outcome.COMMITTED)
    assert seen == ["a", "b"]
