"""What a cluster of active brokers does to order and to groups, as docs/how-to/high-availability.md says."""

import uuid
from contextlib import contextmanager

import pytest
from brokers.clusters import TOPOLOGIES
from brokers.ports import HOST

from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from tests.unit.inbound.listeners import PATIENCE

pytestmark = [pytest.mark.torture, pytest.mark.timeout(600)]
ACTIVE = ["artemis-cluster", "activemq-network"]
GROUP = {"properties": {"JMSXGroupID": "g"}}
SHORT = 5.0  # seconds without a message


@pytest.fixture(scope="module", params=ACTIVE)
def cluster(request):
    """Two active nodes, both of which serve."""
    topology = TOPOLOGIES[request.param]()
    try:
        yield topology.start()
    finally:
        topology.close()


@pytest.fixture
def name():
    return f"clusters.{uuid.uuid4().hex}"


def url_of(node):
    return f"amqp://{HOST}:{node.ports['amqp']}"


def send(node, name, bodies, **options):
    with ResourceAdapter(url_of(node)) as adapter:
        for body in bodies:
            adapter.send(name, body, **options)


@contextmanager
def consumer_at(node, name):
    """A consumer that takes one message at a time, so that the others stay at the broker."""
    with (
        ConnectionFactory(url_of(node)).create_connection() as connection,
        connection.create_session() as session,
        session.create_consumer(Queue(name)) as consumer,
    ):
        yield consumer


def take(consumer, count, patience=PATIENCE):
    found = []
    while len(found) < count and (message := consumer.receive(patience)) is not None:
        found.append(message.body)
    return found


def test_messages_go_to_the_node_that_has_the_consumer(cluster, name):
    first, second = cluster.nodes
    bodies = [f"{number}" for number in range(20)]
    with consumer_at(second, name) as consumer:
        send(first, name, bodies)
        assert sorted(take(consumer, 20), key=int) == bodies


def test_messages_of_a_dead_node_come_after_later_ones(cluster, name):
    first, second = cluster.nodes
    send(first, name, ["1", "2", "3"])
    first.kill()
    with consumer_at(second, name) as consumer:
        send(second, name, ["4", "5", "6"])
        found = take(consumer, 3)
        assert found == ["4", "5", "6"]
        cluster.recover(first)
        assert sorted(take(consumer, 3)) == ["1", "2", "3"]


def test_a_group_has_a_consumer_on_each_node(cluster, name):
    """Each node keeps a group with one consumer of its own, and so the group is handled by two at one time."""
    first, second = cluster.nodes
    with consumer_at(first, name) as one, consumer_at(second, name) as other:
        for _ in range(10):
            send(first, name, ["a"], **GROUP)
            send(second, name, ["a"], **GROUP)
        assert take(one, 1, SHORT)
        assert take(other, 1, SHORT)


def test_messages_that_moved_do_not_come_back_on_activemq(cluster, name):
    """A message that went over the network to a node without consumers stays there: ActiveMQ sends none back."""
    first, second = cluster.nodes
    with ConnectionFactory(url_of(second)).create_connection() as connection:
        session = connection.create_session(transacted=True)
        consumer = session.create_consumer(Queue(name))
        send(first, name, ["1", "2", "3"])
        assert consumer.receive(PATIENCE) is not None  # not committed: it goes back to the second node
    with consumer_at(first, name) as consumer:
        found = take(consumer, 3, SHORT)
    assert len(found) == 3 if cluster.name == "artemis-cluster" else len(found) < 3
