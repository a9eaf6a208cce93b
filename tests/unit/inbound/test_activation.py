"""Activations: states, stop and restart, and brokers that are not available."""

import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import ActivationSpec, ConnectionFactory, Hooks, Message, Outcome, ResourceAdapter, Topic, reconnection
from jmsjca.config import ConnectionURL
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidActivationSpecError, InvalidClientIDError
from jmsjca.inbound.activation_state import ActivationState
from jmsjca.providers import find_provider
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, in_thread, send, waiting


def activate(adapter, handler):
    return adapter.activate(ActivationSpec(destination="q"), handler)


def test_status_words(adapter, recorder):
    activation = activate(adapter, Inbox())
    assert activation.status == "Down"
    activation.start()
    recorder.await_status("Connecting", "Up")
    assert activation.status == "Up"
    activation.stop()
    recorder.await_status("Disconnecting", "Down")
    assert activation.status == "Down"
    assert recorder.statuses.empty()


def test_messages_are_delivered_in_order_and_acknowledged(adapter, recorder):
    send(adapter, *"abc")
    inbox = Inbox()
    activation = activate(adapter, inbox)
    adapter.start()
    assert inbox.take(3) == [("a", 1), ("b", 1), ("c", 1)]
    for _ in range(3):
        recorder.await_outcome(Outcome.COMMITTED)
    adapter.stop()
    assert waiting(adapter) == []
    assert (activation.stats.n_messages, activation.stats.n_highest_active_endpoints) == (3, 1)
    assert (activation.stats.n_active_endpoints, activation.stats.n_total_endpoints) == (0, 0)


def test_starting_twice_and_stopping_twice_do_nothing(adapter, recorder):
    activation = activate(adapter, Inbox())
    activation.stop()
    activation.start()
    activation.start()
    recorder.await_status("Connecting", "Up")
    activation.stop()
    activation.stop()
    recorder.await_status("Disconnecting", "Down")
    assert recorder.statuses.empty()


def test_starting_again_after_a_stop(adapter, recorder):
    inbox = Inbox()
    activation = activate(adapter, inbox)
    for body in "ab":
        activation.start()
        send(adapter, body)
        assert inbox.take(1) == [(body, 1)]
        recorder.await_outcome(Outcome.COMMITTED)
        activation.stop()


def test_stop_waits_for_the_handler_at_work(adapter, recorder):
    working, go_on, ended = threading.Event(), threading.Event(), []

    def handler(message: Message) -> None:
        working.set()
        assert go_on.wait(PATIENCE)
        ended.append("handler")

    def stop() -> None:
        activation.stop()
        ended.append("stop")

    activation = activate(adapter, handler)
    activation.start()
    send(adapter, "a")
    assert working.wait(PATIENCE)
    stopper = in_thread(stop)
    recorder.await_status("Connecting", "Up", "Disconnecting")
    with pytest.raises(IllegalStateError, match="being stopped"):
        activation.start()
    assert stopper.is_alive()
    go_on.set()
    stopper.join(PATIENCE)
    recorder.await_outcome(Outcome.COMMITTED)
    assert (activation.status, waiting(adapter), ended) == ("Down", [], ["handler", "stop"])


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_stop_that_does_not_wait_ends_well_where_no_handler_is_at_work(adapter, recorder, caplog, mode):
    spec = ActivationSpec(destination="q", concurrency_mode=mode, redelivery_handling="5:delete")
    activation = adapter.activate(spec, Inbox())
    activation.start()
    recorder.await_status("Connecting", "Up")
    assert activation.stop(timeout=0)
    assert activation.status == "Down"
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_stop_gives_back_what_was_taken_ahead(adapter, recorder):
    send(adapter, *"abc")
    working, go_on = threading.Event(), threading.Event()

    def handler(message: Message) -> None:
        working.set()
        assert go_on.wait(PATIENCE)

    activation = activate(adapter, handler)
    activation.start()
    assert working.wait(PATIENCE)
    stopper = in_thread(activation.stop)
    recorder.await_status("Connecting", "Up", "Disconnecting")
    go_on.set()
    stopper.join(PATIENCE)
    assert waiting(adapter) == [("b", 0), ("c", 0)]


def test_stop_from_inside_the_handler(adapter, recorder):
    send(adapter, "a", "b")
    activation = activate(adapter, lambda message: activation.stop())
    activation.start()
    recorder.await_outcome(Outcome.COMMITTED)
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert waiting(adapter) == [("b", 0)]


