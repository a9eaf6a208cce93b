"""Time travel in tests: delays, expiries and timeouts of the embedded broker and of listeners become due at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from jmsjca.arguments import SECONDS
from jmsjca.config.clock import SystemClock
from jmsjca.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pytest

__all__ = ["TimeTravel"]

_PATIENCE = 30.0
_POLL = 0.01  # seconds of real time after which waiting threads look at the clock again


class TimeTravel:
    """The clock of jmsjca in this process, which a test can advance.

    It is the clock of everything that was created with the default clock: embedded brokers, connections, listeners,
    pools. Brokers on a network and other processes keep their own time.

    Args:
        patch: The fixture that undoes the change after the test.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        from jmsjca.inbound.delay_queue import DelayQueue  # loaded by the tests that need it

        self._offset = 0.0
        patch.setattr(SystemClock, "now", staticmethod(partial(self._read, time.time)))
        patch.setattr(SystemClock, "monotonic", staticmethod(partial(self._read, time.monotonic)))
        patch.setattr("jmsjca.providers.embedded.consumer._SAFETY_POLL", _POLL)
        time_to_next = DelayQueue[object].time_to_next

        def soon(queue: DelayQueue[object], limit: float | None) -> float | None:
            """Return a short wait if something is delayed: the clock may be advanced during the wait."""
            seconds = time_to_next(queue, limit)
            return seconds if not len(queue) or seconds is None else min(seconds, _POLL)

        patch.setattr(DelayQueue, "time_to_next", soon)
        patch.setattr("jmsjca.inbound.dispatcher._wait", self._wait)

    def _read(self, source: Callable[[], float]) -> float:
        return source() + self._offset

    def _wait(self, stopping: Event, seconds: float) -> bool:
        """Wait on the thread of a serial listener, which looks at the clock again and again."""
        end = self._read(time.monotonic) + seconds
        while (left := end - self._read(time.monotonic)) > 0:
            if stopping.wait(min(left, _POLL)):
                return True
        return stopping.is_set()

    @property
    def now(self) -> datetime:
        """The present time, as jmsjca sees it."""
        return datetime.fromtimestamp(time.time() + self._offset, UTC)

    def advance(self, seconds: float | timedelta) -> None:
        """Advance the clock: what is due until then happens at once.

        Args:
            seconds: Seconds, or a `timedelta`.

        Raises:
            InvalidArgumentError: The clock cannot be turned back.
        """
        step = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        if not 0 <= step < float("inf"):
            raise InvalidArgumentError(f"advance({seconds!r}): the clock goes forward only, by seconds from 0 on.")
        self._offset += step

    def advance_until(
        self, condition: Callable[[], object], step: float | timedelta, timeout: float | timedelta = _PATIENCE
    ) -> None:
        """Advance the clock step by step until a condition holds.

        Use it for a delay that another thread begins: for example, a redelivery is delayed some time after the handler
        has failed, and an advance before that would have no effect on it.

        Args:
            condition: A function that returns a true value once the test can go on.
            step: Seconds, or a `timedelta`, of each advance.
            timeout: Seconds of real time to wait at most.

        Raises:
            AssertionError: The condition does not hold in time.
            InvalidArgumentError: As for `advance`.
        """
        timeout = SECONDS("timeout", timeout)
        deadline, pause = time.monotonic() + timeout, Event()
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"The condition does not hold after {timeout:g} s of real time.")
            self.advance(step)
            pause.wait(2 * _POLL)

    async def advance_until_async(
        self,
        condition: Callable[[], object],
        step: float | timedelta,
        timeout: float | timedelta = _PATIENCE,  # noqa: ASYNC109  # as the blocking method
    ) -> None:
        """Advance as `advance_until` does, without blocking the event loop; the condition is called on a thread."""
        await asyncio.to_thread(self.advance_until, condition, step, timeout)
