"""Sessions that come and go: numbers of channels are used again, and no answer is taken for that of another."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Begin, End, Error, Open
from amqp_peer.values import Symbol

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from tests.unit.amqp.wire.account import encoded


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
