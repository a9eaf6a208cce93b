"""Large messages that wait at the broker: what is ahead of its use is bounded in bytes, not only in number."""

import uuid

import pytest
from amqp_peer import SECONDS, Broker

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from tests.unit.amqp.wire.account import encoded
from tests.unit.amqp.wire.memory import MIB, growth_below

QUEUE = Queue("in")
LARGE = encoded("x" * (2 * MIB))
LIMITS = Limits(prefetch_messages=50, prefetch_bytes=5 * MIB)


def round_trips(connection):
    """What was asked for is here, and so is what was asked for when that came."""
    for _ in range(5):
        connection.check(Queue(f"another {uuid.uuid4()}"))


def settle(connection, deliveries):
    unit = connection.unit()
    unit.take(deliveries)
    unit.commit()


def test_memory_is_bounded_whatever_waits(stage):
    broker = Broker()
    for _ in range(40):
        broker.store.put("in", LARGE)
    here = stage(broker)
    connection = here.connect(limits=LIMITS)
    seen = here.peer.lines[0].frames
    with growth_below(40 * MIB):  # half of what waits: the buffers of both sides, and what is in hand, are in it
        consumer = connection.consumer(QUEUE)
        round_trips(connection)
        assert 40 - len(broker.store.queues["in"]) == 2
        for _ in range(20):
            settle(connection, consumer.receive(1, SECONDS))
            seen.clear()  # the peer keeps what it wrote


def test_a_message_larger_than_the_bound_passes_alone(stage):
    broker = Broker()
    for _ in range(3):
        broker.store.put("in", LARGE)
    connection = stage(broker).connect(limits=Limits(prefetch_bytes=MIB))
    consumer = connection.consumer(QUEUE)
    for left in (2, 1, 0):
        round_trips(connection)
        assert len(broker.store.queues["in"]) == left
        settle(connection, consumer.receive(9, SECONDS))


def test_small_ones_fill_the_window_after_the_first(stage):
    broker = Broker()
    for number in range(40):
        broker.store.put("in", encoded(str(number)))
    connection = stage(broker).connect(limits=Limits(prefetch_messages=30))
    consumer = connection.consumer(QUEUE)
    round_trips(connection)
    assert len(broker.store.queues["in"]) == 10
    assert [d.message.body for d in consumer.receive(30, SECONDS)] == [str(number) for number in range(30)]


@pytest.mark.parametrize("window", [0, 50])
def test_chunks_of_large_ones_are_small(stage, window):
    broker = Broker()
    for _ in range(6):
        broker.store.put("in", LARGE)
    connection = stage(broker).connect(limits=LIMITS)
    consumer = connection.consumer(QUEUE, window=window)
    sizes = []
    while sum(sizes) < 6:
        chunk = consumer.receive(6, SECONDS)
        sizes.append(len(chunk))
        settle(connection, chunk)
    assert max(sizes) <= 2


def test_looking_at_large_ones_takes_few_at_a_time(stage):
    broker = Broker()
    for _ in range(6):
        broker.store.put("in", LARGE)
    connection = stage(broker).connect(limits=LIMITS)
    sizes = [len(chunk) for chunk in connection.browse(QUEUE, limit=6)]
    assert max(sizes) <= 2
    assert sum(sizes) == 6
