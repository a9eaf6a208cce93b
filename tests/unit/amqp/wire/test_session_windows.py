"""The window of a session (AMQP 1.0, part 2, section 2.5.6): no frame is written for which the broker has no room."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Attach, Flow, Open, Transfer
from amqp_peer.values import Symbol

from jmsjca.destinations import Queue
from jmsjca.messages import BytesMessage
from tests.unit.amqp.wire.account import encoded

ROOM = 2  # frames
FRAME_BYTES = 1000
MUCH = b"x" * 4500  # more than four frames


class Narrow:
    """A broker that gives much credit, and has room for few frames until it is told to make more."""

    def __init__(self):
        self.broker = Broker("RabbitMQ")
        self.came, self.full = 0, threading.Event()
        self.broker.instead.update({Open: self._open, Attach: self._attach, Transfer: self._take})

    def make_room(self):
        self.full.clear()
        room = Flow(
            next_incoming_id=self.came,
            incoming_window=ROOM,
            next_outgoing_id=0,
            outgoing_window=1,
            handle=self.link.handle,
            delivery_count=self.link.given,
            link_credit=100,
        )
        self.service.line.write(room, self.link.channel)

    def _open(self, service, frame):
        service.agree(frame, properties={Symbol("product"): "RabbitMQ"}, max_frame_size=FRAME_BYTES)

    def _attach(self, service, frame):
        if frame.body.role == SENDER:
            self.service, self.link = service, service.attach(frame)
            self.make_room()
        else:
            service.carry_out(frame)

    def _take(self, service, frame):
        self.came += 1
        service.carry_out(frame)
        if self.came % ROOM == 0:
            self.full.set()


@pytest.mark.parametrize("bodies", [[b"1", b"2", b"3", b"4", b"5"], [MUCH]], ids=["messages", "parts"])
def test_nothing_is_sent_for_which_a_session_has_no_room(stage, bodies):
    """What another session asks for meanwhile comes behind all that could be written."""
    narrow = Narrow()
    narrow.broker.store.put("/queue/other", encoded("x"))
    connection = stage(narrow.broker).connect()
    unit = connection.unit(atomic=False)
    for body in bodies:
        unit.send(BytesMessage(body), Queue("q"))
    with ThreadPoolExecutor(1) as pool:
        committed = pool.submit(unit.commit)
        for times in (1, 2):
            assert narrow.full.wait(SECONDS)
            connection.consumer(Queue("other")).close()
            assert narrow.came == times * ROOM
            narrow.make_room()
        committed.result(SECONDS)
    assert narrow.came == 5
    assert len(narrow.broker.store.queues["/queue/q"]) == len(bodies)
