"""Activations that are paused, resumed and resized at run time, over one connection."""

import threading

import pytest

from jmsjca import ActivationSpec, Message, ResourceAdapter, Topic, reconnection
from jmsjca.errors import ConnectionLostError, InvalidArgumentError, NotSupportedError
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.failing_provider import Shaky
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send, waiting

MODES = ["serial", "sync", "cc"]


@pytest.fixture
def provider(monkeypatch):
    provider = Shaky()
    monkeypatch.setattr(reconnection, "find_provider", lambda _: provider)
    return provider


@pytest.fixture
def started(provider, adapter: ResourceAdapter):
    def start(handler, destination="q", **fields):
        activation = adapter.activate(ActivationSpec(destination=destination, **fields), handler)
        adapter.start(wait=PATIENCE)
        return activation

    return start


def is_resting(activation):
    return activation._state.current_run.delivering is None


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_activation_takes_no_message_and_stays_connected(started, provider, adapter, mode):
    inbox = Inbox()
    activation = started(inbox, concurrency_mode=mode)
    send(adapter, "a")
    assert inbox.take(1) == [("a", 1)]
    connections = len(provider.connections)
    for _ in range(2):
        activation.pause()
        until(lambda: is_resting(activation))
        assert (activation.status, activation.paused) == ("Up", True)
        assert adapter.health().activations[0].reason == "it is paused"
        assert adapter.health().is_ready
    send(adapter, "b")
    assert waiting(adapter) == [("b", 0)]
    assert inbox.got.empty()
    activation.resume()
    assert inbox.take(1) == [("b", 1)]
    assert not activation.paused
    assert len(provider.connections) == connections + 2  # of the senders


@pytest.mark.parametrize("mode", MODES)
def test_the_message_in_the_handler_ends_well_and_the_next_ones_wait(started, adapter, recorder, mode):
    entered, released, got = threading.Event(), threading.Event(), []

    def hold(message: Message) -> None:
        got.append((message.body, message.delivery_count))
        entered.set()
        released.wait(PATIENCE)

    activation = started(hold, concurrency_mode=mode, endpoint_pool_max_size=1)
    send(adapter, "a", "b", "c")
    assert entered.wait(PATIENCE)
    activation.pause()
    released.set()
    until(lambda: is_resting(activation))
    assert got == [("a", 1)]
    assert [body for body, _ in waiting(adapter)] == ["b", "c"]
    activation.resume()
    until(lambda: len(got) == 3)
    assert got == [("a", 1), ("b", 1), ("c", 1)]  # released uncounted


@pytest.mark.parametrize("mode", MODES)
def test_a_pause_outlives_a_reconnect(started, provider, adapter, recorder, mode):
    inbox = Inbox()
    activation = started(inbox, concurrency_mode=mode)
    activation.pause()
    until(lambda: is_resting(activation))
    recorder.await_status("Connecting", "Up")
    provider.lost[0](ConnectionLostError("pulled out"))
    recorder.await_status("Connecting", "Up")
    send(adapter, "a")
    until(lambda: is_resting(activation))
    assert waiting(adapter) == [("a", 0)]
    activation.resume()
    assert inbox.take(1) == [("a", 1)]


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_activation_stops_and_starts_paused(started, adapter, mode):
    inbox = Inbox()
    activation = started(inbox, concurrency_mode=mode)
    activation.pause()
    until(lambda: is_resting(activation))
    assert activation.stop(timeout=PATIENCE)
    assert activation.status == "Down"
    send(adapter, "a")
    activation.start()
    until(lambda: activation.status == "Up" and is_resting(activation))
    assert waiting(adapter) == [("a", 0)]
    activation.resume()
    assert inbox.take(1) == [("a", 1)]


def test_a_pause_of_one_that_is_down_takes_effect_at_its_start(adapter):
    activation = adapter.activate(ActivationSpec(destination="q"), Inbox())
    activation.pause()
    activation.resume()
    assert (activation.status, activation.paused) == ("Down", False)


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_resized_activation_has_as_many_handlers(started, adapter, mode):
    running, released = threading.Semaphore(0), threading.Event()

    def hold(message: Message) -> None:
        running.release()
        released.wait(PATIENCE)

    activation = started(hold, concurrency_mode=mode, endpoint_pool_max_size=1)
    activation.resize(3)
    until(lambda: activation.stats.n_configured_endpoints == 3)
    send(adapter, "a", "b", "c")
    for _ in range(3):
        assert running.acquire(timeout=PATIENCE)
    released.set()
    until(lambda: activation.stats.n_active_endpoints == 0)
    activation.resize(1)
    until(lambda: activation.stats.n_configured_endpoints == 1)
    send(adapter, "d", "e")
    assert running.acquire(timeout=PATIENCE)
    assert running.acquire(timeout=PATIENCE)
    assert activation.stats.n_highest_active_endpoints == 3


def test_a_resized_activation_has_the_default_of_open_units_for_its_size(started, adapter):
    """The limit of the first size, 10 times one, would be less than the handlers."""
    running, released = threading.Semaphore(0), threading.Event()

    def hold(message: Message) -> None:
        running.release()
        released.wait(PATIENCE)

    activation = started(hold, concurrency_mode="cc", endpoint_pool_max_size=1)
    activation.resize(11)
    until(lambda: activation.stats.n_configured_endpoints == 11)
    send(adapter, *map(str, range(11)))
    try:
        for _ in range(11):
            assert running.acquire(timeout=PATIENCE / 2)
    finally:
        released.set()


def test_the_limit_of_open_units_in_a_spec_is_kept_with_a_warning(adapter, caplog):
    spec = ActivationSpec(destination="q", concurrency_mode="cc", max_outstanding=2)
    activation = adapter.activate(spec, Inbox())
    activation.resize(2)
    assert caplog.text == ""
    activation.resize(3)
    assert "has 3 handlers now, but runs at most 2 of them: its spec has max_outstanding=2." in caplog.text


def test_what_cannot_be_resized_is_refused(started, adapter):
    serial = started(Inbox(), concurrency_mode="serial")
    topic = adapter.activate(ActivationSpec(destination=Topic("t"), concurrency_mode="sync"), Inbox())
    for activation in (serial, topic):
        with pytest.raises(NotSupportedError, match="one handler at a time"):
            activation.resize(2)
    for size in (0, -1, 1.5, 2.0, "2", True, None, 2**31):
        with pytest.raises(InvalidArgumentError, match="endpoint_pool_max_size"):
            serial.resize(size)


def test_both_sides_of_a_distributed_subscription_pause(jms_broker_url):
    recorder = Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    inbox = Inbox()
    activation = adapter.activate(
        ActivationSpec(
            destination=Topic("news"),
            subscription_durability="Durable",
            subscription_name="jmsjca://?distribution=1&subscribername=s",
            client_id="c",
        ),
        inbox,
    )
    with adapter:
        until(lambda: activation.status == activation.topic_side.status == "Up")
        activation.pause()
        until(lambda: is_resting(activation) and is_resting(activation.topic_side))
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            session.create_producer(Topic("news")).send(session.create_text_message("a"))
        assert inbox.got.empty()
        activation.resume()
        assert inbox.take(1)[0][0] == "a"
