"""Prefetch: with and without a window, by several threads, and brokers that answer a drain too early."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Attach, Flow, Source, Transfer
from amqp_peer.script import OPEN, drop, expect, reply, script, send

from jmsjca import ConnectionFactory, Limits, Outcome, ResourceAdapter
from jmsjca.destinations import Queue, TemporaryQueue, Topic
from jmsjca.errors import ConnectionLostError, InvalidDestinationError, NotSupportedError
from jmsjca.spi import Order
from tests.unit.inbound.listeners import Recorder
from tests.unit.providers.amqp.wire.cut_account import encoded

QUEUE = Queue("q")


def receive_all(consumer, number):
    found = []
    while len(found) < number:
        found += consumer.receive(number, SECONDS)
    return found


def test_what_failed_comes_back_counted_and_what_nobody_used_does_not(stage):
    broker = Broker()
    for body in "ab":
        broker.store.put("q", encoded(body))
    connection = stage(broker).connect()
    consumer = connection.consumer(QUEUE)
    for count in (1, 2, 3):
        failed, unused = receive_all(consumer, 2)
        assert [(failed.message.body, failed.count), (unused.message.body, unused.count)] == [("a", count), ("b", 1)]
        unit = connection.unit()
        unit.take([failed, unused])
        unit.rollback(unused=[unused])


def test_a_broker_that_drops_a_selector_is_not_taken_for_one_that_minds_it(stage):
    def drop_filter(service, frame):
        source = Source(**{**frame.body.source.fields, "filter": None})
        service.agree(frame, source=source)

    broker = Broker()
    broker.store.put("q", encoded("a"))
    broker.instead[Attach] = drop_filter
    with pytest.raises(NotSupportedError, match="does not support the filter jms-selector"):
        stage(broker).connect().consumer(QUEUE, selector="a = 1")
    assert len(broker.store.queues["q"]) == 1


def test_a_temporary_queue_of_another_connection_is_not_even_asked_for(stage):
    broker = Broker()
    with pytest.raises(InvalidDestinationError, match="another connection"):
        stage(broker).connect().consumer(TemporaryQueue("not ours"))
    assert Attach not in broker.seen


@pytest.mark.parametrize(("no_local", "told"), [(True, "(a = 1 OR b = 1)"), (False, "a = 1 OR b = 1")])
def test_a_selector_holds_also_where_what_is_sent_here_is_not_wanted(stage, no_local, told):
    """A broker that puts `AND` behind it would let everything through that its first half lets through."""
    asked = []

    def attach(service, frame):
        asked.append({str(name): each.value for name, each in frame.body.source.filter.items()})
        service.carry_out(frame)

    broker = Broker()
    broker.instead[Attach] = attach
    stage(broker).connect().consumer(Topic("t"), selector="a = 1 OR b = 1", no_local=no_local)
    assert [(found["jms-selector"], "no-local" in found) for found in asked] == [(told, no_local)]


def test_who_asks_for_no_more_gets_what_was_on_its_way_and_no_more(stage):
    """Although the first message tells that more would fit: that is for others."""
    broker = Broker()
    broker.instead[Flow] = lambda service, frame: frame.body.drain and service.carry_out(frame)
    for body in "abcdef":
        broker.store.put("q", encoded(body))
    connection = stage(broker).connect()
    found = connection.consumer(QUEUE, window=4).drain()
    broker.instead.clear()
    connection.check(QUEUE)
    assert [delivery.message.body for delivery in found] == ["a"]
    assert len(broker.store.queues["q"]) == 5


def test_a_closed_consumer_whose_message_is_in_a_unit_asks_for_no_more(stage):
    """Although messages come that nobody asked for, as they do at RabbitMQ when credit crosses them."""
    broker = Broker("RabbitMQ")
    for body in "abcdef":
        broker.store.put("/queue/q", encoded(body))
    connection = stage(broker).connect()
    consumer = connection.consumer(QUEUE, window=2)
    unit = connection.unit(atomic=False)
    unit.take(receive_all(consumer, 2))

    def give_more(service, frame):
        service.carry_out(frame)
        link = service.links[frame.channel, frame.body.handle]
        link.credit += 1
        service.deliver()
        broker.instead.clear()

    broker.instead[Flow] = give_more
    consumer.close()
    connection.check(QUEUE)
    before = broker.seen[Flow]
    unit.commit()
    assert broker.seen[Flow] == before + 1


NONE_AHEAD = Limits(prefetch_messages=0)


@pytest.fixture
def address(stage):
    broker = Broker()
    for body in "ab":
        broker.store.put("q", encoded(body))
    return f"amqp://{stage(broker).peer.address}"


def test_session(address):
    with ConnectionFactory(address, limits=NONE_AHEAD).create_connection() as connection:
        consumer = connection.create_session().create_consumer(Queue("q"))
        connection.start()
        assert [consumer.receive(SECONDS).body, consumer.receive_no_wait().body] == ["a", "b"]
        assert consumer.receive_no_wait() is None


def test_listener(address):
    recorder, seen = Recorder(), []
    with ResourceAdapter(address, limits=NONE_AHEAD, hooks=[recorder]) as adapter:
        adapter.listener("q")(lambda message: seen.append(message.body))
        adapter.start()
        for _ in "ab":
            recorder.await_outcome(Outcome.COMMITTED)
    assert seen == ["a", "b"]


@pytest.fixture
def asked():
    """Set when somebody asks for messages."""
    return threading.Event()


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("product", ["apache-activemq-artemis", "Apache Qpid Broker-J Core"])
def test_what_is_rolled_back_reaches_who_waits(stage, asked, product, order):
    """To roll back in order drains the credit of the thread that waits."""
    broker = Broker(product)
    broker.store.put("in", encoded("x"))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("in"), window=0, order=order)
    unit = connection.unit()
    unit.take(consumer.receive(1, SECONDS))

    def notice(service, frame):
        service.carry_out(frame)
        asked.set()

    broker.instead[Flow] = notice
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(consumer.receive, 5, SECONDS)
        assert asked.wait(SECONDS)
        unit.rollback()
        assert [delivery.message.body for delivery in waiting.result()] == ["x"]


class Hasty:
    """Gives one message, and answers the next drain without another one."""

    def __init__(self):
        self.done = False

    def __call__(self, service, frame):
        link, flow = service.links[frame.channel, frame.body.handle], frame.body
        if self.done or link.attach.role == SENDER or not link.given:
            service.carry_out(frame)
        elif flow.drain:
            self.done = True
            link.given = flow.delivery_count + flow.link_credit
            service.tell_credit(link, 0, drain=True)


def test_what_waits_is_found_all_the_same(stage):
    broker = Broker()
    broker.instead[Flow] = hasty = Hasty()
    for body in "abc":
        broker.store.put("q", encoded(body))
    consumer = stage(broker).connect().consumer(QUEUE)
    found = list(consumer.receive(1, SECONDS))
    while chunk := consumer.receive(9, 0):
        found += chunk
    assert hasty.done
    assert [delivery.message.body for delivery in found] == ["a", "b", "c"]


RECEIVING = (OPEN, expect(Attach), reply(), expect(Flow))
LOST_WHILE_DRAINING = (expect(Flow(drain=True)), drop)


def message(number):
    transfer = Transfer(handle=0, delivery_id=number, delivery_tag=str(number).encode(), message_format=0)
    return send(transfer, payload=encoded("x"))


def test_a_message_that_is_lost_with_the_connection_before_its_return_is_no_empty_queue(stage):
    here = stage(script(RECEIVING, message(0), expect(Flow), message(1), LOST_WHILE_DRAINING))
    consumer = here.connect().consumer(QUEUE, window=0)
    consumer.receive(2, SECONDS)
    with pytest.raises(ConnectionLostError):
        consumer.receive(2, None)


def test_a_connection_that_is_lost_while_a_receive_does_not_wait_is_no_empty_queue(stage):
    consumer = stage(script(RECEIVING, LOST_WHILE_DRAINING)).connect().consumer(QUEUE, window=0)
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, 0)


def test_a_connection_that_is_lost_during_a_drain_has_not_nothing_in_flight(stage):
    consumer = stage(script(RECEIVING, LOST_WHILE_DRAINING)).connect().consumer(QUEUE)
    with pytest.raises(ConnectionLostError):
        consumer.drain()


@pytest.mark.parametrize("order", [Order.PREFIX, Order.ANY])
def test_a_consumer_prefetches_as_its_window_of_the_moment_says(stage, order):
    broker = Broker()
    for body in "abcdef":
        broker.store.put("q", encoded(body))

    def waiting():
        return len(broker.store.queues["q"])

    consumer = stage(broker).connect().consumer(QUEUE, window=0, order=order)
    receive_all(consumer, 1)
    assert waiting() == 5
    consumer.resize(4)
    receive_all(consumer, 1)
    consumer.resize(0)
    prefetched = consumer.drain()
    assert len(prefetched) > 1
    assert waiting() + len(prefetched) == 4
    consumer.release(prefetched)
    assert [each.message.body for each in receive_all(consumer, 1)] == ["c"]
    assert consumer.drain() == []  # waits for what is in flight
    assert waiting() == 3
