"""The largest frame that is taken: one that says it is larger is refused at its head, before it takes memory."""

import pytest
from amqp_peer import SECONDS
from amqp_peer.frames import frame
from amqp_peer.performatives import Attach, Flow, Transfer
from amqp_peer.script import OPEN, expect, reply, script, send, silence

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError
from tests.unit.amqp.wire.account import encoded

LIMIT = 256 * 1024
RECEIVING = (OPEN, expect(Attach), reply(), expect(Flow))


def of_size(size):
    """A message in one frame of so many bytes."""
    transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0)
    around = len(frame(transfer, payload=encoded("")))
    return frame(transfer, payload=encoded("x" * (size - around)))


def test_a_frame_of_the_limit_is_taken(stage):
    data = of_size(LIMIT)
    assert len(data) == LIMIT
    connection = stage(script(RECEIVING, send(data))).connect()
    (delivery,) = connection.consumer(Queue("q")).receive(1, SECONDS)
    assert set(delivery.message.body) == {"x"}


@pytest.mark.parametrize("size", [LIMIT + 1, 2**31, 2**32 - 1])
def test_a_frame_above_the_limit_is_refused_though_little_of_it_came(stage, size):
    here = stage(script(RECEIVING, send(size.to_bytes(4, "big") + of_size(LIMIT)[4:1000]), silence))
    consumer = here.connect("heartbeat=0").consumer(Queue("q"))
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, SECONDS)
    assert here.lost.wait(SECONDS)


def test_a_frame_just_above_the_limit_is_refused_though_all_of_it_came(stage):
    here = stage(script(RECEIVING, send(of_size(LIMIT + 1)), silence))
    consumer = here.connect("heartbeat=0").consumer(Queue("q"))
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, SECONDS)
