"""Stopping: with a deadline, from a handler, with a reason, and many activations concurrently."""

import asyncio
import logging
import queue
import random
import threading
from collections import Counter
from contextlib import suppress

import pytest

from jmsjca import ActivationSpec, Hooks, Message, Outcome, Queue, ResourceAdapter, Session, TextMessage, reconnection
from jmsjca.config import resolve_spec
from jmsjca.errors import IllegalStateError
from jmsjca.hooks import HookChain
from jmsjca.inbound import Activation
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.clocks import HandClock
from tests.unit.inbound.deliveries import depth, put, until
from tests.unit.inbound.failing_provider import Shaky, Waits
from tests.unit.inbound.listeners import PATIENCE, Inbox, in_thread, send, waiting

SHORT = 0.2
MODES = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])


class Blocked:
    """A handler that lasts as long as a test wants it; the first call only."""

    def __init__(self) -> None:
        self.working, self.go_on, self.returned = threading.Event(), threading.Event(), threading.Event()
        self.bodies: list[str] = []

    def __call__(self, message) -> None:
        self.bodies.append(message.body)
        if len(self.bodies) == 1:
            self.working.set()
            assert self.go_on.wait(PATIENCE)
            self.returned.set()


@pytest.fixture
def blocked():
    handler = Blocked()
    yield handler
    handler.go_on.set()


def listen(adapter, handler, **spec):
    return adapter.activate(ActivationSpec(destination="q", **spec), handler)


@pytest.fixture
def made(jms_broker_url, recorder):
    """Makes activations whose waits take no time."""

    def make(handler, **spec):
        clock = HandClock()
        settings = ConnectionSettings(jms_broker_url, clock=clock, wait=Waits(clock))
        effective = resolve_spec(ActivationSpec(destination="q", **spec), {}, jms_broker_url)
        return Activation(effective, handler, settings, HookChain([recorder]))

    return make


@MODES
def test_at_the_deadline_the_connection_is_closed_over_the_handler(made, adapter, recorder, blocked, caplog, mode):
    send(adapter, "a")
    activation = made(blocked, concurrency_mode=mode)
    activation.start()
    assert blocked.working.wait(PATIENCE)
    assert activation.stop(timeout=5) is False
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert waiting(adapter) == [("a", 1)]
    assert "1 active handlers; their messages are redelivered" in caplog.text
    threads = {thread for thread in threading.enumerate() if thread.name.startswith("jmsjca")}
    blocked.go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.LOST, 1)
    assert "ended too late; its messages are redelivered" in caplog.text
    assert waiting(adapter) == [("a", 1)]
    assert recorder.statuses.empty()


@MODES
def test_started_again_while_an_old_handler_is_at_work_its_message_waits_for_it(made, adapter, recorder, blocked, mode):
    send(adapter, "a")
    activation = made(blocked, concurrency_mode=mode)
    activation.start()
    assert blocked.working.wait(PATIENCE)
    assert not activation.stop(timeout=0)
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down", "Connecting", "Up")
    assert blocked.bodies == ["a"]
    blocked.go_on.set()
    recorder.await_outcome(Outcome.LOST)
    recorder.await_outcome(Outcome.COMMITTED)
    activation.stop()
    assert blocked.bodies == ["a", "a"]


@MODES
def test_in_time_is_true(adapter, recorder, mode):
    send(adapter, "a")
    activation = listen(adapter, Inbox(), concurrency_mode=mode)
    assert activation.stop() is True  # it was never started
    activation.start()
    recorder.await_outcome(Outcome.COMMITTED)
    assert activation.stop(timeout=PATIENCE) is True
    assert activation.stop(timeout=0) is True


@MODES
def test_a_stop_that_waits_reports_the_earlier_deadline_of_another_stop(
    adapter, made, recorder, blocked, monkeypatch, mode
):
    provider = Shaky()
    monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider)
    send(adapter, "a")
    activation = made(blocked, concurrency_mode=mode)
    activation.start()
    assert blocked.working.wait(PATIENCE)
    results = []
    patient = in_thread(lambda: results.append(activation.stop()))
    recorder.await_status("Connecting", "Up", "Disconnecting")
    close = provider.connections[-1].close
    provider.connections[-1].close = lambda *seconds: (patient.join(SHORT), close(*seconds))  # is it woken too early?
    assert activation.stop(timeout=0) is False
    patient.join(PATIENCE)
    assert results == [False]