def test_adapter_can_be_stopped_by_a_handler(adapter, recorder):
    send(adapter, "a")
    activate(adapter, lambda message: adapter.stop())
    adapter.start()
    recorder.await_status("Connecting", "Up", "Disconnecting", "Down")
    assert waiting(adapter) == []


def test_file_in_a_missing_folder_is_down_and_stays_down(tmp_path, recorder, caplog):
    adapter = ResourceAdapter(f"embedded://{tmp_path}/missing/broker.db", hooks=[recorder])
    activation = activate(adapter, Inbox())
    with caplog.at_level(logging.ERROR, "jmsjca"), adapter:
        recorder.await_status("Connecting", "Down")
    assert activation.status == "Down"
    [record] = caplog.records
    assert "stopped permanently" in record.message
    assert "does not exist" in record.message


def test_with_a_wrong_selector_it_is_down_and_stays_down(adapter, recorder, caplog):
    activation = adapter.activate(ActivationSpec(destination="q", selector="a = = 1"), Inbox())
    activation.start()
    recorder.await_status("Connecting", "Down")
    assert "stopped permanently: The selector is wrong at position 5" in caplog.text


def test_failed_start_can_be_repeated(tmp_path, recorder):
    adapter = ResourceAdapter(f"embedded://{tmp_path}/later/broker.db", hooks=[recorder])
    activation = activate(adapter, Inbox())
    activation.start()
    recorder.await_status("Connecting", "Down")
    (tmp_path / "later").mkdir()
    activation.start()
    recorder.await_status("Connecting", "Up")
    activation.stop()


class Flaky:
    """A provider whose broker is down at first, or whose connections break at their first receive."""

    def __init__(self, refusals: int = 0, breaks: int = 0) -> None:
        self.refusals, self.breaks, self.connections = refusals, breaks, 0

    def connect(self, *args, **kwargs):
        if self.refusals:
            self.refusals -= 1
            raise ConnectionLostError("refused")
        self.connections += 1
        connection = find_provider("embedded").connect(*args, **kwargs)
        if self.breaks:
            self.breaks -= 1
            connection.consumer = self.broken
        return connection

    def broken(self, *args, **kwargs):
        raise ConnectionLostError("broken")


@pytest.fixture
def use(monkeypatch):
    def register(provider: Flaky) -> Flaky:
        monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider)
        monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
        return provider

    return register


def test_broker_that_comes_later(adapter, recorder, use):
    send(adapter, "a")
    use(Flaky(refusals=3))
    inbox = Inbox()
    activate(adapter, inbox).start()
    assert inbox.take(1) == [("a", 1)]
    recorder.await_status("Connecting", "Up")


def test_broken_connection_is_replaced(adapter, recorder, use, caplog):
    send(adapter, "a")
    provider = use(Flaky(breaks=2))
    inbox = Inbox()
    activate(adapter, inbox).start()
    assert inbox.take(1) == [("a", 1)]
    recorder.await_status("Connecting", "Up")  # told once, however often it tries
    assert provider.connections == 3
    assert "attempt 2 failed" in caplog.text


def test_stop_while_the_broker_is_away(adapter, recorder, use):
    use(Flaky(refusals=1_000_000))
    activation = activate(adapter, Inbox())
    activation.start()
    recorder.await_status("Connecting")
    activation.stop()
    recorder.await_status("Disconnecting", "Down")


@pytest.mark.parametrize("moment", ["Connecting", "Up"])
def test_a_hook_may_stop_the_endpoint(jms_broker_url, moment):
    recorder = Recorder()

    class Stopper(Hooks):
        def status_changed(self, endpoint, status):
            if status == moment:
                activation.stop()

    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder, Stopper()])
    activation = activate(adapter, Inbox())
    activation.start()
    recorder.await_status(*(["Connecting", "Up"] if moment == "Up" else ["Connecting"]), "Disconnecting", "Down")


