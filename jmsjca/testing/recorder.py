"""A handler for tests that records its messages, waits for them, and fails when a test says so."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition
from time import monotonic
from typing import Any

from jmsjca.errors import InvalidArgumentError
from jmsjca.messages import Message
from jmsjca.testing.idle import IdleWatch

__all__ = ["MessageRecorder", "RecordedCall"]

_PATIENCE = 30.0
_IDLE = 1.0  # seconds without any activity after which a wait fails; another thread of the test may still send
_LOOK = 0.1
_SHOWN = 20


@dataclass(frozen=True)
class RecordedCall:
    """One call of a recorder.

    Attributes:
        message: The message that it was called with.
        error: The exception that it raised because of `MessageRecorder.fail_next`; None if it returned.
    """

    message: Message
    error: BaseException | None


class MessageRecorder:
    """Records the messages that a listener delivers. Thread-safe.

    With a broker in memory, a wait fails before its timeout once all listeners of the process have been idle for a
    second: no message waits for a consumer, is processed or delayed.

    ::

        def test_an_order_is_confirmed(jms_adapter, jms_recorder):
            jms_adapter.listener("confirmations")(jms_recorder)
            jms_adapter.send("orders", "a pear")
            jms_recorder.assert_received("confirmed: a pear")
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._calls: list[RecordedCall] = []
        self._failures: deque[BaseException] = deque()

    def __call__(self, message: Message) -> None:
        """Record a message; raise the next error of `fail_next`, if any.

        Args:
            message: The message.
        """
        with self._changed:
            error = self._failures.popleft() if self._failures else None
            self._calls.append(RecordedCall(message, error))
            self._changed.notify_all()
        if error is not None:
            raise error

    @property
    def calls(self) -> list[RecordedCall]:
        """All calls so far, those that failed included."""
        with self._changed:
            return list(self._calls)

    @property
    def messages(self) -> list[Message]:
        """The messages of all calls so far that did not fail."""
        return [call.message for call in self.calls if call.error is None]

    @property
    def bodies(self) -> list[Any]:
        """The bodies of `messages`."""
        return [message.body for message in self.messages]

    def fail_next(self, times: int = 1, error: BaseException | None = None) -> None:
        """Make the next calls raise an exception, so that their units are rolled back.

        Args:
            times: The number of calls.
            error: The exception, for example a `Reject` or a `Retry`; None for a `RuntimeError`.

        Raises:
            InvalidArgumentError: The number is less than 1.
        """
        if times < 1:
            raise InvalidArgumentError(f"times={times!r}: give the number of calls that fail, from 1 on.")
        with self._changed:
            planned = RuntimeError("The test lets this delivery fail.") if error is None else error
            self._failures.extend([planned] * times)

    def wait_for(self, count: int, timeout: float = _PATIENCE) -> list[Message]:
        """Wait until as many messages are received without a failure.

        Args:
            count: The number of messages.
            timeout: Seconds to wait at most.

        Returns:
            The messages, in the order of their deliveries.

        Raises:
            AssertionError: They are not received in time; the text shows those that are.
        """
        self._wait(
            lambda: len(self.messages) >= count,
            timeout,
            lambda reason: f"{count} messages are expected{reason}; {self._received()}",
        )
        return self.messages

    def wait_for_calls(self, count: int, timeout: float = _PATIENCE) -> list[RecordedCall]:
        """Wait until the recorder was called so many times, failures included.

        Args:
            count: The number of calls.
            timeout: Seconds to wait at most.

        Raises:
            AssertionError: It was not called so often in time.
        """
        self._wait(
            lambda: len(self._calls) >= count,
            timeout,
            lambda reason: f"{count} calls are expected{reason}; {len(self._calls)} came.",
        )
        return self.calls

    def assert_received(self, *bodies: object, timeout: float = _PATIENCE) -> None:
        """Wait for messages with these bodies, in any order. Other messages are permitted.

        Args:
            *bodies: The bodies, each as often as it is expected.
            timeout: Seconds to wait at most.

        Raises:
            AssertionError: A body is not received in time; the text shows those that are.
        """
        self._wait(
            lambda: not self._missing(bodies),
            timeout,
            lambda reason: f"{self._missing(bodies)!r} was not received{reason}; {self._received()}",
        )

    async def wait_for_async(self, count: int, timeout: float = _PATIENCE) -> list[Message]:  # noqa: ASYNC109  # as the blocking method
        """Wait as `wait_for` does, without blocking the event loop."""
        return await asyncio.to_thread(self.wait_for, count, timeout)

    async def wait_for_calls_async(self, count: int, timeout: float = _PATIENCE) -> list[RecordedCall]:  # noqa: ASYNC109
        """Wait as `wait_for_calls` does, without blocking the event loop."""
        return await asyncio.to_thread(self.wait_for_calls, count, timeout)

    async def assert_received_async(self, *bodies: object, timeout: float = _PATIENCE) -> None:  # noqa: ASYNC109
        """Wait as `assert_received` does, without blocking the event loop."""
        await asyncio.to_thread(self.assert_received, *bodies, timeout=timeout)

    def reset(self) -> None:
        """Forget all calls, and the failures that have not happened yet."""
        with self._changed:
            self._calls.clear()
            self._failures.clear()

    def _wait(self, condition: Callable[[], bool], timeout: float, problem: Callable[[str], str]) -> None:
        """Wait for a condition, until the timeout or until no further message can come.

        Raises:
            AssertionError: It is not true by then.
        """
        deadline, calls = monotonic() + timeout, -1
        idle_since: float | None = None
        with IdleWatch(self) as watch:
            while True:
                with self._changed:
                    if self._changed.wait_for(condition, max(min(_LOOK, deadline - monotonic()), 0)):
                        return
                    busy, calls = calls != len(self._calls), len(self._calls)
                    reason = f" within {timeout:g} s" if monotonic() >= deadline else None
                if busy or not watch.is_idle():
                    idle_since = None
                elif idle_since is None:
                    idle_since = monotonic()
                elif monotonic() - idle_since >= _IDLE:
                    reason = ", and all listeners are idle"
                with self._changed:
                    if reason is not None and not condition():
                        raise AssertionError(problem(reason))

    def _missing(self, expected: tuple[object, ...]) -> list[object]:
        left, missing = self.bodies, list[object]()
        for body in expected:
            if body in left:
                left.remove(body)
            else:
                missing.append(body)
        return missing

    def _received(self) -> str:
        bodies, failed = self.bodies, sum(call.error is not None for call in self._calls)
        return f"received: {bodies[-_SHOWN:]!r}" + (f", and {failed} deliveries that failed" if failed else "")
