"""Hooks: onions around the handler and around sends, and notices that harm nobody."""

import pytest

from jmsjca import Hooks, Message, Outcome, ResourceAdapter, TextMessage
from jmsjca.hooks import HookChain
from tests.unit.inbound import Inbox, Recorder, send


class Named(Hooks):
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def around_delivery(self, endpoint, message, call_next):
        self.notes.append(f"{self.name} before")
        try:
            return f"{self.name}({call_next()})"
        finally:
            self.notes.append(f"{self.name} after")

    def settled(self, endpoint, outcome, messages):
        self.notes.append(f"{self.name} {endpoint} {outcome.value} {messages}")


class Failing(Hooks):
    def settled(self, endpoint, outcome, messages):
        raise KeyError("settled")

    def status_changed(self, endpoint, status):
        raise KeyError("status")


def test_hooks_surround_the_handler_from_the_first_inwards():
    notes: list[str] = []
    chain = HookChain([Named("outer", notes), Named("inner", notes)])
    assert chain.deliver("e", TextMessage("a"), lambda: "result") == "outer(inner(result))"
    assert notes == ["outer before", "inner before", "inner after", "outer after"]


def test_handlers_exception_passes_all_hooks():
    notes: list[str] = []
    chain = HookChain([Named("outer", notes), Named("inner", notes)])
    with pytest.raises(ZeroDivisionError):
        chain.deliver("e", TextMessage("a"), lambda: 1 / 0)
    assert notes[-2:] == ["inner after", "outer after"]


def test_notices_come_in_order():
    notes: list[str] = []
    HookChain([Named("one", notes), Named("two", notes)]).settled("e", Outcome.COMMITTED, 3)
    assert notes == ["one e committed 3", "two e committed 3"]


def test_failing_notice_is_logged_and_changes_nothing(caplog):
    recorder = Recorder()
    chain = HookChain([Failing(), recorder])
    chain.settled("e", Outcome.LOST, 1)
    chain.status_changed("e", "Up")
    recorder.await_outcome(Outcome.LOST)
    recorder.await_status("Up")
    assert "Failing.settled" in caplog.text
    assert "Failing.status_changed" in caplog.text


def test_hooks_that_override_nothing_do_nothing():
    chain = HookChain([Hooks()])
    assert chain.deliver("e", TextMessage("a"), lambda: 1) == 1
    chain.settled("e", Outcome.COMMITTED, 1)
    chain.status_changed("e", "Up")


class RefuseOnce(Hooks):
    """Fails before the handler is called, the first time."""

    def __init__(self) -> None:
        self.failures = [KeyError("hook")]

    def around_delivery(self, endpoint: str, message: Message, call_next):
        if self.failures:
            raise self.failures.pop()
        return call_next()


def test_exception_of_a_hook_counts_as_the_handlers(jms_broker_url):
    recorder, inbox = Recorder(), Inbox()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder, RefuseOnce(), Failing()])
    adapter.listener("q")(inbox)
    with adapter:
        send(adapter, "a")
        assert inbox.take(1) == [("a", 2)]
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
