"""The account of a stop: each message that a listener had received is in one of its numbers."""

import threading

import pytest

from jmsjca import Message, ResourceAdapter
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Recorder, in_thread, send, waiting

MODES = ["serial", "sync", "cc"]


class Holding:
    """A handler that waits in its first call."""

    def __init__(self):
        self.entered, self.released = threading.Event(), threading.Event()

    def __call__(self, message: Message) -> None:
        self.entered.set()
        self.released.wait(PATIENCE)


@pytest.fixture
def holding():
    holding = Holding()
    yield holding
    holding.released.set()


def stop_of_dispatcher(adapter):
    """Return an event that is set when the dispatcher takes no more messages; the status changes earlier."""
    dispatcher, stopped = adapter.activations[0]._state.current_run.delivering[1], threading.Event()
    stop = dispatcher.stop

    def stop_and_note(*arguments):
        stop(*arguments)
        stopped.set()

    dispatcher.stop = stop_and_note
    return stopped


@pytest.mark.parametrize("mode", MODES)
def test_what_a_handler_ends_is_finished_and_the_rest_returned_or_not_received(adapter, holding, mode):
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1)(holding)
    adapter.start(wait=PATIENCE)
    send(adapter, *"abcdef")
    assert holding.entered.wait(PATIENCE)
    stopped, reports = stop_of_dispatcher(adapter), []
    thread = in_thread(lambda: reports.append(adapter.stop(timeout=PATIENCE)))
    assert stopped.wait(PATIENCE)
    holding.released.set()
    thread.join(PATIENCE)
    [report] = reports
    assert report
    assert (report.finished, report.in_doubt, report.abandoned) == (1, 0, 0)
    assert len(waiting(adapter)) == 5
    assert 0 <= report.returned <= 5
    assert [count for _, count in waiting(adapter)] == [0] * 5  # returned uncounted


@pytest.mark.parametrize("mode", MODES)
def test_what_is_active_at_the_deadline_is_abandoned(adapter, holding, mode):
    adapter.listener("q", concurrency_mode=mode)(holding)
    adapter.start(wait=PATIENCE)
    send(adapter, "a")
    assert holding.entered.wait(PATIENCE)
    report = adapter.stop(timeout=0)
    assert not report
    assert (report.finished, report.abandoned) == (0, 1)
    assert waiting(adapter) == [("a", 1)]


def test_a_cc_listener_returns_what_it_prefetched(adapter, holding):
    adapter.listener("q", concurrency_mode="cc", endpoint_pool_max_size=1)(holding)
    adapter.start(wait=PATIENCE)
    send(adapter, *"abc")
    assert holding.entered.wait(PATIENCE)
    queue = adapter.activations[0]._state.current_run.delivering[1]._queue
    until(lambda: len(queue.ready) == 2)
    stopped, reports = stop_of_dispatcher(adapter), []
    thread = in_thread(lambda: reports.append(adapter.stop(timeout=PATIENCE)))
    assert stopped.wait(PATIENCE)
    holding.released.set()
    thread.join(PATIENCE)
    assert (reports[0].finished, reports[0].returned) == (1, 2)


def test_a_failed_message_is_finished_too(jms_broker_url):
    recorder, failing = Recorder(), Holding()

    def fail(message: Message) -> None:
        failing(message)
        raise ValueError

    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("q", concurrency_mode="sync")(fail)
    adapter.start(wait=PATIENCE)
    send(adapter, "a")
    assert failing.entered.wait(PATIENCE)
    stopped, reports = stop_of_dispatcher(adapter), []
    thread = in_thread(lambda: reports.append(adapter.stop(timeout=PATIENCE)))
    assert stopped.wait(PATIENCE)
    failing.released.set()
    thread.join(PATIENCE)
    assert reports[0].finished == 1
    assert waiting(adapter) == [("a", 1)]


def test_an_idle_stop_has_nothing_to_account_for(adapter):
    adapter.listener("q")(print)
    adapter.start(wait=PATIENCE)
    report = adapter.stop()
    assert (bool(report), report.finished, report.returned, report.in_doubt, report.abandoned) == (True, 0, 0, 0, 0)
