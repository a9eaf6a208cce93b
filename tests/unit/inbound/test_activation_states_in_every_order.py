"""The states of an activation in every order of thread steps."""

import logging
import os
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest
from interleaving import explore

from jmsjca import ActivationSpec, Hooks
from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, IllegalStateError, NotSupportedError
from jmsjca.hooks import HookChain
from jmsjca.inbound import activation, lifecycle
from jmsjca.inbound.activation import Activation
from jmsjca.reconnection import ConnectionSettings, connect

WHOLE = os.environ.get("JMSJCA_ALL_ORDERS") == "1"
SAMPLE = 60
PREEMPTIONS = {2: 2, 3: 1}  # for so many acts; each one more costs twenty times as long
LONGEST_PAUSE = 12  # seconds between attempts to connect; who waits longer waits for an end

FOLLOWING = {
    "Down": {"Connecting"},
    "Connecting": {"Up", "Disconnecting", "Down"},
    "Up": {"Connecting", "Disconnecting", "Down"},
    "Disconnecting": {"Down"},
}


class StoppedClock(Clock):
    """No time passes."""

    def monotonic(self):
        return 0.0


class Told(Hooks):
    """Notes the statuses that it is told, and whether two were told at once."""

    def __init__(self, schedule):
        self.schedule, self.statuses, self.telling = schedule, [], False

    def status_changed(self, endpoint, status):
        assert not self.telling
        self.telling = True
        self.schedule.pause()
        self.statuses.append(status)
        self.telling = False


class Delivering:
    """Stands where messages are delivered: runs until it is stopped."""

    def __init__(self, schedule):
        self.schedule, self.stopped, self.running, self.error = schedule, False, False, None

    def run(self):
        self.running = True
        self.schedule.until(lambda: self.stopped)
        self.running = False
        if self.error is not None:
            raise self.error

    def stop(self, error=None):
        self.stopped, self.error = True, self.error or error


class Stage:
    """An activation whose threads are those of a schedule, at a broker that may refuse at first."""

    def __init__(self, schedule, patch, refusals=()):
        self.schedule, self.refusals = schedule, list(refusals)
        self.links, self.told, self.deliveries, self.acts = [], Told(schedule), [], 0
        threads = SimpleNamespace(
            Lock=self.make_lock, RLock=self.make_lock, Event=schedule.event, Thread=self.make_thread
        )
        for module in (lifecycle, activation):
            patch.setattr(module, "threading", threads)
        patch.setattr(
            lifecycle, "FailoverConnector", lambda settings: SimpleNamespace(connect=partial(self.connect, settings))
        )
        patch.setattr(lifecycle, "create_dispatcher", self.create_dispatcher)
        settings = ConnectionSettings("embedded://every-state", clock=StoppedClock(), wait=self.wait)
        spec = ActivationSpec(destination="q")
        self.activation = Activation(spec, lambda message: None, settings, HookChain([self.told]))

    def make_lock(self):
        self.schedule.pause()
        return self.schedule.lock()

    def make_thread(self, *, target, name, daemon):
        assert daemon
        return SimpleNamespace(start=lambda: self.schedule.thread(name, target))

    def connect(self, settings, lost, should_continue):
        self.schedule.pause()
        if self.refusals:
            raise self.refusals.pop(0)
        link = connect(settings)
        self.links.append((link, lost))
        return link

    def create_dispatcher(self, *given):
        self.schedule.pause()
        self.deliveries.append(Delivering(self.schedule))
        return self.deliveries[-1]

    def wait(self, event, seconds):
        if seconds > LONGEST_PAUSE:
            return event.wait()
        self.schedule.pause()
        return event.is_set()

    def act(self, schedule, name, act):
        """Add a thread that does something, perhaps while the activation is being stopped."""
        self.acts += 1

        def acting():
            with suppress(IllegalStateError):
                act()
            self.acts -= 1

        schedule.thread(name, acting)

    def lose(self):
        """The first connection breaks; where none is ever made, nothing does."""
        self.schedule.until(lambda: self.links or self.acts == 1)
        for _, lost in self.links[:1]:
            lost(ConnectionLostError("It is cut."))

    def end(self):
        """Stop it when all is done, whatever came of it: where messages flow it is up."""
        self.schedule.until(lambda: not self.acts)
        flowing = any(delivery.running and not delivery.stopped for delivery in self.deliveries)
        assert not flowing or self.activation.status == "Up"
        self.activation.stop()

    def check(self):
        """See that it ended well; tell the states that it was in."""
        statuses = self.told.statuses
        assert self.activation.status == (statuses or ["Down"])[-1] == "Down"
        for before, after in zip(["Down", *statuses], statuses, strict=False):
            assert after in FOLLOWING[before], statuses
        assert not any(delivery.running for delivery in self.deliveries)
        for link, _ in self.links:
            with pytest.raises(IllegalStateError, match="closed"):
                link.unit()
        assert not self.activation._endpoint.handler._open
        assert self.activation.stats.n_configured_endpoints == -1
        return statuses


CASES = {
    "started and stopped": ["start", "stop"],
    "started, and stopped twice": ["start", "stop", "stop"],
    "started twice, and stopped": ["start", "start", "stop"],
    "started again and stopped": ["start", "restart", "stop"],
    "its connection breaks, and it is stopped": ["start", "lose", "stop"],
    "its connection breaks, and it is started again": ["start", "lose", "restart"],
    "its connection breaks, and that is told twice": ["start", "lose", "lose"],
    "it is asked to stop, and stopped": ["start", "ask", "stop"],
    "it is asked to stop while its connection breaks": ["start", "ask", "lose"],
    "it is given up": ["start", "give up"],
    "it is given up while its connection breaks": ["start", "give up", "lose"],
    "it is given up, and stopped": ["start", "give up", "stop"],
    "the broker is down at first, and it is stopped": ["start", "stop", ConnectionLostError("The broker is down.")],
    "the broker refuses it, and it is stopped": ["start", "stop", NotSupportedError("The broker cannot.")],
    "the broker refuses it, and it is started again": ["start", "restart", NotSupportedError("The broker cannot.")],
}


@pytest.mark.parametrize("case", CASES)
def test_whatever_comes_first_it_goes_from_state_to_state_and_ends(monkeypatch, capsys, caplog, case):
    caplog.set_level(logging.CRITICAL, "jmsjca")  # or what is kept of tens of thousands of orders fills the memory
    names = [name for name in CASES[case] if isinstance(name, str)]
    refusals = [error for error in CASES[case] if not isinstance(error, str)]

    seen = set()

    def scenario(schedule):
        stage = Stage(schedule, monkeypatch, refusals)
        acts = {
            "start": stage.activation.start,
            "stop": stage.activation.stop,
            "restart": stage.activation.restart,
            "ask": partial(stage.activation.request_stop, "the test wants it"),
            "give up": partial(stage.activation.stop, 0),
            "lose": stage.lose,
        }
        for name in names:
            stage.act(schedule, name, acts[name])
        schedule.thread("end", stage.end)
        return lambda: seen.update(stage.check())

    orders = explore(scenario, PREEMPTIONS[len(names)], None if WHOLE else SAMPLE, seed=21)
    assert "Up" in seen or any(isinstance(error, NotSupportedError) for error in refusals)
    with capsys.disabled():
        print(f"\norders of an activation, {case}: {orders}{'' if WHOLE else ' thrown (sample)'}")
