"""Health: each planted death turns it red within one interval and a second, and an idle hour does not."""

import asyncio
import sqlite3
import threading
from concurrent.futures import Executor, Future
from contextlib import closing

import pytest

from jmsjca import Hooks, Queue, ResourceAdapter, TextMessage, Topic, reconnection
from jmsjca.errors import ConnectionLostError, InvalidArgumentError, JMSSecurityError
from jmsjca.inbound.health import ActivationHealth, Health
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, in_thread, send
from tests.unit.inbound.planted_deaths import DyingProvider

INTERVAL = 30.0
MODES = ["serial", "sync", "cc"]
ENDS_A_THREAD = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def provider(monkeypatch, adapter):  # after the adapter, so that it ends its faults before the adapter stops
    provider = DyingProvider()
    monkeypatch.setattr(reconnection, "find_provider", lambda _: provider)
    yield provider
    provider.committing.set()
    provider.deaf.clear()


@pytest.fixture
def started(provider, adapter: ResourceAdapter):
    """Start a listener over the dying provider, and wait until it is up."""

    def start(handler, destination="q", **fields):
        adapter.listener(destination, **fields)(handler)
        adapter.start(wait=PATIENCE)
        return adapter

    return start


@pytest.fixture
def released():
    """An event that hung handlers wait for; set after the test."""
    event = threading.Event()
    yield event
    event.set()


class Gate:
    """A handler that hangs until it is released."""

    def __init__(self, released):
        self.entered, self.released = threading.Event(), released

    def __call__(self, message):
        self.entered.set()
        self.released.wait()


def turns_red(adapter, jms_clock, reason, status="stuck"):
    """It is green just before, and red one interval and a second later; checks come every five seconds."""
    assert adapter.health(INTERVAL).is_ready
    for _ in range(6):
        jms_clock.advance(5)
        found = adapter.health(INTERVAL)
    jms_clock.advance(1)
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_ready) == (status, False)
    assert reason in found.reason
    assert found.since <= jms_clock.now
    return found


@pytest.mark.parametrize("mode", MODES)
def test_an_idle_hour_is_green(started, jms_clock, mode):
    adapter = started(Inbox(), concurrency_mode=mode)
    for _ in range(600):
        jms_clock.advance(6)
        assert adapter.health(INTERVAL).status == "idle"


@pytest.mark.parametrize("mode", MODES)
def test_messages_make_it_consuming_and_silence_idle(started, jms_clock, recorder, mode):
    inbox = Inbox()
    adapter = started(inbox, concurrency_mode=mode)
    assert adapter.health(INTERVAL).status == "idle"
    send(adapter, "a")
    assert len(inbox.take(1)) == 1
    until(lambda: not recorder.outcomes.empty())
    assert adapter.health(INTERVAL).status == "consuming"
    jms_clock.advance(INTERVAL)
    assert adapter.health(INTERVAL).status == "idle"


@pytest.mark.parametrize("mode", MODES)
def test_death_1_a_hung_handler(started, jms_clock, released, mode):
    gate = Gate(released)
    adapter = started(gate, concurrency_mode=mode)
    send(adapter, "a")
    assert gate.entered.wait(PATIENCE)
    found = turns_red(adapter, jms_clock, "a handler has not ended")
    assert not found.is_alive
    released.set()
    until(lambda: adapter.health(INTERVAL).is_ready)


