"""Waits for listeners: until they are up, or until none of them can run any more."""

import itertools
import logging
import queue
import signal
import subprocess
import sys
import threading

import pytest

from jmsjca import ActivationSpec, Hooks, Outcome, ResourceAdapter, Topic, reconnection
from jmsjca.errors import (
    ActivationFailedError,
    ActivationTimeoutError,
    ConnectionLostError,
    JMSSecurityError,
    ResourceAllocationError,
)
from tests.unit.inbound.failing_provider import Shaky
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send

REFUSED, FORBIDDEN = ConnectionLostError("nobody listens there"), JMSSecurityError("wrong password")


class Attempts(logging.Handler):
    """Sets an event when an attempt to connect has failed."""

    def __init__(self):
        super().__init__()
        self.failed = threading.Event()

    def emit(self, record):
        if "attempt" in record.getMessage():
            self.failed.set()


@pytest.fixture
def attempts():
    handler = Attempts()
    logging.getLogger("jmsjca").addHandler(handler)
    yield handler
    logging.getLogger("jmsjca").removeHandler(handler)


@pytest.fixture
def failing(monkeypatch):
    """Make an adapter whose connections take failures."""
    made = []

    def make(*failures, **options):
        provider = Shaky(*failures)
        monkeypatch.setattr(reconnection, "find_provider", lambda _: provider)
        made.append(ResourceAdapter("embedded://startup", **options))
        return made[-1]

    yield make
    for adapter in made:
        adapter.stop()


def test_messages_can_flow_after_the_wait(jms_adapter):
    for name in "abc":
        jms_adapter.listener(name)(Inbox())
    jms_adapter.start(wait=PATIENCE)
    assert [each.status for each in jms_adapter.activations] == ["Up"] * 3


def test_it_waits_for_ever_with_none(failing):
    adapter = failing()
    adapter.listener("a")(Inbox())
    adapter.listener("b", concurrency_mode="cc")(Inbox())
    adapter.start(wait=None)
    assert {each.status for each in adapter.activations} == {"Up"}


def test_what_is_not_up_in_time_is_named_with_its_latest_error_and_goes_on_trying(failing, attempts):
    adapter = failing(*[REFUSED] * 100)
    adapter.listener("orders")(Inbox())
    adapter.start()
    assert attempts.failed.wait(PATIENCE)
    with pytest.raises(ActivationTimeoutError, match=r"orders.* is Connecting: nobody listens there") as raised:
        adapter.start(wait=0.001)
    assert "0.001 s" in str(raised.value)
    assert isinstance(raised.value, TimeoutError)
    assert adapter.activations[0].status == "Connecting"


def test_a_permanent_failure_ends_the_wait_at_once(failing):
    adapter = failing(FORBIDDEN)
    adapter.listener("orders")(Inbox())
    with pytest.raises(ActivationFailedError, match=r"orders.* is Down: wrong password") as raised:
        adapter.start(wait=None)
    assert raised.value.__cause__ is FORBIDDEN
    assert not isinstance(raised.value, TimeoutError)


def test_the_others_go_on_after_a_permanent_failure_of_one(failing):
    recorder = Recorder()
    adapter = failing(FORBIDDEN, hooks=[recorder])
    adapter.listener("orders")(Inbox())
    with pytest.raises(ActivationFailedError):
        adapter.start(wait=None)
    adapter.listener("pears")(Inbox())
    recorder.await_status("Connecting", "Down", "Connecting", "Up")
    assert [each.status for each in adapter.activations] == ["Down", "Up"]


def test_without_a_wait_nothing_is_raised(failing):
    recorder = Recorder()
    adapter = failing(FORBIDDEN, hooks=[recorder])
    adapter.listener("orders")(Inbox())
    adapter.start()
    recorder.await_status("Connecting", "Down")
    assert adapter.activations[0].failure is FORBIDDEN


def test_what_is_stopped_meanwhile_is_not_waited_for(failing, attempts):
    adapter = failing(*[REFUSED] * 100)
    adapter.listener("orders")(Inbox())
    waiter = threading.Thread(target=adapter.start, kwargs={"wait": None})
    waiter.start()
    assert attempts.failed.wait(PATIENCE)
    adapter.stop()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_a_failure_is_forgotten_at_the_next_start(failing):
    adapter = failing(FORBIDDEN)
    activation = adapter.activate(ActivationSpec(destination="orders"), Inbox())
    with pytest.raises(ActivationFailedError):
        adapter.start(wait=None)
    adapter.start(wait=PATIENCE)
    assert (activation.status, activation.failure, activation.last_error) == ("Up", None, None)


def test_a_failure_of_either_side_of_a_distributed_subscription_is_one_of_the_listener(failing):
    adapter = failing(FORBIDDEN)
    fields = {"subscription_durability": "Durable", "subscription_name": "jmsjca://?distribution=1&subscribername=s"}
    adapter.listener(Topic("news"), **fields)(Inbox())
    with pytest.raises(ActivationFailedError, match="wrong password"):
        adapter.start(wait=None)


