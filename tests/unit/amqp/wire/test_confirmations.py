"""Confirmed acknowledgement at a broker that answers each change of credit: a long backlog, one message at a time."""

from amqp_peer import SECONDS, Broker

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from tests.unit.amqp.wire.account import encoded

_MANY = 1200  # more than may come unasked


def test_what_confirmations_ask_for_is_not_unasked(stage):
    broker = Broker("RabbitMQ")
    for number in range(_MANY):
        broker.store.put("/queue/q", encoded(str(number)))
    connection = stage(broker).connect(limits=Limits(prefetch_messages=1))
    consumer = connection.consumer(Queue("q"), window=1)
    for _ in range(_MANY):
        unit = connection.unit(atomic=False)
        unit.take(consumer.receive(1, SECONDS))
        unit.commit()
    assert not broker.store.queues["/queue/q"]
