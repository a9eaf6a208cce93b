"""Header fields of wrong types raise an error at access."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Described, UByte, UInt, ULong, encode

from jmsjca.destinations import Queue
from jmsjca.errors import MessageFormatError
from tests.unit.providers.amqp.wire.cut_account import encoded

HEADER = 0x70
WRONG = {
    "durable": ["yes"],
    "priority": [True, "high"],
    "time to live": [True, UByte(4), "long"],
    "first acquirer": [True, UByte(4), UInt(60_000), "first"],
    "delivery count": [True, UByte(4), UInt(60_000), True, "often"],
    "delivery count below zero": [True, UByte(4), UInt(60_000), True, -1],
    "all": [[1], [2], [3], [4], [5]],
    "the section": {"durable": True},
    "too many": [True] * 9,
}
LOOKED_AT = ("delivery_mode", "priority", "expiration", "redelivered", "delivery_count")


def told(message, name):
    """What a header says; None where it cannot be decoded."""
    try:
        return getattr(message, name)
    except MessageFormatError:
        return None


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("product", ["apache-activemq-artemis", "RabbitMQ"])
def test_a_header_of_a_wrong_type_harms_nothing_else(stage, product, wrong):
    broker = Broker(product)
    address = "/queue/in" if product == "RabbitMQ" else "in"
    broker.store.put(address, encode(Described(ULong(HEADER), WRONG[wrong])) + encoded("with it"))
    broker.store.put(address, encoded("behind it"))
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("in"))
    deliveries = [consumer.receive(1, SECONDS)[0] for _ in range(2)]
    assert [d.message.body for d in deliveries] == ["with it", "behind it"]
    assert deliveries[0].count in (1, None)
    [told(deliveries[0].message, name) for name in LOOKED_AT]  # nothing but MessageFormatError
    unit = connection.unit(atomic=connection.capabilities.atomic)
    unit.take(deliveries)
    unit.commit()
    here.close()
    assert not here.told
    assert not broker.store.queues[address]


@pytest.mark.parametrize("wrong", ["priority", "time to live", "the section", "all"])
def test_what_cannot_be_a_header_says_so(stage, wrong):
    broker = Broker()
    broker.store.put("in", encode(Described(ULong(HEADER), WRONG[wrong])) + encoded("x"))
    [delivery] = stage(broker).connect().consumer(Queue("in")).receive(1, SECONDS)
    name = "expiration" if wrong == "time to live" else "priority"
    with pytest.raises(MessageFormatError):
        getattr(delivery.message, name)
