"""RabbitMQ 4 over AMQP 1.0: its kinds of queues, what it refuses, and its administration."""

import uuid

import pytest

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    NotSupportedError,
    TransactionRolledBackError,
)
from jmsjca.spi import Depth
from tests.brokers.test_gaps_rabbitmq4 import Management
from tests.unit.inbound.listeners import PATIENCE, Recorder

MANY = 200
STREAM = {"x-queue-type": "stream"}
FULL = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}


@pytest.fixture(scope="module")
def url(broker_url):
    return broker_url("rabbitmq4-amqp")


@pytest.fixture
def connection(url):
    with ConnectionFactory(url).create_connection() as opened:
        yield opened


@pytest.fixture
def queue():
    return Queue(f"rabbit.{uuid.uuid4().hex}: ü/%?#")


def declare(amqp, name, **arguments):
    """Declare a queue as an operator does, with arguments of its own."""
    path = f"/queues/{name}"
    status, _ = Management(amqp("rabbitmq4")).ask("PUT", path, {"durable": True, "arguments": arguments})
    assert status == 201
    return Queue(name)


def send(connection, queue, *bodies, **options):
    with connection.create_session() as session:
        producer = session.create_producer(queue)
        for body in bodies:
            producer.send(TextMessage(body), **options)


def take(connection, queue, count):
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        return [consumer.receive(timeout=PATIENCE) for _ in range(count)]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_a_listener_gets_all_that_is_sent(url, queue, mode, kind):
    bodies = [str(number) for number in range(MANY)]
    recorder = Recorder()
    adapter = ResourceAdapter(f"{url}?queue_type={kind}", hooks=[recorder])
    got = set()
    adapter.listener(queue.name, concurrency_mode=mode)(lambda message: got.add(message.body))
    with ConnectionFactory(f"{url}?queue_type={kind}").create_connection() as connection:
        send(connection, queue, *bodies)
        with adapter:
            for _ in bodies:
                recorder.outcomes.get(timeout=PATIENCE)
        assert got == set(bodies)


@pytest.mark.parametrize(("kind", "received"), [("classic", "95310"), ("quorum", "95310")])
def test_priorities_by_the_type_of_the_queue(url, queue, kind, received):
    """A quorum queue has two levels: 0 to 4, and the others; within one the order is that of sending."""
    with ConnectionFactory(f"{url}?queue_type={kind}").create_connection() as connection:
        for priority in (1, 9, 0, 5, 3) if kind == "classic" else (9, 5, 3, 1, 0):
            send(connection, queue, str(priority), priority=priority)
        assert "".join(message.body for message in take(connection, queue, 5)) == received


def test_a_stream_is_read_from_the_next_message_on_and_keeps_all(amqp, connection):
    stream = declare(amqp, f"stream.{uuid.uuid4().hex}", **STREAM)
    send(connection, stream, "before")
    with connection.create_session() as session:
        readers = [session.create_consumer(stream) for _ in range(2)]
        send(connection, stream, "a", "b")
        for reader in readers:
            assert [reader.receive(timeout=PATIENCE).body for _ in "ab"] == ["a", "b"]


def test_a_message_that_a_full_queue_refuses_is_told(amqp, connection):
    """The broker rejects it without a reason; what was sent before stays."""
    full = declare(amqp, f"full.{uuid.uuid4().hex}", **FULL)
    with pytest.raises(TransactionRolledBackError, match="did not accept"):
        send(connection, full, *map(str, range(20)))  # the limit is not exact
    assert take(connection, full, 1)[0].body == "0"


def test_what_is_rejected_lands_where_the_operator_wants_it(amqp, url, connection):
    """By the queue's own dead letter exchange, after its own limit of failures."""
    dead = declare(amqp, f"dead.{uuid.uuid4().hex}", **{"x-queue-type": "quorum"})
    limited = {"x-queue-type": "quorum", "x-delivery-limit": 1, "x-dead-letter-exchange": ""}
    queue = declare(amqp, f"limited.{uuid.uuid4().hex}", **limited, **{"x-dead-letter-routing-key": dead.name})
    send(connection, queue, "poison")
    seen = []
    adapter = ResourceAdapter(url)

    @adapter.listener(queue.name)
    def handle(message):
        seen.append(message.delivery_count)
        raise ValueError("refused")

    with adapter:
        [letter] = take(connection, dead, 1)
    assert (letter.body, seen) == ("poison", [1, 2])


def test_the_administration_counts_purges_and_removes(connection, queue):
    admin = connection.admin
    assert (admin.depth(queue), admin.purge(queue)) == (Depth(0, 0, 0), 0)
    send(connection, queue, "a", "b")
    assert admin.depth(queue) == Depth(2, 0, 0)
    assert (admin.purge(queue), admin.depth(queue)) == (2, Depth(0, 0, 0))
    with (
        connection.create_session() as session,
        session.create_consumer(queue),
        pytest.raises(IllegalStateError, match="consumers"),
    ):
        admin.remove(queue)
    admin.remove(queue)
    with pytest.raises(InvalidDestinationError, match="no queue"):
        admin.remove(queue)
    with pytest.raises(TransactionRolledBackError, match="does not exist"):
        send(connection, queue, "to one that is gone")
    send(connection, queue, "declared again")
    assert take(connection, queue, 1)[0].body == "declared again"


def test_the_administration_lists_nothing_and_sets_nothing(connection, queue):
    with pytest.raises(NotSupportedError, match="lists_destinations"):
        connection.admin.destinations()
    with pytest.raises(NotSupportedError, match="policies"):
        connection.admin.settings(queue)
