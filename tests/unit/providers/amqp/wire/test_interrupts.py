"""Exceptions on the engine's thread, and interrupted calls, whose connection the caller aborts with close(0)."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Close, Declare, Discharge, Flow, Open, Transfer

import jmsjca
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.links.link_pool import PredeclaredTransaction
from tests.support.interruptions import TimeLimitError, each_moment
from tests.unit.inbound.deliveries import until
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded
from tests.unit.providers.embedded.test_group_commit import in_background

PACKAGE = str(Path(jmsjca.__file__).parent)


class Interruption(BaseException):
    """What the signal handler raises."""


@contextmanager
def door(connection):
    """Abort the connection of an interrupted call, as the connection of an application does."""
    try:
        yield
    except (Interruption, TimeLimitError):
        connection.close(0)
        raise


@pytest.fixture
def withhold():
    """Let a broker answer no more frames of a kind, and interrupt the test's thread when one comes."""

    def interrupt(number, frame):
        raise Interruption

    before = signal.signal(signal.SIGUSR1, interrupt)

    def withhold(broker, kind, which=lambda body: True):
        def answer(service, frame):
            if which(frame.body):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            else:
                service.carry_out(frame)

        broker.instead[kind] = answer

    yield withhold
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def broker():
    broker = Broker()
    broker.store.put("in", encoded("a"))
    return broker


def unit_of(connection, *, atomic=True, window=0):
    unit = connection.unit(atomic=atomic)
    unit.take(connection.consumer(Queue("in"), window=window).receive(1, SECONDS))
    unit.send(TextMessage("x"), Queue("out"))
    return unit


@pytest.mark.parametrize(
    ("kind", "atomic"), [(Attach, False), (Transfer, False), (Declare, True), (Transfer, True), (Discharge, True)]
)
def test_commit(stage, broker, withhold, kind, atomic):
    here = stage(broker)
    connection = here.connect()
    unit = unit_of(connection, atomic=atomic)
    withhold(broker, kind)
    with pytest.raises(Interruption), door(connection):
        unit.commit()
    with pytest.raises(IllegalStateError):
        connection.unit()
    here.peer.close()
    assert not here.told
    assert [body_of(kept.payload) for kept in broker.store.queues["in"]] == ["a"]
    assert not broker.store.transactions


def test_rollback(stage, broker, withhold):
    here = stage(broker)
    connection = here.connect()
    unit = unit_of(connection, window=4)
    withhold(broker, Flow, lambda flow: flow.drain)
    with pytest.raises(Interruption), door(connection):
        unit.rollback()
    here.peer.close()
    assert [body_of(kept.payload) for kept in broker.store.queues["in"]] == ["a"]


def test_connect(stage, broker, withhold):
    """The fixtures see to it that neither a thread nor a socket is left."""
    withhold(broker, Open)
    with pytest.raises(Interruption):
        stage(broker).connect("heartbeat=0")


def test_close(stage, broker, withhold):
    connection = stage(broker).connect("heartbeat=0")
    withhold(broker, Close)
    with pytest.raises(Interruption), door(connection):
        connection.close()


def test_close_of_a_consumer(stage, broker, withhold):
    """The broker redelivers the messages that it had prefetched."""
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("in"), window=4)
    until(lambda: consumer._buffer.ready)
    withhold(broker, Flow, lambda flow: flow.drain)
    with pytest.raises(Interruption), door(connection):
        consumer.close()
    here.peer.close()
    assert [body_of(kept.payload) for kept in broker.store.queues["in"]] == ["a"]


def test_consumer_that_is_interrupted_at_any_moment_keeps_no_message(stage, broker):
    """The connection is aborted: another consumer gets what it had prefetched."""

    def play(interruption):
        connection, consumer = stage(broker).connect(), None
        with suppress(TimeLimitError), door(connection), interruption.planted():
            consumer = connection.consumer(Queue("in"), window=4)
            consumer.close()
        if consumer is not None:
            with suppress(JMSError):
                in_background(consumer.close).result(SECONDS)
        other = stage(broker).connect().consumer(Queue("in"), window=1)
        got = []
        until(lambda: got or got.extend(other.receive(1, 0)))  # the broker looks for messages whenever it is asked
        other.release(got)
        other.close()

    assert each_moment(play, TimeLimitError, PACKAGE) > 100


@pytest.mark.parametrize("window", [0, 1, 4])
def test_receive_that_is_interrupted_at_any_moment_loses_no_message(stage, broker, window):
    """The next one gets the message, or learns that the connection has ended."""

    def play(interruption):
        here, got = stage(broker), []
        connection = here.connect()
        consumer = connection.consumer(Queue("in"), window=window)
        until(lambda: consumer._buffer.ready or not window)
        with suppress(TimeLimitError), door(connection), interruption.planted():
            got = consumer.receive(1, SECONDS)
        if not got:
            received = in_background(consumer.receive, 1, SECONDS)
            assert isinstance(received.exception(SECONDS), ConnectionLostError) or len(received.result()) == 1
        connection.close()
        here.peer.close()  # its message is there again

    assert each_moment(play, TimeLimitError, PACKAGE) > 8


def test_close_of_a_connection_that_is_interrupted_at_any_moment_ends_it(stage, broker):
    def play(interruption):
        here = stage(broker)
        connection = here.connect()
        connection.consumer(Queue("in"), window=4)
        with suppress(TimeLimitError), door(connection), interruption.planted():
            connection.close()
        in_background(connection.close).result(SECONDS)
        connection._engine._thread.join(SECONDS)
        assert not connection._engine._thread.is_alive()
        assert not here.told

    assert each_moment(play, TimeLimitError, PACKAGE) > 50


def test_receive(stage, broker, monkeypatch):
    """What it had in hand is redelivered: another connection gets it."""

    def interrupt(consumer):
        raise Interruption

    broker.store.put("in", encoded("b"))
    here = stage(broker)
    connection = here.connect()
    consumer = connection.consumer(Queue("in"), window=2)
    until(lambda: len(consumer._buffer.ready) == 2)
    with monkeypatch.context() as patch:
        patch.setattr(AMQPConsumer, "_yield_to_engine", interrupt)
        with pytest.raises(Interruption), door(connection):
            consumer.receive(2, SECONDS)
    here.peer.close()
    assert [body_of(kept.payload) for kept in broker.store.queues["in"]] == ["a", "b"]


def commit(connection):
    unit = connection.unit()
    unit.send(TextMessage("x"), Queue("out"))
    unit.commit()


def test_behind_a_discharge_that_is_written(stage, monkeypatch):
    def fail(*_):
        raise MemoryError

    here = stage(Broker())
    connection = here.connect()
    consumers = [connection.consumer(Queue(str(number))) for number in range(6)]
    commit(connection)
    with ThreadPoolExecutor() as pool, monkeypatch.context() as patch:
        waiting = [pool.submit(consumer.receive, 1, SECONDS) for consumer in consumers]
        patch.setattr(PredeclaredTransaction, "store", fail)
        with pytest.raises(TransactionInDoubtError):
            commit(connection)
        for each in waiting:
            with pytest.raises(JMSError, match="aborted"):
                each.result(SECONDS)
    assert here.lost.wait(SECONDS)
