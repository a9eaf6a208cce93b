"""Connections, units and executors that fail while messages are delivered."""

import queue
import threading
from collections import Counter
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

from jmsjca import Outcome
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from tests.unit.inbound.deliveries import Breaks, Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound.listeners import PATIENCE

MODES = ["serial", "sync", "cc"]
SEVERAL = ["sync", "cc"]
LOST = ConnectionLostError("gone")


class Blocked:
    """A handler that waits for the test, but for the first message only."""

    def __init__(self):
        self.got = queue.Queue()
        self.at_work, self.go_on = threading.Event(), threading.Event()

    def __call__(self, message):
        self.got.put((message.body, message.redelivery_count))
        if not self.at_work.is_set():
            self.at_work.set()
            assert self.go_on.wait(PATIENCE)

    def take(self):
        return self.got.get(timeout=PATIENCE)


@pytest.fixture
def blocked():
    blocked = Blocked()
    yield blocked
    blocked.go_on.set()


class Consumers:
    """All consumers of a connection, which receive nothing and give nothing back from some time on."""

    def __init__(self, link):
        self._open, self._made, self._errors = link.consumer, [], {}
        link.consumer = self._consumer

    def _consumer(self, *args, **kwargs):
        consumer = Breaks(self._open(*args, **kwargs))
        consumer.errors = self._errors
        self._made.append(consumer)
        return consumer

    def fail(self, error):
        self._errors |= {"receive": error, "release": error}
        for consumer in list(self._made):
            consumer.wake()


@pytest.mark.parametrize("mode", SEVERAL)
def test_a_blocked_handler_does_not_keep_the_delivery_on_a_lost_connection(connected, recorder, blocked, mode):
    link, other = connected(), connected()
    put(other, "a")
    consumers = Consumers(link)
    endpoint = endpoint_of(blocked, terms(mode), recorder)
    performance = Performance(endpoint, link)
    assert blocked.at_work.wait(PATIENCE)
    consumers.fail(LOST)
    assert performance.ends() is LOST
    link.close()

    anew = Performance(endpoint, other)
    put(other, "b")
    assert [blocked.take(), blocked.take()] == [("a", 0), ("b", 0)]  # b goes on while a waits for its old handler
    assert blocked.got.empty()
    assert endpoint.abandoned_handlers == 1
    blocked.go_on.set()
    assert blocked.take() == ("a", 1)
    outcomes = [recorder.outcomes.get(timeout=PATIENCE)[0] for _ in range(3)]
    assert Counter(outcomes) == {Outcome.COMMITTED: 2, Outcome.LOST: 1}
    assert endpoint.abandoned_handlers == 0
    anew.stop()
    assert depth(other).total == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", ["receive", "commit"])
def test_a_fault_of_the_provider_ends_the_delivery_with_it(connected, mode, call):
    link = connected()
    fault = ZeroDivisionError("a fault")
    consumers = Consumers(link)
    if call != "receive":
        open_unit = link.unit
        link.unit = lambda **kwargs: Breaks(open_unit(**kwargs), commit=fault, rollback=fault)
    performance = Performance(endpoint_of(lambda message: None, terms(mode)), link)
    if call == "receive":
        consumers.fail(fault)
    else:
        put(connected(), "a")
    assert performance.ends() is fault


class Lazy(Executor):
    """Takes work, and does it when told to; or never."""

    def __init__(self):
        self.work: queue.Queue[tuple[Future, object]] = queue.Queue()

    def submit(self, function, *args, **kwargs):
        future = Future()
        self.work.put((future, function))
        return future


class Inline(Executor):
    """Does everything at once, in the thread of who asks for it."""

    def submit(self, function, *args, **kwargs):
        future = Future()
        future.set_result(function())
        return future


def test_an_executor_that_drops_its_work_is_distress_and_no_loss(connected):
    link, executor = connected(), Lazy()
    put(link, "a", "b")
    performance = Performance(endpoint_of(lambda message: None, terms(pool_size=1)), link, executor)
    future, _ = executor.work.get(timeout=PATIENCE)
    future.cancel()
    error = performance.ends()
    assert isinstance(error, ResourceAllocationError)
    assert "executor" in str(error)
    assert (depth(link).ready, depth(link).held) == (2, 0)


@pytest.mark.parametrize("refusal", [RuntimeError("shut down"), ValueError("no more")])
def test_an_executor_that_refuses_is_distress_and_no_loss(connected, refusal):
    link = connected()
    put(link, "a", "b")
    executor = Breaks(ThreadPoolExecutor(1), submit=refusal)
    performance = Performance(endpoint_of(lambda message: None, terms()), link, executor)
    error = performance.ends()
    assert isinstance(error, ResourceAllocationError)
    assert error.__cause__ is refusal
    assert (depth(link).ready, depth(link).held) == (2, 0)


