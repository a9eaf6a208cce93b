"""Reconnecting: back-off, log records, and permanent failures."""

import logging
import threading

import pytest

from jmsjca import ActivationSpec, Topic, reconnection
from jmsjca.config import resolve_spec
from jmsjca.errors import ConnectionLostError, InvalidClientIDError, InvalidURLError, NotSupportedError
from jmsjca.hooks import HookChain
from jmsjca.inbound import Activation
from jmsjca.reconnection import ConnectionSettings, retry_with_backoff
from tests.unit.clocks import HandClock
from tests.unit.inbound.failing_provider import Shaky, Waits
from tests.unit.inbound.listeners import PATIENCE, Inbox, send

REFUSED = ConnectionLostError("refused")


class Trial:
    """Something that fails so many times, and is tried again without waiting."""

    def __init__(self, failures: int, error: Exception = REFUSED) -> None:
        self.failures, self.error, self.calls = failures, error, 0
        self.stopping = threading.Event()
        self.told: list[tuple[int, float]] = []
        self.waits: list[float] = []

    def act(self) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error

    def run(self) -> None:
        retry_with_backoff(self.act, self.stopping, self.note, self.wait)

    def note(self, error: BaseException, attempt: int, seconds: float) -> None:
        assert error is self.error
        self.told.append((attempt, seconds))

    def wait(self, event: threading.Event, seconds: float) -> None:
        assert event is self.stopping
        self.waits.append(seconds)


def test_the_schedule_and_what_is_told_of_it():
    trial = Trial(8)
    trial.run()
    assert trial.calls == 9
    assert trial.told == list(enumerate(trial.waits, 1))
    for seconds, expected in zip(trial.waits, [1, 2, 5, 5, 10, 10, 10, 10], strict=True):
        assert 0.8 * expected <= seconds <= 1.2 * expected


def test_waits_differ_so_that_not_all_come_at_once():
    trials = [Trial(1) for _ in range(20)]
    for trial in trials:
        trial.run()
    assert len({trial.waits[0] for trial in trials}) > 1


@pytest.mark.parametrize("error", [InvalidURLError("wrong"), NotSupportedError("never"), KeyError("a fault")])
def test_no_second_attempt_where_it_cannot_help(error):
    trial = Trial(1, error)
    with pytest.raises(type(error)):
        trial.run()
    assert (trial.calls, trial.waits) == (1, [])


def test_stopped_during_a_wait():
    trial = Trial(100)
    trial.wait = lambda event, seconds: event.set() if trial.calls == 3 else None
    trial.run()
    assert trial.calls == 3


def test_stopped_during_an_attempt():
    trial = Trial(100)
    act = trial.act
    trial.act = lambda: (trial.stopping.set(), act())
    trial.run()
    assert (trial.calls, trial.waits) == (1, [])


@pytest.fixture
def waits():
    return Waits(HandClock())


@pytest.fixture
def made(monkeypatch, jms_broker_url, waits, recorder):
    """Makes activations on a shaky broker; they are stopped at the end."""
    activations = []

    def make(provider, handler=None, options=None, **spec):
        monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider)
        settings = ConnectionSettings(jms_broker_url, clock=waits.clock, wait=waits)
        effective = resolve_spec(
            ActivationSpec(**{"destination": "q", "redelivery_handling": ""} | spec), options or {}, jms_broker_url
        )
        activations.append(Activation(effective, handler or Inbox(), settings, HookChain([recorder])))
        return activations[-1]

    yield make
    for activation in activations:
        activation.stop()


