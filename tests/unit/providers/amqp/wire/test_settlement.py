"""Acknowledgements: confirmed, and many messages in one disposition."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Accepted, Disposition, Flow, Released

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError
from jmsjca.providers.amqp.unit import acknowledge_confirmed
from jmsjca.spi import Order
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

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


_MANY = 1200  # more than may come unasked
_UNITS = 4
_FRAMES = 2 * _UNITS  # in which they end, at most: an acknowledgement and a question each


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


def test_units_that_end_at_one_time_do_not_wait_for_each_other(stage):
    """The broker answers nobody before it has the acknowledgements of all."""
    broker, held = Broker("RabbitMQ"), []
    for number in range(_UNITS):
        broker.store.put("/queue/q", encoded(str(number)))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("q"), window=2 * _UNITS)
    units = [connection.unit(atomic=False) for _ in range(_UNITS)]
    for unit in units:
        unit.take(consumer.receive(1, SECONDS))

    def settle(service, frame):
        service.carry_out(frame)
        if not service._unsettled:
            del broker.instead[Flow]
            while held:
                service.carry_out(held.pop())

    broker.instead.update({Flow: lambda _, frame: held.append(frame), Disposition: settle})
    with ThreadPoolExecutor(_UNITS) as pool:
        for ended in [pool.submit(unit.commit, timeout=SECONDS) for unit in units]:
            assert ended.result(SECONDS) is None


@pytest.mark.parametrize("frame", range(1, _FRAMES))
def test_what_was_confirmed_at_one_time_does_not_come_again(stage, frame):
    """The connection is cut at one of the frames in which several units end."""
    broker, frames = Broker("RabbitMQ"), count(1)
    for number in range(_UNITS):
        broker.store.put("/queue/q", encoded(str(number)))
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("q"), window=2 * _UNITS)
    known, units = [], [connection.unit(atomic=False) for _ in range(_UNITS)]
    for unit in units:
        unit.take(consumer.receive(1, SECONDS))

    def cut(service, what):
        if next(frames) == frame:
            service.line.end()
        service.carry_out(what)

    def end(number):
        with suppress(ConnectionLostError, TransactionInDoubtError):
            units[number].commit()
            known.append(str(number))

    broker.instead = {Disposition: cut, Flow: cut}
    with ThreadPoolExecutor(_UNITS) as pool:
        list(pool.map(end, range(_UNITS)))
    connection.close(timeout=0)
    here.connect()  # so the broker has noticed the end of the first one
    left = {body_of(kept.payload) for kept in broker.store.queues["/queue/q"]}
    assert left.isdisjoint(known)
    assert left or frame > 1


@pytest.mark.parametrize("product", QUEUES)
def test_a_commit_that_the_close_of_its_connection_overtakes_is_in_doubt(stage, product):
    """That ends the links of subscriptions, so that the acknowledgement is not written."""
    broker = Broker(product)
    broker.store.put(QUEUES[product], encoded("a"))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("q"))
    taken = {consumer: consumer.receive(1, SECONDS)}
    consumer.detach()
    with pytest.raises(TransactionInDoubtError, match="was closed"):
        acknowledge_confirmed(connection._links, taken, SECONDS)
    assert Disposition not in broker.seen
