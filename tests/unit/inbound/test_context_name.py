"""The context name in the log around each handler call."""

import asyncio
import logging

import pytest

from jmsjca import ActivationSpec, Outcome
from jmsjca.inbound import ContextFilter, current_context
from tests.unit.inbound.listeners import Inbox, send

handlers_log = logging.getLogger("tests.handler")


@pytest.fixture
def logged(caplog):
    """What is logged, in order, as a program with the filter sees it."""
    caplog.set_level(logging.INFO)
    context_filter = ContextFilter()
    caplog.handler.addFilter(context_filter)

    def lines():
        wanted = ("com.stc.", "tests.handler")
        return [(record.name, record.getMessage()) for record in caplog.records if record.name.startswith(wanted)]

    yield lines
    caplog.handler.removeFilter(context_filter)


def log_a_line(message):
    handlers_log.info("got %s", message.body)


async def log_later(message):
    await asyncio.sleep(0)
    handlers_log.info("got %s", message.body)


async def log_on_a_thread(message):
    await asyncio.to_thread(log_a_line, message)


def deliver(adapter, recorder, handler, outcome=Outcome.COMMITTED, **spec):
    send(adapter, "a")
    activation = adapter.activate(ActivationSpec(destination="q", **spec), handler)
    activation.start()
    recorder.await_outcome(outcome)
    activation.stop()


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("handler", [log_a_line, log_later, log_on_a_thread])
def test_around_each_call_and_before_what_the_handler_logs(adapter, recorder, logged, handler, mode):
    deliver(adapter, recorder, handler, context_name="orders of 100%", concurrency_mode=mode)
    assert logged() == [
        ("com.stc.EnterContext", "orders of 100%"),
        ("tests.handler", "[orders of 100%] got a"),
        ("com.stc.ExitContext", "orders of 100%"),
    ]


def test_after_a_failure_too(adapter, recorder, logged):
    deliver(adapter, recorder, Inbox(ValueError("no")), Outcome.ROLLED_BACK, context_name="c", redelivery_handling="")
    assert [name for name, _ in logged()][:2] == ["com.stc.EnterContext", "com.stc.ExitContext"]


@pytest.mark.parametrize("name", [None, ""])
def test_nothing_without_a_name(adapter, recorder, logged, name):
    deliver(adapter, recorder, log_a_line, context_name=name)
    assert logged() == [("tests.handler", "got a")]


def test_the_handler_can_ask_for_it_and_it_ends_with_the_call(adapter, recorder):
    seen = []
    deliver(adapter, recorder, lambda message: seen.append(current_context.get()), context_name="c")
    assert (seen, current_context.get()) == (["c"], None)


def record(msg, *args):
    return logging.LogRecord("x", logging.INFO, "f", 1, msg, args, None)


def test_the_filter_marks_a_record_once_and_lets_it_pass():
    plain, full, no_text = record("50 %"), record("%d of 10", 7), record(["a"])
    token = current_context.set("c%d")
    try:
        for some in (plain, full, no_text):
            assert ContextFilter().filter(some)
            assert ContextFilter().filter(some)
    finally:
        current_context.reset(token)
    assert plain.getMessage() == "[c%d] 50 %"
    assert full.getMessage() == "[c%d] 7 of 10"
    assert no_text.getMessage() == "[c%d] ['a']"
    assert plain.context == "c%d"


def test_the_filter_outside_of_handlers():
    outside = record("%s", "x")
    assert ContextFilter().filter(outside)
    assert (outside.getMessage(), outside.context) == ("x", "")