def test_while_it_waits_it_tells_for_whom(made, adapter, blocked, caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    send(adapter, "a")
    activation = made(blocked)
    activation._settings.wait.lasting = 3
    activation.start()
    assert blocked.working.wait(PATIENCE)
    stopper = in_thread(activation.stop)
    assert activation._settings.wait.begun.wait(PATIENCE)
    blocked.go_on.set()
    stopper.join(PATIENCE)
    assert activation._settings.wait.seconds == [15, 15, 15]
    told = [record for record in caplog.records if "waits for 1 active handlers" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.INFO] * 2


@MODES
@pytest.mark.parametrize("how", ["function", "coroutine", "coroutine on a thread"])
def test_a_handler_that_stops_its_endpoint_finishes_first(adapter, recorder, mode, how):
    send(adapter, "a")
    results = []

    def function(message):
        results.append(activation.stop())

    async def coroutine(message):
        results.append(activation.stop())

    async def on_a_thread(message):
        results.append(await asyncio.to_thread(activation.stop))

    handlers = {"function": function, "coroutine": coroutine, "coroutine on a thread": on_a_thread}
    activation = listen(adapter, handlers[how], concurrency_mode=mode)
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert results == [False]
    recorder.await_outcome(Outcome.COMMITTED)
    assert waiting(adapter) == []


@MODES
def test_a_hook_that_hears_of_a_settlement_may_stop_the_endpoint(jms_broker_url, recorder, mode):
    class StopAfterOne(Hooks):
        def settled(self, endpoint, outcome, messages):
            activation.stop()

    adapter = ResourceAdapter(jms_broker_url, hooks=[StopAfterOne(), recorder])
    hold = {"hold_until_ack": True} if mode != "serial" else {}
    activation = listen(adapter, lambda message: message.acknowledge() and None, concurrency_mode=mode, **hold)
    send(adapter, "a")
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")


def test_also_where_somebody_else_acknowledges(jms_broker_url, recorder):
    class StopAfterOne(Hooks):
        def settled(self, endpoint, outcome, messages):
            activation.stop()

    adapter, held = ResourceAdapter(jms_broker_url, hooks=[StopAfterOne(), recorder]), queue.Queue()
    activation = listen(adapter, held.put, concurrency_mode="cc", hold_until_ack=True)
    send(adapter, "a")
    activation.start()
    message = held.get(timeout=PATIENCE)
    while activation.stats.n_active_endpoints:
        pass  # the handler is about to return
    message.acknowledge()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")


def test_the_first_reason_counts(adapter, recorder, caplog):
    send(adapter, "a", "b")

    def handler(message):
        message.stop_message_delivery("the disk is full")
        message.stop_message_delivery("another one")
        activation.stop()

    activation = listen(adapter, handler)
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    reasons = [warning for warning in warnings if "is stopped by its handler" in warning]
    assert len(reasons) == 1
    assert reasons[0].endswith("is stopped by its handler: the disk is full")
    assert waiting(adapter) == [("b", 0)]


@pytest.mark.parametrize("how", ["stop", "property", "adapter"])
def test_without_a_reason(adapter, recorder, caplog, how):
    send(adapter, "a")

    def handler(message):
        if how == "property":
            message.stop_message_delivery("")
        else:
            (activation if how == "stop" else adapter).stop()

    activation = listen(adapter, handler)
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert "is stopped by its handler: <unspecified>" in caplog.text


@MODES
def test_restart_from_outside_and_from_inside(adapter, recorder, mode):
    send(adapter, "a")

    def handler(message):
        if message.body == "b":
            activation.restart()

    activation = listen(adapter, handler, concurrency_mode=mode)
    activation.start()
    recorder.await_outcome(Outcome.COMMITTED)
    activation.restart()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down", "Connecting", "Up")
    send(adapter, "b")
    recorder.await_outcome(Outcome.COMMITTED)
    recorder.await_status("Disconnecting", "Down", "Connecting", "Up")


def test_what_nobody_acknowledged_does_not_delay_a_stop(adapter, recorder):
    send(adapter, "a")
    inbox = Inbox()
    activation = listen(adapter, inbox, concurrency_mode="cc", hold_until_ack=True)
    activation.start()
    inbox.take(1)
    assert activation.stop() is True
    recorder.await_outcome(Outcome.ROLLED_BACK)
    assert waiting(adapter) == [("a", 1)]


class BothBeingStopped(Hooks):
    def __init__(self) -> None:
        self.ending: set[str] = set()
        self.both = threading.Event()

    def status_changed(self, endpoint, status):
        if status == "Disconnecting":
            self.ending.add(endpoint)
            if len(self.ending) == 2:
                self.both.set()


def test_activations_are_stopped_side_by_side(jms_broker_url):
    """Each handler returns when both endpoints are being stopped."""
    hook, working = BothBeingStopped(), threading.Barrier(3)
    adapter = ResourceAdapter(jms_broker_url, hooks=[hook])

    def handler(message):
        working.wait(PATIENCE)
        assert hook.both.wait(PATIENCE)

    for name in "pq":
        adapter.listener(name)(handler)
        send(adapter, "a", to=name)
    adapter.start()
    working.wait(PATIENCE)
    assert adapter.stop(timeout=PATIENCE)
    assert [activation.status for activation in adapter.activations] == ["Down", "Down"]


def test_the_deadline_is_one_for_all(jms_broker_url, blocked):
    adapter = ResourceAdapter(jms_broker_url)
    adapter.listener("q")(blocked)
    adapter.listener("r")(Inbox())
    send(adapter, "a")
    adapter.start()
    assert blocked.working.wait(PATIENCE)
    assert not adapter.stop(timeout=0)
    assert [activation.status for activation in adapter.activations] == ["Down", "Down"]


@MODES
def test_at_the_deadline_a_coroutine_is_cancelled(made, adapter, recorder, mode):
    send(adapter, "a")
    working, cancelled = threading.Event(), threading.Event()

    async def handler(message):
        working.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    activation = made(handler, concurrency_mode=mode)
    activation.start()
    assert working.wait(PATIENCE)
    assert activation.stop(timeout=5) is False
    assert cancelled.wait(PATIENCE)
    assert waiting(adapter) == [("a", 1)]
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")


@MODES
def test_an_old_handler_that_ends_late_leaves_the_next_run_alone(made, adapter, recorder, blocked, mode):
    async def nothing():
        pass

    def handler(message):
        blocked(message)
        return nothing()  # refused where coroutines may not run any more

    send(adapter, "a")
    activation = made(handler, concurrency_mode=mode)
    activation.start()
    assert blocked.working.wait(PATIENCE)
    old = {thread for thread in threading.enumerate() if thread.name.startswith("jmsjca")}
    assert not activation.stop(timeout=0)
    activation.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down", "Connecting", "Up")
    blocked.go_on.set()
    for thread in old:
        thread.join(PATIENCE)
    recorder.await_outcome(Outcome.LOST)
    recorder.await_outcome(Outcome.COMMITTED)
    send(adapter, "b")
    recorder.await_outcome(Outcome.COMMITTED)
    assert activation.status == "Up"
    assert activation.stop() is True


MESSAGES, THREADS, ROUNDS = 300, 3, 12


@pytest.mark.parametrize(
    ("mode", "hold"), [("serial", False), ("sync", False), ("cc", False), ("sync", True), ("cc", True)]
)
def test_nothing_is_lost_or_doubled_or_left_behind(jms_broker_url, mode, hold):
    before = set(threading.enumerate())
    link = connect(ConnectionSettings(jms_broker_url))
    adapter = ResourceAdapter(jms_broker_url)
    spec = ActivationSpec(destination="q", concurrency_mode=mode, endpoint_pool_max_size=3, hold_until_ack=hold)

    def forward(message: Message, session: Session) -> None:
        session.create_producer(Queue("out")).send(TextMessage(message.body))
        message.acknowledge()

    activation = adapter.activate(spec, forward)

    def storm(seed):
        dice = random.Random(seed)
        for _ in range(ROUNDS):
            with suppress(IllegalStateError):  # it is being stopped just now
                dice.choice([activation.start, activation.start, activation.stop])()

    put(link, *map(str, range(MESSAGES)))
    threads = [threading.Thread(target=storm, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    activation.stop()
    activation.start()
    until(lambda: depth(link).total == 0)
    activation.stop()
    forwarded = Counter(d.message.body for chunk in link.browse(Queue("out")) for d in chunk)
    assert forwarded == Counter(map(str, range(MESSAGES)))
    assert depth(link).held == 0
    until(lambda: not set(threading.enumerate()) - before)
    link.close()
