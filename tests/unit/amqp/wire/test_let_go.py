"""What is closed is let go, although the connection lasts."""

import gc
from itertools import count

import cproton
import pytest
from amqp_peer import SECONDS
from amqp_peer.broker import Broker
from amqp_peer.performatives import Attach

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import JMSError
from tests.unit.amqp.wire.account import encoded

TIMES = 70  # more than the senders that are kept for the next unit
QUEUE = Queue("q")
numbers = count()


def receive_from_a_queue(connection):
    consumer = connection.consumer(QUEUE)
    consumer.receive(1, 0)
    consumer.close()


def receive_from_a_durable_subscription(connection):
    connection.consumer(Subscription(Topic("t"), "s")).close()


def look_at_a_queue(connection):
    list(connection.browse(QUEUE))


def send_to_ever_new_queues(connection):
    connection.check(Queue(f"q{next(numbers)}"))


@pytest.mark.parametrize(
    "use", [receive_from_a_queue, receive_from_a_durable_subscription, look_at_a_queue, send_to_ever_new_queues]
)
def test_what_is_closed_is_let_go(stage, use):
    connection = stage(Broker()).connect(client_id="c")
    for _ in range(TIMES):
        use(connection)
    before = kept(connection)
    for _ in range(TIMES):
        use(connection)
    assert kept(connection) <= before + 4  # the broker may still have to answer the last end


def test_what_the_broker_refuses_is_let_go(stage):
    broker = Broker()
    connection = stage(broker).connect()
    broker.instead[Attach] = lambda service, frame: service.carry_out(frame) or service.detach(frame)
    before = kept(connection)
    for _ in range(TIMES):
        with pytest.raises(JMSError):
            connection.consumer(QUEUE).receive(1, 30)
    assert kept(connection) <= before + 4


def look_at_one(stage):
    broker = Broker()
    broker.store.put("q", encoded("a"))
    connection = stage(broker).connect()
    looking = connection.browse(QUEUE)
    assert len(next(looking)) == 1
    return connection, looking


def test_a_look_that_nobody_ends_is_ended_by_whatever_thread_collects_it(stage):
    """Also by that of the connection, which cannot wait for itself."""
    connection, looking = look_at_one(stage)
    circle = [looking]
    circle.append(circle)
    before = kept(connection)
    del looking, circle
    connection._engine.submit(gc.collect).result(SECONDS)
    connection.check(QUEUE)  # a round trip, which may overtake the end of the link
    connection.check(Queue("another"))
    assert kept(connection) < before + 3  # those of the checks, one in its place


def test_a_look_can_be_ended_after_its_connection(stage):
    connection, looking = look_at_one(stage)
    connection.close()
    looking.close()


def kept(connection):
    """How many sessions and links proton keeps, among others: those that have attributes of Python."""
    connection._engine.call(int)
    gc.collect()
    return len(cproton.retained_objects)
