"""Closing consumers and connections: everything held is released, and nothing stays behind."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import cproton
import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import RECEIVER, Attach, Close, Detach, Discharge, Error, Transfer
from preemption import Preemption

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp import connection as module
from jmsjca.providers.amqp import unit as unit_module
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.common import unit as note
from tests.unit.inbound.deliveries import until
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

QUEUE = Queue("q")


@pytest.fixture
def broker():
    broker = Broker()
    for body in "abc":
        broker.store.put("q", encoded(body))
    return broker


@pytest.fixture
def at_close(broker):
    """Failures of what was in the queue when the client closed the connection, by the bodies."""
    found = {}

    def look(service, frame):
        found.update({body_of(kept.payload): kept.failures for kept in broker.store.queues["q"]})
        service.carry_out(frame)

    broker.instead[Close] = look
    return found


def test_what_an_open_unit_took_goes_back_counted_and_the_rest_does_not(stage, broker, at_close):
    """The end of the connection itself counts differently at each broker."""
    connection = stage(broker).connect()
    consumer, received = connection.consumer(QUEUE, window=3), []
    while len(received) < 3:
        received += consumer.receive(3, SECONDS)
    unit = connection.unit()
    unit.take(received[:1])
    connection.close()
    assert at_close == {"a": 1, "b": 0, "c": 0}


def test_an_open_unit_ends_with_its_connection(stage, broker):
    connection = stage(broker).connect()
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE, window=0).receive(1, SECONDS))
    connection.close()
    with pytest.raises(ConnectionLostError, match="nothing was sent, and the messages that it took are redelivered"):
        unit.commit()


def test_what_a_unit_took_that_commits_meanwhile_is_left_to_it(stage, broker, at_close):
    """Else it could come again although it was committed."""
    sent = threading.Event()
    broker.instead[Transfer] = lambda service, frame: sent.set()
    connection = stage(broker).connect()
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE, window=0).receive(1, SECONDS))
    unit.send(TextMessage("x"), QUEUE)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(unit.commit)
        assert sent.wait(SECONDS)
        connection.close()
        with pytest.raises(TransactionRolledBackError):
            committing.result(SECONDS)
    assert at_close == {"b": 0, "c": 0}


def test_what_a_unit_took_from_a_consumer_that_is_closed_goes_back_counted(stage, broker, at_close):
    connection = stage(broker).connect()
    consumer, unit = connection.consumer(QUEUE, window=0), connection.unit()
    unit.take(consumer.receive(1, SECONDS))
    consumer.close()
    connection.close()
    assert at_close == {"a": 1, "b": 0, "c": 0}
    with pytest.raises(ConnectionLostError):
        unit.commit()


def test_a_unit_that_only_sends_is_refused_by_a_connection_that_closes(stage, broker):
    """At once, and not in doubt: nothing was sent."""
    connection, refusals = stage(broker).connect(), []
    unit = connection.unit(atomic=False)
    unit.send(TextMessage("x"), QUEUE)

    def commit(service, frame):
        try:
            unit.commit()
        except ConnectionLostError as error:
            refusals.append(error)
        service.carry_out(frame)

    broker.instead[Close] = commit
    connection.close()
    assert len(refusals) == 1


@pytest.mark.parametrize("whole", [True, False], ids=["close", "its step"])
@pytest.mark.parametrize("place", [note, unit_module], ids=["note", "unit"])
def test_a_unit_that_commits_while_the_connection_is_closed(stage, broker, place, whole):
    """Either it happens, or what it took comes again: never both, at whichever step of the commit that was."""
    here = stage(broker)
    for step in count(1):
        connection = here.connect()
        unit = connection.unit()
        unit.take(connection.consumer(QUEUE, window=0).receive(1, SECONDS))
        unit.send(TextMessage("x"), Queue("out"))
        close = connection.close if whole else unit.mark_lost
        halted = Preemption(step, place.__file__).play(lambda u=unit: commit(u), close)
        connection.close()
        until(lambda: len(broker.store.queues["q"]) == 3 - len(broker.store.queues["out"]))
        if not halted:
            break
        restore(broker)
    assert step > 1


@pytest.mark.parametrize("end", ["close", "rollback"])
def test_what_goes_back_can_be_taken_no_more(stage, broker, monkeypatch, end):
    """A unit that takes it, and sends, while its consumer lets it go, or what came before it, does neither."""
    connection, forget = stage(broker).connect(), AMQPConsumer.forget
    consumer, earlier, unit = connection.consumer(QUEUE, window=0), connection.unit(), connection.unit()
    first, second = (consumer.receive(1, SECONDS)[0] for _ in range(2))
    earlier.take([first])
    unit.send(TextMessage("x"), Queue("out"))
    monkeypatch.setattr(AMQPConsumer, "forget", lambda *args: (take(unit, second), forget(*args)))
    consumer.close() if end == "close" else earlier.rollback()
    connection.close()
    until(lambda: len(broker.store.queues["q"]) == 3 - len(broker.store.queues["out"]))


def take(unit, delivery):
    """Take a delivery and commit, if it can be."""
    with suppress(IllegalStateError):
        unit.take([delivery])
        commit(unit)


def commit(unit):
    """Commit, if it can be."""
    with suppress(ConnectionLostError, TransactionRolledBackError):
        unit.commit()


def restore(broker):
    """Let all be as it was."""
    broker.store.queues["out"].clear()
    broker.store.queues["q"].clear()
    for body in "abc":
        broker.store.put("q", encoded(body))


@pytest.mark.parametrize("halted", ["unit", "close"])
def test_a_unit_that_is_opened_while_the_connection_is_closed(stage, broker, monkeypatch, halted):
    """It is refused, then or when it is used, and disturbs no other, at whichever step one of the two was."""

    def open_unit():
        try:
            opened.append(connection.unit())
        except IllegalStateError:
            opened.append(None)

    here, opened = stage(broker), []
    for step in count(1):
        preemption = Preemption(step, module.__file__)
        monkeypatch.setattr(module, "threading", SimpleNamespace(Lock=preemption.lock, RLock=threading.RLock))
        connection = here.connect()
        opened.append(connection.unit())
        both = [open_unit, connection.close]
        if not preemption.play(*(both if halted == "unit" else reversed(both))):
            break
        for unit in filter(None, opened):
            with pytest.raises(ConnectionLostError):
                unit.commit()
    assert step > 1


SUBSCRIPTION = Subscription(Topic("t"), "s")


@pytest.fixture
def ended_connection(stage):
    """A connection to a topic that has two messages for a subscriber; `end` ends the subscriber's link."""
    broker, attached = Broker(), []
    broker.instead[Attach] = lambda service, frame: (service.carry_out(frame), attached.append((service, frame)))
    for body in "ab":
        broker.store.put("t", encoded(body))
    ended_connection = stage(broker).connect(client_id="me")
    ended_connection.end = lambda: attached[0][0].detach(attached[0][1], Error(condition="amqp:link:detach-forced"))
    return ended_connection


