"""Messages that are released in order are redelivered in order."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Disposition
from amqp_peer.service import Kept, Store
from proton import Message

from jmsjca import AcknowledgeMode, ConnectionFactory
from jmsjca.destinations import Queue
from jmsjca.providers.amqp.delivery import ReturnOrder
from jmsjca.spi import Order
from tests.unit.providers.amqp.wire.cut_account import encoded

SENT = list("abcdef")
MODES = [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL]


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


class Hasty(Careless):
    """Once something has overtaken, sends again what comes back at once: in the order in which that goes back."""

    def give_back(self, messages, *, failed):
        if self.times:
            super().give_back(messages, failed=failed)
        else:
            self.queues["q"].extend(messages)


class HastyLater(Store):
    """Puts each in its place the first time that it comes back, and then sends it again at once."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def give_back(self, messages, *, failed):
        for each in messages:
            if each in self.seen:
                self.queues[each.queue].append(each)
            else:
                super().give_back([each], failed=failed)
            self.seen.add(each)


class Counted(Kept):
    """Encoded as brokers do it: what tells the failures changes, and nothing else. Knows how often it was sent."""

    sent = 0

    def with_header(self):
        self.sent += 1
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
        consumer.release(consumer.receive(1, SECONDS))
        found = []
        while len(found) < len(SENT):
            found += [delivery.message.body for delivery in consumer.receive(2, SECONDS)]
        return found

    return received


@pytest.mark.parametrize("place", range(len(SENT)))
@pytest.mark.parametrize("times", [1, 10])  # Artemis did so eight times in a row, with large messages
def test_it_comes_in_order(received, place, times):
    store = Careless(place, times)
    assert received(store) == SENT
    assert store.times < times


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


def recovered(stage, broker, mode, sent=SENT):
    """What comes after a session has recovered half of the messages."""
    with (
        ConnectionFactory(f"amqp://{stage(broker).peer.address}").create_connection() as connection,
        connection.create_session(acknowledge_mode=mode) as session,
        session.create_consumer(Queue("q")) as consumer,
    ):
        connection.start()
        assert [consumer.receive(SECONDS).body for _ in sent[:3]] == sent[:3]
        session.recover()
        again = [consumer.receive(SECONDS).body for _ in sent]
        session.acknowledge()
    return again


@pytest.mark.parametrize("mode", MODES)
def test_what_a_session_recovers_is_sent_once_more_and_not_again(stage, mode):
    """Nor is what it had taken ahead: messages that go to and fro may reach another consumer, out of order."""
    broker, kept = Broker(), [Counted("q", body, number) for number, body in enumerate(SENT)]
    broker.store.queues["q"].extend(kept)
    assert recovered(stage, broker, mode) == SENT
    assert {each.sent for each in kept} == {2}


@pytest.mark.parametrize("place", range(len(SENT)))
@pytest.mark.parametrize("mode", MODES)
def test_what_a_session_recovers_comes_in_order(stage, mode, place):
    """Also where it gives back one message after the other."""
    broker = Broker()
    broker.store = Careless(place, 1)
    for body in SENT:
        broker.store.put("q", encoded(body))
    assert recovered(stage, broker, mode) == SENT


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("store", [Store, HastyLater])
def test_messages_that_are_alike(stage, mode, store):
    broker, alike = Broker(), list("aabbcd")
    broker.store = store()
    kept = [Counted("q", body, number) for number, body in enumerate(alike)]
    broker.store.queues["q"].extend(kept)
    assert recovered(stage, broker, mode, alike) == alike
    assert {each.sent for each in kept} == {2}


class Came:
    """A delivery, as far as it is known again."""

    def __init__(self, sequence, body):
        self.sequence, self.encoded = sequence, encoded(body)


def came(bodies):
    return [Came(sequence, body) for sequence, body in enumerate(bodies, 1)]


def sequences(steps):
    return [[each.sequence for each in step] for step in steps]


def test_what_goes_back_is_awaited_before_what_went_back_earlier():
    """Without what of that is here already and goes back, too."""
    earlier = ReturnOrder.of(came("bcb"))
    assert ReturnOrder.of(came("ab")).merged_with(earlier, came("b")).hashes == ReturnOrder.of(came("abcb")).hashes
    assert ReturnOrder.of(came("b")).merged_with(earlier, []).hashes == ReturnOrder.of(came("bbcb")).hashes


def test_what_was_received_before_others_went_back_is_awaited_among_them():
    """Several units give theirs back one after the other, in any order."""
    a, b, c, d = came("abcd")
    awaited = ReturnOrder.of([b, d], newest=4)
    for late in (c, a):
        awaited = ReturnOrder.of([late], newest=4).merged_with(awaited, [])
    assert awaited.hashes == ReturnOrder.of([a, b, c, d]).hashes


def test_what_somebody_else_has_got_is_not_awaited():
    """Which shows when others came instead as often as is allowed."""
    given_up = ReturnOrder.of(came("c"))._replace(retries=0)
    assert ReturnOrder.of(came("a")).merged_with(given_up, []).hashes == ReturnOrder.of(came("a")).hashes


def test_what_is_awaited_has_a_bound():
    """Else it would grow with each rollback if somebody else gets what was taken ahead."""
    awaited = ReturnOrder.of(came("a"))
    for number in range(100):
        awaited = ReturnOrder.of(came([str(number)] * 100)).merged_with(awaited, [])
    assert len(awaited.hashes) < 10_000
    many = ReturnOrder.of(came(map(str, range(10_000))))
    assert many.merged_with(awaited, []).hashes[:10_000] == many.hashes


def test_what_is_alike_has_a_place_each():
    assert sequences(ReturnOrder.of(came("txt")).in_settlement_order(came("ttx"))) == [[1, 3], [2]]
    assert sequences(ReturnOrder.of(came("ab")).in_settlement_order(came("cba"))) == [[3], [2], [1]]


@pytest.mark.parametrize("place", range(len(SENT)))
def test_what_goes_back_as_it_came_instead_goes_back_in_order(received, place):
    """Else it would come in the wrong order again, until that is taken for somebody else's doing."""
    assert received(Hasty(place, 1)) == SENT


@pytest.mark.parametrize("place", range(len(SENT)))
def test_all_of_it_comes_though_the_order_stays_wrong(received, place):
    assert sorted(received(Careless(place, 1000))) == SENT
