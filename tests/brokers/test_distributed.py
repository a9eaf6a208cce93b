"""Distributed durable subscriptions on the brokers that have what they need."""

import uuid

import pytest
from brokers import PAIRS

from jmsjca import ActivationSpec, ResourceAdapter, TextMessage, Topic
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.distributed_progress import Watch
from tests.unit.inbound.failover_processes import END, kill_one_of_two
from tests.unit.inbound.listeners import Inbox

IN_EVERY_RUN = {"artemis-amqp", "qpid-amqp"}
EVERY_BROKER = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in PAIRS]


def skip_unless_able(pair, url):
    """It must take a message and send it on in one, and keep subscriptions."""
    with ResourceAdapter(url).connection_factory().create_connection() as connection:
        if not (connection.capabilities.atomic and connection.capabilities.durable):
            pytest.skip(f"{pair} has no transactions of receipts and sends, or no durable subscriptions")


def publish(adapter, topic, bodies):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Topic(topic))
        for body in bodies:
            producer.send(TextMessage(body))


def distributed(name):
    return ActivationSpec(
        destination=Topic(name),
        subscription_durability="Durable",
        subscription_name=f"jmsjca://?distribution=1&subscribername={name}.s",
    )


@pytest.fixture
def node(pair, broker_url):
    """Makes a node of a cluster, whose queue side is up."""
    adapters, inbox = [], Inbox()
    url, name = broker_url(pair), f"t.{uuid.uuid4().hex}"
    skip_unless_able(pair, url)
    spec = distributed(name)

    def make():
        watch = Watch()
        adapters.append(ResourceAdapter(url, hooks=[watch]))
        activation = adapters[-1].activate(spec, inbox)
        adapters[-1].start()
        watch.until(activation, "Up")
        return adapters[-1], activation, watch

    make.topic, make.inbox = name, inbox
    yield make
    for adapter in adapters:
        adapter.stop()


@pytest.mark.parametrize("pair", EVERY_BROKER)
def test_one_forwards_all_consume_and_another_takes_over(node):
    first, one, watch = node()
    watch.until(one.topic_side, "Up")
    second, two, watch = node()
    publish(first, node.topic, map(str, range(50)))
    assert sorted(int(body) for body, _ in node.inbox.take(50)) == list(range(50))
    assert two.topic_side.stats.n_messages == 0
    first.stop()
    watch.until(two.topic_side, "Up")
    publish(second, node.topic, map(str, range(50, 100)))
    assert sorted(int(body) for body, _ in node.inbox.take(50)) == list(range(50, 100))
    second.stop()
    assert node.inbox.got.empty()


def test_where_forwarded_messages_might_double_none_is_forwarded(broker_url, caplog):
    watch = Watch()
    adapter = ResourceAdapter(broker_url("artemis-stomp"), hooks=[watch])
    activation = adapter.activate(distributed(f"t.{uuid.uuid4().hex}"), Inbox())
    with adapter:
        watch.until(activation.topic_side, "Down")
    assert "it lacks the capability atomic" in caplog.text


@pytest.mark.parametrize("pair", EVERY_BROKER)
def test_nothing_is_lost_or_doubled_when_the_process_with_the_subscription_is_killed(pair, broker_url):
    url = broker_url(pair)
    skip_unless_able(pair, url)
    connection = connect(ConnectionSettings(url))
    try:
        done, more = kill_one_of_two(url, connection, uuid.uuid4().hex)
    finally:
        connection.close()
    assert sorted(done) == list(range(200))
    assert more == [END, END]