def test_credentials_go_to_the_broker_that_they_are_for():
    adapter = ResourceAdapter("embedded://", "adapter", "a-secret")
    for spec, expected in [
        ({}, ("adapter", "a-secret")),
        ({"connection_url": "embedded://b"}, ("adapter", "a-secret")),
        ({"connection_url": "embedded://me:mine@b"}, ("me", "mine")),
        ({"connection_url": "embedded://me:mine@b", "user_name": "spec", "password": "s"}, ("spec", "s")),
    ]:
        activation = adapter.activate(ActivationSpec(destination="q", **spec), print)
        settings = activation._settings
        credentials = settings.credentials(ConnectionURL.parse(settings.url))
        assert (credentials.user_name, credentials.password) == expected


def client_id_is_taken(url, client_id):
    with pytest.raises(InvalidClientIDError):
        ConnectionFactory(url, client_id=client_id).create_connection()
    return True


def test_its_connection_has_the_client_id(adapter, recorder, jms_broker_url):
    adapter.activate(ActivationSpec(destination="q", client_id="mine"), Inbox()).start()
    recorder.await_status("Connecting", "Up")
    assert client_id_is_taken(jms_broker_url, "mine")


def test_the_connection_of_a_durable_subscription_has_a_client_id_made_from_its_name(adapter, recorder, jms_broker_url):
    durable = {"subscription_durability": "Durable", "subscription_name": "s"}
    adapter.activate(ActivationSpec(destination=Topic("t"), **durable), Inbox()).start()
    recorder.await_status("Connecting", "Up")
    assert client_id_is_taken(jms_broker_url, "CLIENTID-s")


def test_an_adapter_without_a_url_creates_neither_listeners_nor_factories():
    adapter = ResourceAdapter()
    with pytest.raises(InvalidActivationSpecError, match="connection_url"):
        activate(adapter, Inbox())
    with pytest.raises(InvalidActivationSpecError):
        adapter.connection_factory()


def test_spec_may_name_another_broker(adapter, recorder, tmp_path):
    url = f"embedded://{tmp_path}/other.db"
    inbox = Inbox()
    adapter.activate(ActivationSpec(destination="q", connection_url=url), inbox).start()
    send(ResourceAdapter(url), "there")
    assert inbox.take(1) == [("there", 1)]


def test_text_form(adapter):
    url = adapter._connection_url
    assert repr(activate(adapter, Inbox())) == f"<Activation serial-QueueReceiver(q) @ [{url}] Down>"


TABLE = {
    "Down": {"start": "Connecting"},
    "Connecting": {"connected": "Up", "stop": "Disconnecting", "ended": "Down"},
    "Up": {"broken": "Connecting", "stop": "Disconnecting", "ended": "Down"},
    "Disconnecting": {"ended": "Down"},
}


@given(st.lists(st.sampled_from(["start", "connected", "broken", "stop", "ended"])))
def test_what_happens_leads_where_the_table_says(events):
    told = []
    state = ActivationState(told.append)
    expected = ["Down"]
    for event in events:
        following = TABLE[expected[-1]].get(event)
        assert state.fire(event, "run") is (following is not None)
        expected += [following] if following else []
        assert state.status == expected[-1]
    assert told == expected[1:]


def test_what_happens_to_an_earlier_run_means_nothing():
    state = ActivationState(lambda status: None)
    for event in ("start", "connected", "stop", "ended"):
        state.fire(event, "first")
    state.fire("start", "second")
    assert not state.fire("connected", "first")
    assert not state.fire("ended", "first")
    assert (state.status, state.current_run) == ("Connecting", "second")


def test_a_status_hook_that_causes_a_change_gets_the_next_status_afterwards():
    told = []

    def tell(status):
        told.append(f"<{status}")
        if status == "Up":
            state.fire("stop", "run")
        told.append(f"{status}>")

    state = ActivationState(tell)
    state.fire("start", "run")
    state.fire("connected", "run")
    assert told == ["<Connecting", "Connecting>", "<Up", "Up>", "<Disconnecting", "Disconnecting>"]


def test_what_happens_while_another_thread_tells_is_told_by_that_one_and_waits_for_nothing():
    told, telling, go_on = [], threading.Event(), threading.Event()

    def tell(status):
        if status == "Connecting":
            telling.set()
            assert go_on.wait(30)
        told.append((status, threading.current_thread()))

    state = ActivationState(tell)
    teller = threading.Thread(target=state.fire, args=("start", "run"))
    teller.start()
    assert telling.wait(30)
    state.fire("connected", "run")
    assert (state.status, told) == ("Up", [])
    go_on.set()
    teller.join(30)
    assert told == [("Connecting", teller), ("Up", teller)]