def test_run_ends_with_an_error_when_no_listener_can_run(failing):
    adapter = failing(*itertools.repeat(FORBIDDEN, 2))
    adapter.listener("orders")(Inbox())
    adapter.listener("pears")(Inbox())
    with pytest.raises(ActivationFailedError) as raised:
        adapter.run()
    text = str(raised.value)
    assert text.startswith("All listeners have stopped permanently")
    assert [text.count(part) for part in ("(orders)", "(pears)", "is Down: wrong password")] == [1, 1, 2]


def test_run_serves_on_while_one_listener_can_run(failing):
    class StopWhenUp(Hooks):
        """Ends the program when one listener is down and one is up."""

        def __init__(self):
            self.seen = set()
            self.signalled = False

        def status_changed(self, endpoint, status):
            self.seen.add(status)
            if self.seen >= {"Down", "Up"} and not self.signalled:
                self.signalled = True  # once: a change during the stop may come when the handler is removed already
                signal.raise_signal(signal.SIGTERM)

    adapter = failing(FORBIDDEN, hooks=[StopWhenUp()])
    adapter.listener("orders")(Inbox())
    adapter.listener("pears")(Inbox())
    assert adapter.run()


def test_a_listener_that_its_handler_stopped_is_no_failure(jms_adapter):
    activation = jms_adapter.activate(ActivationSpec(destination="q"), Inbox())
    jms_adapter.start(wait=PATIENCE)
    activation.stop()
    assert (activation.status, activation.failure) == ("Down", None)


def test_a_program_without_a_listener_that_can_run_ends_with_a_status():
    script = """
import jmsjca, signal
signal.alarm(60)
adapter = jmsjca.ResourceAdapter("embedded://host:1")
adapter.listener("orders")(print)
adapter.run()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ActivationFailedError: All listeners have stopped permanently" in done.stderr
    assert "serial-QueueReceiver(orders) @ [embedded://host:1] is Down: " in done.stderr


class TestTheSystemRefusesThreads:
    """As containers with a limit of processes do: that is no reason to end a listener, nor to wait for one."""

    @pytest.fixture
    def refuse(self, monkeypatch):
        """Make the starts of threads with a text in their names fail, so many times."""
        start, refusals = threading.Thread.start, {}

        def started(thread):
            for text, times in refusals.items():
                if text in thread.name and times:
                    refusals[text] = times - 1
                    raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", started)
        return refusals

    def test_to_the_activation(self, adapter, refuse):
        refuse["serial-QueueReceiver"] = 1
        inbox = Inbox()
        adapter.listener("q", redelivery_handling="")(inbox)
        with pytest.raises(ResourceAllocationError, match="needs a thread"):
            adapter.start()
        assert adapter.activations[0].status == "Down"
        assert adapter.stop()
        adapter.start(wait=PATIENCE)
        send(adapter, "a")
        assert inbox.take(1) == [("a", 1)]

    @pytest.mark.parametrize(("mode", "text"), [("sync", "sync #0("), ("cc", " #0")])
    def test_to_its_first_handler(self, adapter, refuse, mode, text):
        """The listener tries again."""
        inbox = Inbox()
        adapter.listener("q", redelivery_handling="", concurrency_mode=mode)(inbox)
        refuse[text] = 1
        adapter.start()
        send(adapter, "a")
        assert inbox.take(1)[0][0] == "a"
        assert refuse[text] == 0

    @pytest.mark.parametrize(("mode", "text"), [("sync", "sync #1("), ("cc", " #1")])
    def test_to_another_handler(self, adapter, recorder, refuse, mode, text):
        """The first one goes on."""
        both, refuse[text] = threading.Barrier(2), 1

        def handler(message):
            if message.body == "meet":  # of two threads
                both.wait(PATIENCE)

        adapter.listener("q", redelivery_handling="", concurrency_mode=mode, endpoint_pool_max_size=2)(handler)
        send(adapter, *"abcdef", "meet", "meet")
        adapter.start(wait=PATIENCE)
        for _ in range(8):
            recorder.await_outcome(Outcome.COMMITTED)
        recorder.await_status("Connecting", "Up")
        assert (recorder.statuses.empty(), refuse[text]) == (True, 0)

    def test_to_the_settler_of_held_units(self, adapter, refuse):
        """The connection is replaced."""
        refuse["settler"] = 1
        held = queue.Queue()
        spec = {"concurrency_mode": "cc", "hold_until_ack": True, "acknowledgement_timeout": 600}
        adapter.listener("q", redelivery_handling="", **spec)(held.put)
        adapter.start()
        send(adapter, "a")
        assert held.get(timeout=PATIENCE).redelivered is False
        again = held.get(timeout=PATIENCE)
        assert (again.redelivered, again.acknowledge().wait(PATIENCE)) == (True, Outcome.COMMITTED)


def test_an_interrupted_start_leaves_the_activation_down(jms_broker_url):
    class Interrupt(Hooks):
        def status_changed(self, endpoint, status):
            if status == "Connecting" and interrupts:
                raise interrupts.pop()

    interrupts = [KeyboardInterrupt()]
    adapter = ResourceAdapter(jms_broker_url, hooks=[Interrupt()])
    adapter.listener("q", redelivery_handling="")(print)
    with pytest.raises(KeyboardInterrupt):
        adapter.start()
    assert adapter.activations[0].status == "Down"
    assert adapter.stop()