def end_a_thread(provider):
    """End a thread that receives, and wait for its last word, which pytest would blame the next test for."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("jmsjca")]
    provider.ended.set()
    provider.wake()
    until(lambda: not all(thread.is_alive() for thread in threads))


@ENDS_A_THREAD
def test_death_2_the_reader_thread_ended(started, provider, recorder):
    adapter = started(Inbox(), concurrency_mode="serial")
    end_a_thread(provider)
    recorder.await_status("Connecting", "Up", "Down")
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_alive) == ("down", False)
    assert "SystemExit was raised outside the handler" in found.reason


@ENDS_A_THREAD
def test_death_3_a_receiver_ended(started, provider, recorder):
    """The listener ends with it: it would lack a receiver for ever."""
    adapter = started(Inbox(), concurrency_mode="sync", endpoint_pool_max_size=3)
    until(lambda: adapter.activations[0].stats.n_total_endpoints == 3)
    end_a_thread(provider)
    recorder.await_status("Connecting", "Up", "Down")
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_alive) == ("down", False)
    assert "SystemExit was raised outside the handler" in found.reason


def test_death_4_max_outstanding_is_reached(started, jms_clock):
    inbox = Inbox()
    adapter = started(inbox, concurrency_mode="cc", hold_until_ack=True, max_outstanding=2)
    send(adapter, "a", "b")
    assert len(inbox.take(2)) == 2
    turns_red(adapter, jms_clock, "max_outstanding=2 is reached")


def test_death_5_the_event_loop_is_blocked(started, provider, adapter, jms_clock, released):
    entered, done = threading.Event(), threading.Event()

    @adapter.listener("q")
    async def on_message(message): ...

    async def serve():
        async with adapter:
            entered.set()
            await asyncio.to_thread(done.wait)

    thread = in_thread(lambda: asyncio.run(serve()))
    assert entered.wait(PATIENCE)
    adapter.start(wait=PATIENCE)
    assert adapter.health(INTERVAL).is_ready
    loop = adapter.activations[0]._endpoint.handler.running_loop()
    loop.call_soon_threadsafe(released.wait)
    turns_red(adapter, jms_clock, "the event loop of the handlers is blocked")
    released.set()
    until(lambda: adapter.health(INTERVAL).is_ready)
    done.set()
    thread.join(PATIENCE)


@pytest.mark.parametrize("mode", MODES)
def test_death_6_a_commit_does_not_return(started, provider, jms_clock, mode):
    inbox = Inbox()
    adapter = started(inbox, concurrency_mode=mode)
    send(adapter, "a")
    assert len(inbox.take(1)) == 1
    provider.committing.clear()
    send_later(adapter, provider)
    assert len(inbox.take(1)) == 1
    until(lambda: adapter.activations[0]._endpoint.activity.units)
    turns_red(adapter, jms_clock, "a settlement has not ended")


def send_later(adapter, provider):
    """Send while commits of the provider wait: over a connection of its own."""
    provider.committing.set()
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("q"))
        producer.send(TextMessage("b"))
        provider.committing.clear()


@pytest.mark.parametrize("mode", MODES)
def test_death_7_the_broker_does_not_know_the_consumer(started, provider, jms_clock, mode):
    adapter = started(Inbox(), concurrency_mode=mode)
    provider.deaf.set()
    provider.wake()
    send(adapter, "a")
    turns_red(adapter, jms_clock, "waits at the broker, but is not received")


def test_a_message_that_the_selector_leaves_is_no_death(started, jms_clock):
    adapter = started(Inbox(), selector="n = 1")
    send(adapter, "a")
    for _ in range(10):
        jms_clock.advance(5)
        assert adapter.health(INTERVAL).status == "idle"


def test_death_8_the_broker_dropped_the_subscription(started, provider, adapter, jms_clock):
    topic = Topic("news")
    started(
        Inbox(), topic, subscription_durability="Durable", subscription_name="s", client_id="c", concurrency_mode="cc"
    )
    provider.deaf.set()
    provider.wake()
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(topic).send(TextMessage("a"))
    turns_red(adapter, jms_clock, "1 messages of the subscription wait")


def test_death_9_the_broker_does_not_answer(started, provider, jms_clock):
    adapter = started(Inbox())
    assert adapter.health(INTERVAL).is_ready
    provider.silent.set()
    jms_clock.advance(5)
    turns_red(adapter, jms_clock, "the broker does not answer: ConnectionLostError")


def test_death_10_the_lease_is_lost(tmp_path, released):
    recorder, gate = Recorder(), Gate(released)
    adapter = ResourceAdapter(f"embedded://{tmp_path}/broker.db", hooks=[recorder])
    reasons = []
    recorder.status_changed = lambda endpoint, status: (
        reasons.append(adapter.health(INTERVAL).reason),
        Recorder.status_changed(recorder, endpoint, status),
    )
    adapter.listener("q")(gate)
    with adapter:
        adapter.start(wait=PATIENCE)
        recorder.await_status("Connecting", "Up")
        send(adapter, "a")
        assert gate.entered.wait(PATIENCE)
        with closing(sqlite3.connect(tmp_path / "broker.db")) as database, database:
            database.execute("DELETE FROM owner")
        released.set()
        recorder.await_status("Connecting")
        assert "taken for dead" in reasons[-1]
        recorder.await_status("Up")


def test_death_11_the_connection_is_lost(started, provider, recorder):
    adapter = started(Inbox())
    provider.refusal = ConnectionLostError("nobody listens there")
    provider.on_lost[0](ConnectionLostError("pulled out"))
    recorder.await_status("Connecting", "Up", "Connecting")
    until(lambda: "nobody listens there" in str(adapter.health(INTERVAL).reason))
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_ready, found.is_alive) == ("down", False, True)


def test_death_12_it_stopped_permanently(started, provider, adapter, recorder):
    provider.refusal = JMSSecurityError("wrong password")
    adapter.listener("q")(Inbox())
    adapter.start()
    recorder.await_status("Connecting", "Down")
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_alive) == ("down", False)
    assert "wrong password" in found.reason


class LazyExecutor(Executor):
    """Accepts work, and does none."""

    def submit(self, fn, /, *args, **kwargs):
        return Future()

    def shutdown(self, wait=True, *, cancel_futures=False): ...


def test_death_13_the_executor_does_no_work(started, provider, jms_clock, adapter):
    started(Inbox(), concurrency_mode="cc", executor=LazyExecutor())
    send(adapter, "a")
    queue = adapter.activations[0]._state.current_run.delivering[1]._queue
    until(lambda: queue.ready)
    turns_red(adapter, jms_clock, "the executor runs no handler for 1 prefetched messages")
    adapter.stop(timeout=0)


def test_a_delayed_redelivery_is_no_death(started, jms_clock, recorder):
    inbox = Inbox(ValueError())
    adapter = started(inbox, redelivery_handling="1:3600000", concurrency_mode="serial")
    send(adapter, "a")
    assert len(inbox.take(1)) == 1
    until(lambda: [step for step, _ in adapter.activations[0]._endpoint.activity.steps()] == ["delay"])
    for _ in range(20):
        jms_clock.advance(5)
        assert adapter.health(INTERVAL).status == "consuming"


def test_a_stopped_adapter_is_down(started):
    adapter = started(Inbox())
    adapter.stop()
    found = adapter.health(INTERVAL)
    assert (found.status, found.is_alive) == ("down", True)
    assert "it is stopped" in found.reason


def test_the_worst_activation_decides():
    idle, busy = ActivationHealth("a", "idle"), ActivationHealth("b", "consuming")
    stuck, down = ActivationHealth("c", "stuck", "why"), ActivationHealth("d", "down", "how")
    assert Health.of([]).status == "idle"
    assert Health.of([idle, busy]).status == "consuming"
    assert (Health.of([idle, stuck, busy]).reason, Health.of([idle, stuck]).is_alive) == ("c: why", False)
    assert (Health.of([down, stuck]).reason, Health.of([down]).is_alive) == ("d: how", True)


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf"), "30", True])
def test_a_wrong_interval_is_refused(interval):
    with pytest.raises(InvalidArgumentError, match="interval"):
        ResourceAdapter("embedded://", hooks=[Hooks()]).health(interval)