def of_level(caplog, level):
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_each_failed_attempt_is_a_warning(made, recorder, caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    made(Shaky(REFUSED, REFUSED)).start()
    recorder.await_status("Connecting", "Up")
    first, second = of_level(caplog, logging.WARNING)
    assert "attempt 1 failed" in first
    assert "refused" in first
    assert "attempt 2 failed" in second
    assert any("is Up" in line for line in of_level(caplog, logging.INFO))


def test_minimal_logging_is_one_error_for_a_row_of_failures(made, recorder, caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    provider = Shaky(REFUSED, REFUSED, None, REFUSED, REFUSED)
    made(provider, options={"JMSJCA.minimalreconnectlogging": "1"}).start()
    recorder.await_status("Connecting", "Up")
    assert len(of_level(caplog, logging.ERROR)) == 1
    assert of_level(caplog, logging.WARNING) == []
    provider.lose()
    recorder.await_status("Connecting", "Up")
    assert len(of_level(caplog, logging.ERROR)) == 2


DURABLE = {"destination": Topic("t"), "subscription_durability": "Durable", "subscription_name": "s"}


@pytest.mark.parametrize(
    ("refusal", "level"), [(InvalidClientIDError("in use"), logging.INFO), (REFUSED, logging.ERROR)]
)
def test_minimal_logging_of_a_subscription_that_another_node_has(made, recorder, caplog, refusal, level):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    made(Shaky(refusal, refusal), options={"JMSJCA.minimalreconnectloggingds": "1"}, **DURABLE).start()
    recorder.await_status("Connecting", "Up")
    told = [line for line in of_level(caplog, level) if str(refusal) in line]
    assert len(told) == 1
    assert of_level(caplog, logging.WARNING) == []


def test_minimal_logging_of_a_consumer_that_is_refused(made, recorder, caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")
    provider, refusals = Shaky(), iter([REFUSED, REFUSED])

    def refuse():
        for refusal in refusals:
            raise refusal

    provider.subscribing = refuse
    made(provider, options={"JMSJCA.minimalreconnectloggingds": "1"}, **DURABLE).start()
    recorder.await_status("Connecting", "Up")
    assert len([line for line in of_level(caplog, logging.INFO) if "refused" in line]) == 1


def test_a_connection_that_breaks_at_once_again_and_again_is_tried_less_and_less(made, recorder, waits):
    provider = Shaky()
    made(provider).start()
    for _ in range(4):
        recorder.await_status("Connecting", "Up")
        provider.lose()
    recorder.await_status("Connecting", "Up")
    assert [round(seconds / 1.3) for seconds in waits.seconds[:2]] in ([1, 2], [1, 1])
    assert all(4 <= seconds <= 6 for seconds in waits.seconds[2:])


def test_a_connection_that_was_up_for_a_while_is_made_again_at_once(made, recorder, waits, caplog):
    provider = Shaky(REFUSED, REFUSED, None, None, REFUSED)
    made(provider).start()
    recorder.await_status("Connecting", "Up")
    waits.clock.time += 60
    before = len(waits.seconds)
    provider.lose()
    recorder.await_status("Connecting", "Up")
    assert len(waits.seconds) == before
    assert "lost its connection and reconnects" in caplog.text
    provider.lose()  # soon after: the schedule begins
    recorder.await_status("Connecting", "Up")
    assert [0.8 <= seconds <= 2.4 for seconds in waits.seconds[before:]] == [True, True]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_lost_connection_is_noticed_by_a_consumer_that_hears_nothing(made, recorder, jms_adapter, mode):
    provider, inbox = Shaky(), Inbox()
    activation = made(provider, inbox, concurrency_mode=mode)
    activation.start()
    recorder.await_status("Connecting", "Up")
    provider.lose()
    recorder.await_status("Connecting", "Up")
    send(jms_adapter, "a")
    assert inbox.take(1)[0][0] == "a"


def test_a_connection_that_is_lost_while_it_subscribes_is_never_up(made, recorder):
    provider = Shaky()
    losses = iter([True])
    provider.subscribing = lambda: provider.lose() if next(losses, False) else None
    activation = made(provider)
    activation.start()
    recorder.await_status("Connecting", "Up")
    assert len(provider.connections) == 2
    assert recorder.statuses.empty()


def test_the_loss_of_an_earlier_connection_means_nothing(made, recorder, jms_adapter):
    provider, inbox = Shaky(), Inbox()
    made(provider, inbox).start()
    recorder.await_status("Connecting", "Up")
    provider.lose()
    recorder.await_status("Connecting", "Up")
    provider.lose(0)
    send(jms_adapter, "a")
    assert inbox.take(1)[0][0] == "a"
    assert recorder.statuses.empty()


def test_status_is_connecting_while_a_handler_of_a_lost_connection_is_at_work(made, recorder, jms_adapter):
    working, go_on = threading.Event(), threading.Event()

    def handler(message):
        working.set()
        assert go_on.wait(PATIENCE)

    provider = Shaky()
    activation = made(provider, handler)
    activation.start()
    recorder.await_status("Connecting", "Up")
    send(jms_adapter, "a")
    assert working.wait(PATIENCE)
    provider.lose(0)
    recorder.await_status("Connecting")
    assert activation.status == "Connecting"
    go_on.set()
    recorder.await_status("Up")


def test_stop_ends_a_wait(made, recorder, waits):
    waits.lasting = 2
    activation = made(Shaky(*[REFUSED] * 5))
    activation.start()
    assert waits.begun.wait(PATIENCE)
    assert activation.stop()
    recorder.await_status("Connecting", "Disconnecting", "Down")
