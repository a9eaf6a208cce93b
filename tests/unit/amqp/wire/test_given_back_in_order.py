"""What goes back in order comes again in order, also from a broker that puts it back in another one now and then."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Disposition
from amqp_peer.store import Kept, Store
from proton import Message

from jmsjca.destinations import Queue
from jmsjca.spi import Order
from tests.unit.amqp.wire.account import encoded

SENT = list("abcdef")


class Careless(Store):
    """Lets a later message overtake another one for some time, when all have come back."""

    def __init__(self, place, times):
        super().__init__()
        self.place = place
        self.times = times

    def give_back(self, messages, *, failed):
        super().give_back(messages, failed=failed)
        queue = self.queues["q"]
        if self.times and len(queue) == len(SENT):
            self.times -= 1
            last = queue.pop()
            queue.insert(self.place, last)


class Counted(Kept):
    """Encoded as brokers do it: what tells the failures changes, and nothing else."""

    def with_header(self):
        return Message(body=self.payload, delivery_count=self.failures).encode()


@pytest.fixture
def received(stage):
    """Tells what comes when the first of all that were received ahead goes back."""

    def received(store):
        broker = Broker()
        broker.store = store
        for body in SENT:
            store.put("q", encoded(body))
        consumer = stage(broker).connect().consumer(Queue("q"), order=Order.PREFIX)
        consumer.give_back(consumer.receive(1, SECONDS))
        found = []
        while len(found) < len(SENT):
            found += [delivery.message.body for delivery in consumer.receive(2, SECONDS)]
        return found

    return received


@pytest.mark.parametrize("place", range(len(SENT)))
def test_it_comes_in_order(received, place):
    store = Careless(place, 1)
    assert received(store) == SENT
    assert store.times == 0


def test_what_failed_is_known_again_though_its_count_has_changed(stage):
    """Else all that comes would go back again and again."""
    broker = Broker()
    broker.store.queues["q"].extend(Counted("q", body, number) for number, body in enumerate(SENT))
    connection = stage(broker).connect()
    consumer, received = connection.consumer(Queue("q"), order=Order.PREFIX), []
    while len(received) < len(SENT):
        received += consumer.receive(len(SENT), SECONDS)
    unit = connection.unit()
    unit.take(received)
    unit.rollback()
    again = consumer.receive(1, SECONDS)
    connection.check(Queue("q"))  # a round trip
    assert [(delivery.message.body, delivery.count) for delivery in again] == [("a", 2)]
    assert broker.seen[Disposition] == len(SENT)


@pytest.mark.parametrize("place", range(len(SENT)))
def test_all_of_it_comes_though_the_order_stays_wrong(received, place):
    assert sorted(received(Careless(place, 1000))) == SENT
