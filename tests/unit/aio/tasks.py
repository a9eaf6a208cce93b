"""What the tests of cancelling share: a task that is cancelled, and a session whose thread is at work."""

import asyncio
import threading

import pytest

from tests.unit.outbound.queues import PATIENCE


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Busy:
    """Keeps a session's thread at work until `go_on`."""

    def __init__(self, session):
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._task = asyncio.create_task(session.run_sync(self._work))

    async def begun(self):
        assert await asyncio.to_thread(self._begun.wait, PATIENCE)
        return self

    async def go_on(self):
        self._go_on.set()
        await self._task

    def _work(self, _):
        self._begun.set()
        assert self._go_on.wait(PATIENCE)
