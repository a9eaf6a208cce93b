"""Exceptions of signal handlers in the calls of an adapter: a second call works, and listeners report their status."""

import threading
from contextlib import suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import Message, Queue, ResourceAdapter
from jmsjca.inbound.activation_state import ActivationState, Status
from jmsjca.inbound.listener_log import in_listener
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.inbound.listeners import Inbox, Recorder, send
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

PACKAGE = Path(jmsjca.__file__).parent
PLACES = tuple(str(PACKAGE / place) for place in ("adapter.py", "forking.py", "inbound", "reconnection.py"))


def listening(url: str) -> tuple[ResourceAdapter, Recorder, Inbox]:
    """An adapter with one listener, which records its statuses and its messages."""
    recorder, inbox = Recorder(), Inbox()
    adapter = ResourceAdapter(url, hooks=[recorder])
    adapter.listener(Queue("q"))(inbox)
    return adapter, recorder, inbox


def assert_works(adapter: ResourceAdapter, recorder: Recorder, inbox: Inbox) -> None:
    """The adapter can be started, waited for and stopped, by another thread; each change of the status is reported."""
    in_background(adapter.start, PATIENCE).result(PATIENCE)
    send(adapter, "a")
    assert inbox.take(1) == [("a", 1)]
    assert in_background(adapter.stop).result(PATIENCE)
    assert [a.status for a in adapter.activations] == ["Down"]
    assert list(recorder.statuses.queue)[-4:] == ["Connecting", "Up", "Disconnecting", "Down"]
    assert not in_listener()  # it would make `stop` return at once


@pytest.mark.parametrize("then", ["start", "stop"])
def test_interrupted_start_can_be_repeated_or_stopped(jms_broker_url, then):
    def play(interruption: Interruption) -> None:
        adapter, recorder, inbox = listening(jms_broker_url)
        with suppress(TimeLimitError), interruption.planted():
            adapter.start()
        if then == "stop":
            assert in_background(adapter.stop).result(PATIENCE)
            assert [a.status for a in adapter.activations] == ["Down"]
        assert_works(adapter, recorder, inbox)

    assert each_moment(play, TimeLimitError, *PLACES) > 20


def test_interrupted_wait_of_a_start_can_be_repeated(jms_broker_url):
    def play(interruption: Interruption) -> None:
        adapter, recorder, inbox = listening(jms_broker_url)
        adapter.start()
        with suppress(TimeLimitError), interruption.planted():
            adapter.start(PATIENCE)
        assert_works(adapter, recorder, inbox)

    assert each_moment(play, TimeLimitError, *PLACES) > 10


def test_adapter_whose_stop_was_interrupted_can_be_started_again(jms_broker_url):
    def play(interruption: Interruption) -> None:
        adapter, recorder, inbox = listening(jms_broker_url)
        adapter.start(PATIENCE)
        with suppress(TimeLimitError), interruption.planted():
            adapter.stop()
        assert in_background(adapter.stop).result(PATIENCE)
        assert_works(adapter, recorder, inbox)

    assert each_moment(play, TimeLimitError, *PLACES) > 20


def test_interrupted_stop_at_its_deadline_can_be_repeated(jms_broker_url):
    """A handler is active, so that the stop closes the connection. The message is redelivered."""

    def play(interruption: Interruption) -> None:
        entered, released = threading.Event(), threading.Event()

        def handler(_: Message) -> None:
            entered.set()
            released.wait(PATIENCE)

        adapter = ResourceAdapter(jms_broker_url)
        adapter.listener(Queue("q"))(handler)
        adapter.start(PATIENCE)
        send(adapter, "a")
        assert entered.wait(PATIENCE)
        with suppress(TimeLimitError), interruption.planted():
            adapter.stop(0)
        in_background(adapter.stop, 0).result(PATIENCE)
        assert [a.status for a in adapter.activations] == ["Down"]
        released.set()
        other, _, inbox = listening(jms_broker_url)
        with other:
            assert [body for body, _ in inbox.take(1)] == ["a"]

    assert each_moment(play, TimeLimitError, *PLACES) > 20


def test_status_of_another_thread_is_reported_although_the_report_before_is_interrupted():
    """The other thread leaves its report to the one that reports already."""

    def report(status: Status) -> None:
        if status == "Connecting":
            in_background(state.fire, "connected", "a run").result(PATIENCE)
            raise TimeLimitError
        reported.append(status)

    reported: list[Status] = []
    state: ActivationState[str] = ActivationState(report)
    with pytest.raises(TimeLimitError):
        state.fire("start", "a run")
    assert reported == ["Up"]
