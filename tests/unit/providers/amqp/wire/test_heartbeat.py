"""Heartbeats are sent while a handler runs."""

import threading
from functools import partial

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Symbol
from amqp_peer.performatives import Open

from jmsjca import Outcome, ResourceAdapter
from jmsjca.errors import ConnectionLostError
from tests.unit.inbound.listeners import Recorder
from tests.unit.providers.amqp.wire.cut_account import encoded

TOLERATED = 100  # milliseconds of silence
ENOUGH = 3


def open_impatiently(service, frame, tolerated=TOLERATED):
    product = {Symbol("product"): service.broker.product}
    service.agree(frame, properties=product, idle_time_out=tolerated)


def wait(over):
    assert over.wait(SECONDS)


def compute(over):
    """Never let go of the interpreter by itself."""
    while not over.is_set():
        pass


class Busy:
    """A handler that ends only when it is told so."""

    def __init__(self, work):
        self.work, self.begun, self.over = work, threading.Event(), threading.Event()

    def __call__(self, message):
        self.begun.set()
        self.work(self.over)


@pytest.fixture
def listen(stage):
    """Start a listener at a broker that tolerates little silence, and has a message."""
    started = []

    def listen(handler):
        broker, recorder = Broker(), Recorder()
        broker.store.put("q", encoded("x"))
        broker.instead[Open] = open_impatiently
        peer = stage(broker).peer
        adapter = ResourceAdapter(f"amqp://{peer.address}", hooks=[recorder])
        started.append((adapter, handler))
        adapter.listener("q")(handler)
        adapter.start()
        return peer, recorder

    yield listen
    for adapter, handler in started:
        handler.over.set()
        adapter.stop()


@pytest.mark.parametrize("work", [wait, compute])
def test_heartbeats_go_out_while_a_handler_runs(listen, work):
    handler = Busy(work)
    peer, recorder = listen(handler)
    assert handler.begun.wait(SECONDS)
    (line,) = peer.lines
    while line.heartbeats.acquire(blocking=False):
        pass  # it came before
    for _ in range(ENOUGH):
        assert line.heartbeats.acquire(timeout=SECONDS)
    assert recorder.outcomes.empty()
    handler.over.set()
    recorder.await_outcome(Outcome.COMMITTED)
    assert peer.lines == [line]


def test_a_broker_that_tolerates_next_to_no_silence_is_refused(stage):
    """Heartbeats would be all that this side does: some 70,000 a second."""
    broker = Broker()
    broker.instead[Open] = partial(open_impatiently, tolerated=1)
    with pytest.raises(ConnectionLostError, match="silent for 1 ms"):
        stage(broker).connect()
