"""Messages that are nested without end, over the wire: only they are poison, and what comes behind is delivered."""

import struct
from contextlib import suppress

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.values import Described, ULong, encode

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import MessageFormatError
from tests.unit.amqp.wire.account import encoded
from tests.unit.amqp.wire.memory import MIB, growth_below

DEPTH = 100_000
QUEUE = Queue("in")


def lists():
    """A list in a list in a list, of exact sizes and counts."""
    data = b"\x45"
    parts = [struct.pack(">BII", 0xD0, 9 * depth + len(data) + 4, 1) for depth in range(DEPTH - 1, -1, -1)]
    return b"".join(parts) + data


def maps():
    parts = [struct.pack(">BII", 0xD1, 10 * depth + 6, 2) + b"\x43" for depth in range(DEPTH - 1, -1, -1)]
    return b"".join(parts) + b"\x40"


def descriptors():
    return b"\0" * DEPTH + b"\x43" * (DEPTH + 1)


def values():
    """A described value as the value of a described value."""
    return b"\0\x43" * DEPTH + b"\x40"


def arrays():
    parts = [struct.pack(">BIIB", 0xF0, 10 * depth + 5, 1, 0xF0) for depth in range(DEPTH, 0, -1)]
    return b"".join(parts)[:-1] + b"\x40"


DEEP = {make.__name__: make() for make in (lists, maps, descriptors, values, arrays)}
SECTIONS = {"header": 0x70, "annotations": 0x72, "properties": 0x73, "application properties": 0x74, "body": 0x77}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("shape", DEEP)
def test_what_is_nested_without_end(stage, shape, section):
    broker = Broker()
    deep = b"\0\x53" + bytes([SECTIONS[section]]) + DEEP[shape]
    poison = encode(Described(ULong(0x70), [True])) + deep if section == "body" else deep + encoded("x")
    with growth_below(64 * MIB):
        here = stage(broker)
        connection = here.connect(limits=Limits(message_bytes=4 * MIB))
        for payload in (encoded("before"), poison, encoded("behind")):
            broker.store.put("in", payload)
        consumer = connection.consumer(QUEUE, window=3)
        taken = [delivery for _ in range(3) for delivery in consumer.receive(1, SECONDS)]
        assert taken[0].message.body == "before"
        assert taken[2].message.body == "behind"
        _look_at(taken[1], readable=section == "header")  # what a broker says of its deliveries, not the sender
        unit = connection.unit()
        unit.take(taken)
        unit.commit()
        assert not here.told


def _look_at(poison, *, readable):
    """What nobody reads does no harm; what is read says that it cannot be."""
    assert poison.count >= 1
    assert poison.raw
    assert poison.redelivered in {True, False}
    if readable:
        with suppress(MessageFormatError):
            _read_all(poison)
        return
    with pytest.raises(MessageFormatError) as told:
        _read_all(poison)
    assert len(str(told.value)) < 1000


def _read_all(delivery):
    message = delivery.message
    for look in (message.get_property_names, lambda: message.body, lambda: message.type, lambda: message.reply_to):
        look()
