"""Consumers that are closed while a unit holds a message: their links end with the unit, however that ends."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import RECEIVER, Attach, Detach, Discharge, Error, Transfer

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from jmsjca.messages import TextMessage
from tests.unit.amqp.wire.account import encoded

GONE = Error(condition="amqp:resource-limit-exceeded", description="gone")
QUEUES = {"apache-activemq-artemis": "q", "RabbitMQ": "/queue/q"}
ENDS = {
    "committed": lambda unit: unit.commit(),
    "committed without proof": lambda unit: unit.commit(confirmed=False),
    "rolled back": lambda unit: unit.rollback(),
}


class Holding:
    """A unit that holds the message of a closed consumer, whose link is not at its end."""

    def __init__(self, stage, product, *, atomic):
        self.broker, self.ended = Broker(product), []
        self.broker.store.put(QUEUES[product], encoded("x"))
        self.broker.instead[Detach] = self.note
        self.connection = stage(self.broker).connect()
        consumer = self.connection.consumer(Queue("q"))
        self.unit = self.connection.unit(atomic=atomic)
        self.unit.take(consumer.receive(1, SECONDS))
        consumer.close()
        assert not self.ended

    def note(self, service, frame):
        link = service.links.get((frame.channel, frame.body.handle))
        if link is not None and link.attach.role == RECEIVER:
            self.ended.append(link.attach.source.address)
        service.carry_out(frame)


@pytest.fixture(params=[("apache-activemq-artemis", True), ("apache-activemq-artemis", False), ("RabbitMQ", False)])
def holding(stage, request):
    product, atomic = request.param
    return Holding(stage, product, atomic=atomic)


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_with_the_unit(holding, end):
    ENDS[end](holding.unit)
    assert len(holding.ended) == 1


@pytest.mark.parametrize("step", [Attach, Transfer])
def test_it_ends_with_a_unit_whose_message_is_refused(holding, step):
    holding.unit.send(TextMessage("y"), Queue("out"))
    holding.broker.instead[step] = refuse
    with pytest.raises(JMSError, match="gone"):
        holding.unit.commit()
    assert len(holding.ended) == 1


def test_it_ends_with_a_unit_in_doubt(stage):
    """The coordinator ended instead of answering."""
    holding = Holding(stage, "apache-activemq-artemis", atomic=True)
    holding.broker.instead[Discharge] = refuse
    with pytest.raises(JMSError, match="gone"):
        holding.unit.commit()
    assert len(holding.ended) == 1


def refuse(service, frame):
    if isinstance(frame.body, Attach):
        service.agree(frame, source=None, target=None)
    service.detach(frame, GONE)
