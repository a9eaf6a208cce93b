"""Large messages: the prefetch is bounded in bytes, and large units are written in pieces."""

import threading
import uuid

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Transfer

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.engine import proton_ffi
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded
from tests.unit.providers.amqp.wire.memory_growth import MIB, growth_below

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


COUNT, LATER = 100, 80
BODIES = [f"{number:0>1024}" for number in range(COUNT)]


class Begun:
    """A broker that tells when the first message has come, and proton, which waits for that at a later one."""

    def __init__(self, stage, monkeypatch):
        self._came, self._handed, self._send = threading.Event(), 0, proton_ffi._send
        self.in_time = None
        self.broker = Broker("Apache Qpid Broker-J Core")
        self.broker.instead[Transfer] = self._note
        self.connection = stage(self.broker).connect()
        monkeypatch.setattr(proton_ffi, "_send", self._wait)

    def bodies(self):
        return [body_of(kept.payload) for kept in self.broker.store.queues["out"]]

    def _note(self, service, frame):
        if service.links[frame.channel, frame.body.handle].attach.target.address == "out":
            self._came.set()
        service.carry_out(frame)

    def _wait(self, link, payload, size):
        self._handed += size > len(BODIES[0])
        if self._handed == LATER and self.in_time is None:
            self.in_time = self._came.wait(SECONDS)
        return self._send(link, payload, size)


@pytest.mark.parametrize("atomic", [True, False])
def test_the_broker_begins_before_all_is_handed_over(stage, monkeypatch, atomic):
    begun = Begun(stage, monkeypatch)
    unit = begun.connection.unit(atomic=atomic)
    for body in BODIES:
        unit.send(TextMessage(body), Queue("out"))
    unit.commit()
    assert begun.in_time
    assert begun.bodies() == BODIES
