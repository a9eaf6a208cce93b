"""A serial listener over every pair of a broker and a protocol, and through the death of its broker."""

import uuid

import pytest
from brokers import PAIRS

from jmsjca import Outcome, Queue, ResourceAdapter, TextMessage
from tests.unit.inbound import Inbox, Recorder, send

IN_EVERY_RUN = {"artemis-amqp", "activemq-stomp"}
EVERY_BROKER = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in PAIRS]


def until(inbox, last):
    """The bodies that come, up to the last one."""
    bodies = []
    while last not in bodies:
        bodies += [body for body, _ in inbox.take(1)]
    return bodies


@pytest.fixture
def name():
    return f"listener.{uuid.uuid4().hex}"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_failed_message_comes_again_before_the_later_ones(pair, broker_url, name):
    inbox, recorder = Inbox(ValueError("not now")), Recorder()
    adapter = ResourceAdapter(broker_url(pair), hooks=[recorder])
    send(adapter, "a", "b", "c", to=name)
    adapter.listener(name)(inbox)
    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        for _ in "abc":
            recorder.await_outcome(Outcome.COMMITTED)
    assert [body for body, _ in inbox.take(4)] == ["a", "a", "b", "c"]


@pytest.mark.parametrize("pair", PAIRS)
def test_what_a_handler_sends_belongs_to_its_delivery(pair, broker_url, name):
    recorder = Recorder()
    adapter = ResourceAdapter(broker_url(pair), hooks=[recorder])
    results = Inbox()
    failures = [ValueError("after the send")]

    @adapter.listener(name)
    def forward(message, session):
        session.create_producer(Queue(f"{name}.out")).send(TextMessage(message.body.upper()))
        if failures:
            raise failures.pop()

    with adapter.connection_factory().create_connection() as connection:
        atomic = connection.capabilities.atomic
    with adapter:
        send(adapter, "a", to=name)
        recorder.await_outcome(Outcome.ROLLED_BACK)
        if atomic:
            recorder.await_outcome(Outcome.COMMITTED)
            adapter.listener(f"{name}.out")(results)
            recorder.await_outcome(Outcome.COMMITTED)
    assert results.got.qsize() == atomic  # once, though it was sent twice; where that cannot be, the send is refused


@pytest.mark.parametrize("pair", EVERY_BROKER)
def test_a_listener_outlives_its_broker(pair, own_broker, name):
    kind, protocol = pair.split("-")
    broker = own_broker(kind)
    inbox, recorder = Inbox(), Recorder()
    adapter = ResourceAdapter(broker.url(protocol), hooks=[recorder])
    adapter.listener(name)(inbox)
    with adapter:
        recorder.await_status("Connecting", "Up")
        send(adapter, "before", to=name)
        assert [body for body, _ in inbox.take(1)] == ["before"]
        recorder.await_outcome(Outcome.COMMITTED)
        broker.kill()
        recorder.await_status("Connecting")
        broker.restart()
        recorder.await_status("Up")
        send(adapter, "after", to=name)
        again = ["before"] if kind == "rabbitmq" else []  # it confirms an acknowledgement before that is on its disk
        assert until(inbox, "after") in (["after"], [*again, "after"])
