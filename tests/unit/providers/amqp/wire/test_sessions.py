"""AMQP sessions: channel numbers and windows."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Symbol
from amqp_peer.performatives import SENDER, Attach, Begin, End, Error, Flow, Open, Transfer

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.messages import BytesMessage
from tests.unit.providers.amqp.wire.cut_account import encoded


def begins(here):
    return sum(
        frame.body.remote_channel is None for frame in here.peer.lines[0].frames if isinstance(frame.body, Begin)
    )


def test_no_session_begins_before_the_end_of_another_is_answered(stage, impatient):
    """It would have the same number, and RabbitMQ may answer the end behind the begin: the new one seems to end."""
    broker = Broker("RabbitMQ")
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("in"))
    broker.instead[End] = lambda service, frame: service.peer.leave_unanswered()
    consumer.close()
    impatient(here.peer)
    with pytest.raises(ConnectionLostError, match="did not answer"):
        connection.consumer(Queue("in"))
    assert begins(here) == 1


def test_an_end_that_is_never_answered_holds_nobody_up_for_long(stage):
    """RabbitMQ forgets to answer now and then."""
    broker = Broker("RabbitMQ")
    here = stage(broker)
    connection = here.connect()
    broker.instead[End] = lambda service, frame: None
    for _ in range(2):
        connection.consumer(Queue("in")).close()
    assert begins(here) == 2
    assert not here.told


def test_who_waits_for_the_end_of_another_begins_when_it_is_answered(stage):
    """Many close and open at once; whoever comes first, each gets what is his."""
    broker = Broker("RabbitMQ")
    connection = stage(broker).connect()

    def come_and_go(name):
        broker.store.put(f"/queue/{name}", encoded(name))
        for _ in range(20):
            consumer = connection.consumer(Queue(name), window=0)
            assert consumer.receive(1, SECONDS)[0].message.body == name
            consumer.close()

    with ThreadPoolExecutor() as pool:
        list(pool.map(come_and_go, "abcd"))


def test_a_session_that_the_broker_ends_is_waited_for_by_nobody(stage):
    broker = Broker("RabbitMQ")
    connection = stage(broker).connect()
    broker.instead[Attach] = lambda service, frame: service.end(frame, Error(condition="amqp:internal-error"))
    for _ in range(3):
        with pytest.raises(JMSError):
            connection.consumer(Queue("in"))
    del broker.instead[Attach]
    connection.consumer(Queue("in")).close()


def test_the_last_session_that_a_broker_allows_can_be_replaced_before_its_end_is_answered(stage):
    broker = Broker("RabbitMQ")
    product = {Symbol("product"): broker.product}
    broker.instead[Open] = lambda service, frame: service.agree(frame, channel_max=0, properties=product)
    broker.instead[End] = lambda service, frame: None
    connection = stage(broker).connect()
    connection.consumer(Queue("in")).close()
    connection.consumer(Queue("in"))
    with pytest.raises(ResourceAllocationError, match="allows 1 sessions"):
        connection.consumer(Queue("other"))


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