@pytest.fixture
def consumer(ended_connection):
    return ended_connection.consumer(SUBSCRIPTION)


@pytest.fixture
def received(consumer):
    received = []
    while len(received) < 2:
        received += consumer.receive(2, SECONDS)
    return received


def end(ended_connection, consumer):
    ended_connection.end()
    with pytest.raises(JMSError, match="detach-forced"):
        consumer.receive(1, SECONDS)


def test_its_subscription_can_be_used_again(ended_connection, consumer, received):
    end(ended_connection, consumer)
    consumer.close()
    assert consumer.is_finished
    ended_connection.consumer(SUBSCRIPTION).close()


def test_a_unit_that_holds_a_message_of_it_has_it_to_its_end(ended_connection, consumer, received):
    unit = ended_connection.unit()
    unit.take(received[:1])
    end(ended_connection, consumer)
    consumer.close()
    assert not consumer.is_finished
    unit.rollback()
    assert consumer.is_finished


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


TIMES = 70  # more than the senders that are kept for the next unit
numbers = count()


def receive_from_a_queue(connection):
    consumer = connection.consumer(QUEUE)
    consumer.receive(1, 0)
    consumer.close()


def receive_from_a_durable_subscription(connection):
    connection.consumer(Subscription(Topic("t"), "s")).close()


def look_at_a_queue(connection):
    list(connection.browse(QUEUE))


def send_to_ever_new_queues(connection):
    connection.check(Queue(f"q{next(numbers)}"))


@pytest.mark.parametrize(
    "use", [receive_from_a_queue, receive_from_a_durable_subscription, look_at_a_queue, send_to_ever_new_queues]
)
def test_what_is_closed_is_let_go(stage, use):
    connection = stage(Broker()).connect(client_id="c")
    for _ in range(TIMES):
        use(connection)
    before = kept(connection)
    for _ in range(TIMES):
        use(connection)
    assert kept(connection) <= before + 4  # the broker may still have to answer the last end


def test_what_the_broker_refuses_is_let_go(stage):
    broker = Broker()
    connection = stage(broker).connect()
    broker.instead[Attach] = lambda service, frame: service.carry_out(frame) or service.detach(frame)
    before = kept(connection)
    for _ in range(TIMES):
        with pytest.raises(JMSError):
            connection.consumer(QUEUE).receive(1, 30)
    assert kept(connection) <= before + 4


def look_at_one(stage):
    broker = Broker()
    broker.store.put("q", encoded("a"))
    connection = stage(broker).connect()
    looking = connection.browse(QUEUE)
    assert len(next(looking)) == 1
    return connection, looking


def test_a_look_that_nobody_ends_is_ended_by_whatever_thread_collects_it(stage):
    """Also by that of the connection, which cannot wait for itself."""
    connection, looking = look_at_one(stage)
    circle = [looking]
    circle.append(circle)
    before = kept(connection)
    del looking, circle
    connection._engine.submit(gc.collect).result(SECONDS)
    connection.check(QUEUE)  # a round trip, which may overtake the end of the link
    connection.check(Queue("another"))
    assert kept(connection) < before + 3  # those of the checks, one in its place


def test_a_look_can_be_ended_after_its_connection(stage):
    connection, looking = look_at_one(stage)
    connection.close()
    looking.close()


def kept(connection):
    """How many sessions and links proton keeps, among others: those that have attributes of Python."""
    connection._engine.call(int)
    gc.collect()
    return len(cproton.retained_objects)


def test_close_ends_each_wait_for_a_message(stage, broker):
    consumer = stage(broker).connect().consumer(Queue("empty"))
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(consumer.receive, 1, 2 * SECONDS) for _ in "abc"]
        until(lambda: consumer._waiting == len(waiting))
        consumer.close()
        assert not wait(waiting, SECONDS).not_done
    assert [each.result() for each in waiting] == [[], [], []]
