"""Brokers answer the messages of a unit in any order, one by one or many at a time."""

import random

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import Transfer

from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from tests.unit.amqp.wire.account import body_of

COUNT = 20
ORDERS = {
    "as sent": range(COUNT),
    "backwards": range(COUNT)[::-1],
    "the first one last": [*range(1, COUNT), 0],
    "mixed": random.Random(7).sample(range(COUNT), COUNT),
}


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_a_unit_ends_when_all_are_answered(stage, order, atomic):
    broker, frames = Broker(), []
    connection = stage(broker).connect()

    def hold(service, frame):
        frames.append(frame)
        if len(frames) == COUNT:
            for number in ORDERS[order]:
                service.carry_out(frames[number])
            frames.clear()

    broker.instead[Transfer] = hold
    for _ in range(3):  # proton uses the deliveries of one unit for the next
        unit = connection.unit(atomic=atomic)
        for number in range(COUNT):
            unit.send(TextMessage(str(number)), Queue("q"))
        unit.commit()
    bodies = [body_of(kept.payload) for kept in broker.store.queues["q"]]
    assert bodies == [str(number) for number in ORDERS[order]] * 3
