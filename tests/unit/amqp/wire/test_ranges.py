"""Many messages that end alike, one behind the other, are settled in one frame: it tells the first and the last."""

import threading

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Accepted, Disposition, Released

from jmsjca.destinations import Queue
from jmsjca.spi import Order
from tests.unit.amqp.wire.account import encoded

MANY = 100
QUEUES = {"RabbitMQ": "/queue/q", "apache-activemq-artemis": "q"}


class Settled:
    """A broker of many messages, a client that has received them all, and the frames that settle them."""

    def __init__(self, stage, product):
        broker, self.frames, self.done = Broker(product), [], threading.Event()
        for number in range(MANY):
            broker.store.put(QUEUES[product], encoded(str(number)))
        broker.instead[Disposition] = self._settle
        self.connection = stage(broker).connect()
        self.consumer, self.deliveries = self.connection.consumer(Queue("q"), order=Order.ANY, window=MANY), []
        while len(self.deliveries) < MANY:
            self.deliveries += self.consumer.receive(MANY, SECONDS)

    def _settle(self, service, frame):
        self.frames.append(frame.body)
        service.carry_out(frame)
        if sum((body.last or body.first) - body.first + 1 for body in self.frames) == MANY:
            self.done.set()

    def accept_nowait(self, delivery):
        unit = self.connection.unit(atomic=False)
        unit.take([delivery])
        unit.commit(confirmed=False)

    def told(self):
        """What each frame told."""
        assert self.done.wait(SECONDS)
        return [(type(body.state), body.first, body.last, body.settled) for body in self.frames]


@pytest.mark.parametrize(
    ("product", "confirmed"), [("RabbitMQ", True), ("RabbitMQ", False), ("apache-activemq-artemis", False)]
)
def test_what_is_accepted_outside_of_transactions(stage, product, confirmed):
    settled = Settled(stage, product)
    unit = settled.connection.unit(atomic=False)
    unit.take(settled.deliveries)
    unit.commit(confirmed=confirmed)
    assert settled.told() == [(Accepted, 0, MANY - 1, True)]


@pytest.mark.parametrize("product", QUEUES)
def test_what_is_accepted_one_by_one_needs_nothing_to_follow_it(stage, product):
    """Such acknowledgements wait a moment for more of them, and not for anything else."""
    settled = Settled(stage, product)
    for delivery in settled.deliveries:
        settled.accept_nowait(delivery)
    assert {(kind, is_settled) for kind, _, _, is_settled in settled.told()} == {(Accepted, True)}


@pytest.mark.parametrize("product", QUEUES)
def test_what_is_accepted_one_by_one_while_the_thread_is_busy_is_told_together(stage, product):
    settled, free = Settled(stage, product), threading.Event()
    settled.connection._engine.submit(lambda: free.wait(SECONDS))
    for delivery in settled.deliveries:
        settled.accept_nowait(delivery)
    free.set()
    assert settled.told() == [(Accepted, 0, MANY - 1, True)]


def test_what_is_accepted_while_others_are_told_is_told_as_well(stage, monkeypatch):
    settled = Settled(stage, "RabbitMQ")
    settle, (last, *others) = settled.consumer.settle, reversed(settled.deliveries)

    def settle_while_another_comes(*args):
        monkeypatch.undo()
        settled.accept_nowait(last)
        settle(*args)

    monkeypatch.setattr(settled.consumer, "settle", settle_while_another_comes)
    for delivery in others:
        settled.accept_nowait(delivery)
    assert {kind for kind, *_ in settled.told()} == {Accepted}


def test_what_is_given_back(stage):
    settled = Settled(stage, "apache-activemq-artemis")
    settled.consumer.release(settled.deliveries)
    assert settled.told() == [(Released, 0, MANY - 1, True)]


@pytest.mark.parametrize("product", QUEUES)
def test_what_a_closed_consumer_lets_go(stage, product):
    settled = Settled(stage, product)
    settled.consumer.close()
    assert settled.told() == [(Released, 0, MANY - 1, True)]
