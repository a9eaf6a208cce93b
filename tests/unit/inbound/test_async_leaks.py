"""A coroutine leaves no reference cycles with message bodies behind."""

import asyncio
import logging
from weakref import ref

import pytest

from jmsjca import Message, Outcome
from tests.unit.inbound.listeners import send


@pytest.fixture(autouse=True)
def nothing_logged(no_collector, caplog):
    caplog.set_level(logging.CRITICAL, "jmsjca.inbound")  # pytest keeps what is logged, and errors have their frames


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("error", [None, KeyError("x"), SystemExit(1), asyncio.CancelledError()], ids=repr)
def test_no_circle_keeps_a_body(adapter, recorder, mode, error):
    seen = []

    @adapter.listener("q", concurrency_mode=mode)
    async def handler(message: Message) -> None:
        seen.append(ref(message))
        await asyncio.sleep(0)
        if error is not None and len(seen) == 1:
            raise type(error)("first")

    send(adapter, "a")
    with adapter:
        if error is not None:
            recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert [message() for message in seen] == [None] * len(seen)