def test_an_executor_that_is_shut_down_meanwhile_is_distress_and_no_loss(connected, blocked):
    link, executor = connected(), ThreadPoolExecutor(1)
    put(link, "a", "b")
    performance = Performance(endpoint_of(blocked, terms(pool_size=2)), link, executor)
    assert blocked.at_work.wait(PATIENCE)
    executor.shutdown(wait=False, cancel_futures=True)
    put(link, "c", "d")
    assert isinstance(performance.ends(), ResourceAllocationError)
    blocked.go_on.set()


def test_a_stop_does_not_wait_for_a_thread_of_a_busy_executor(connected):
    """Its threads run other jobs of the application, so that the worker has not begun."""
    link, executor = connected(), Lazy()
    put(link, "a")
    performance = Performance(endpoint_of(lambda message: None, terms(pool_size=1)), link, executor)
    future, _ = executor.work.get(timeout=PATIENCE)
    performance.stop()
    assert future.cancelled()
    assert (depth(link).ready, depth(link).held) == (1, 0)


def test_an_executor_that_begins_during_the_stop_is_waited_for(connected):
    link, executor = connected(), Lazy()
    put(link, "a")
    performance = Performance(endpoint_of(lambda message: None, terms(pool_size=1)), link, executor)
    future, work = executor.work.get(timeout=PATIENCE)
    assert future.set_running_or_notify_cancel()
    performance.dispatcher.stop()
    future.set_result(work())
    assert performance.ends() is None
    assert (depth(link).ready, depth(link).held) == (1, 0)


@pytest.mark.parametrize("hold", [False, True])
def test_an_executor_that_runs_inline(connected, recorder, hold):
    link = connected()
    put(link, *"abcdef")
    handler = (lambda message: message.acknowledge() and None) if hold else (lambda message: None)
    performance = Performance(
        endpoint_of(handler, terms(hold_until_ack=hold, max_outstanding=2), recorder), link, Inline()
    )
    for _ in range(6):
        recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert depth(link).total == 0


@pytest.mark.parametrize("mode", SEVERAL)
def test_what_waits_when_the_connection_is_lost_is_not_counted(connected, mode):
    """A delay is no encounter: what is on the heap comes again as if it had not come."""
    link, other = connected(), connected()
    link.capabilities = other.capabilities = _without_delays(link)
    counts = queue.Queue()

    def handler(message):
        counts.put(message.redelivery_count)
        raise ValueError("no")

    delays = terms(mode, pool_size=1, redelivery=_policy("1:3600000"))
    endpoint = endpoint_of(handler, delays)
    put(link, "a")
    consumers = Consumers(link)
    performance = Performance(endpoint, link)
    assert counts.get(timeout=PATIENCE) == 0
    until(lambda: endpoint.statistics.n_redeliveries == 1)
    consumers.fail(LOST)
    assert performance.ends() is LOST
    link.close()
    _lose_count(other)
    performance = Performance(endpoint, other)
    until(lambda: endpoint.statistics.n_redeliveries == 2)
    assert endpoint.redelivery.find_encounter("ID:a").count == 1
    performance.stop()


def _without_delays(link):
    from dataclasses import replace

    return replace(link.capabilities, redelivery_delay=False)


def _policy(text):
    from jmsjca.redelivery import RedeliveryPolicy

    return RedeliveryPolicy.parse(text)


def _lose_count(link):
    """Receive what waits and give it back counted, as a broker does for a lost connection."""
    consumer = link.consumer(terms().source)
    unit = link.unit()
    unit.take(consumer.receive(10, 0))
    unit.rollback()
    consumer.close()


def test_lost_connection_ends_waits_for_places(connected):
    """Also when everything is held, and nobody acknowledges."""
    link = connected()
    put(link, *"abc")
    held = queue.Queue()
    performance = Performance(endpoint_of(held.put, terms("sync", hold_until_ack=True, max_outstanding=1)), link)
    held.get(timeout=PATIENCE)
    performance.dispatcher.stop(LOST)
    assert performance.ends() is LOST
    assert isinstance(performance.error, JMSError)


def test_a_batch_that_a_lost_consumer_cuts_short_is_settled(connected, recorder):
    """Also where the connection is lost between two messages of it: its outcome is told, its place is free."""
    link = connected()
    consumers = Consumers(link)

    def handler(message):
        if not message.end_of_batch:
            consumers.fail(LOST)

    endpoint = endpoint_of(handler, terms("sync", batch_size=3, pool_size=1), recorder)
    performance = Performance(endpoint, link)
    put(link, "a")
    assert performance.ends() is LOST
    recorder.await_outcome(Outcome.COMMITTED)
    assert (endpoint.abandoned_handlers, performance.dispatcher.in_flight.full) == (0, False)
    assert depth(link).total == 0
