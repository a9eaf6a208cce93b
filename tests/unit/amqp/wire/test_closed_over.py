"""What a connection holds when it is closed: the broker has it back before the connection ends, counted or not."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Close, Transfer
from preemption import Preemption

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, IllegalStateError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp import connection as module
from jmsjca.providers.amqp import unit as unit_module
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.common import unit as note
from tests.unit.amqp.wire.account import body_of, encoded
from tests.unit.delivering.stage import until

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
