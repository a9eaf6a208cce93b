"""Records the calls of the handlers of an adapter, and makes deliveries fail, without a change of the handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from threading import Condition
from typing import Any

from jmsjca.arguments import SECONDS
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidArgumentError, MessageFormatError
from jmsjca.hooks import Hooks
from jmsjca.messages import Message

__all__ = ["CallRecorder", "HandlerCall"]

_PATIENCE = 30.0


@dataclass(frozen=True)
class HandlerCall:
    """One call of a handler.

    Attributes:
        destination: The name of the queue or topic of the message; empty if the header is damaged.
        message: The message; of a whole batch its first one.
        result: The result of the handler; None if it failed.
        error: The exception of the handler, or the planted one; None if it returned.
    """

    destination: str
    message: Message
    result: object
    error: BaseException | None

    @property
    def body(self) -> Any:
        """The body of the message."""
        return self.message.body


@dataclass
class _Failures:
    """Deliveries that shall fail.

    Attributes:
        times: The number of deliveries that still fail.
        destination: The name of the queue or topic; None for all.
        error: The exception.
    """

    times: int
    destination: str | None
    error: BaseException


class CallRecorder(Hooks):
    """Hooks of an adapter that record each call of a handler. Thread-safe.

    ::

        def test_an_order_is_confirmed(jms_adapter, jms_calls):
            jms_adapter.listener("orders")(on_order)
            jms_adapter.send("orders", "a pear")
            assert jms_calls.wait_for("orders")[0].result == "confirmed"
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._calls: list[HandlerCall] = []
        self._failures: list[_Failures] = []

    def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
        """Call the handler, and record what it was called with and how it ended."""
        del endpoint
        destination = _name_of(message)
        result: object = None
        failure: BaseException | None = None
        try:
            self._fail_if_planned(destination)
            result = call_next()
        except BaseException as error:
            failure = error
            raise
        finally:
            self._record(HandlerCall(destination, message, result, failure))
        return result

    @property
    def calls(self) -> list[HandlerCall]:
        """All calls so far that have ended, in the order of their ends."""
        with self._changed:
            return list(self._calls)

    def of(self, destination: str | Destination) -> list[HandlerCall]:
        """Return the calls with messages of a destination.

        Args:
            destination: The queue or topic, or its name.
        """
        return _of(self.calls, destination)

    def wait_for(
        self, destination: str | Destination, count: int = 1, timeout: float | timedelta = _PATIENCE
    ) -> list[HandlerCall]:
        """Wait until the handlers of a destination were called so many times, failures included.

        Args:
            destination: The queue or topic, or its name.
            count: The number of calls.
            timeout: Seconds to wait at most.

        Raises:
            AssertionError: They were not called so often in time; the text shows the calls.
        """
        timeout = SECONDS("timeout", timeout)
        with self._changed:
            if not self._changed.wait_for(lambda: len(_of(self._calls, destination)) >= count, timeout):
                raise AssertionError(
                    f"{count} calls with messages of {destination} are expected within {timeout:g} s; "
                    f"there were: {_described(self._calls)}"
                )
            return _of(self._calls, destination)

    async def wait_for_async(
        self,
        destination: str | Destination,
        count: int = 1,
        timeout: float | timedelta = _PATIENCE,  # noqa: ASYNC109  # as the blocking method
    ) -> list[HandlerCall]:
        """Wait as `wait_for` does, without blocking the event loop."""
        return await asyncio.to_thread(self.wait_for, destination, count, timeout)

    def assert_called_once_with(
        self, destination: str | Destination, body: object, timeout: float | timedelta = _PATIENCE
    ) -> HandlerCall:
        """Wait for the first call with a message of a destination; check its body, and that there is no other call.

        Args:
            destination: The queue or topic, or its name.
            body: The expected body.
            timeout: Seconds to wait at most.

        Returns:
            The call.

        Raises:
            AssertionError: There is no call in time, there are several, or the body is another one.
        """
        calls = self.wait_for(destination, 1, timeout)
        if len(calls) > 1 or calls[0].body != body:
            raise AssertionError(f"One call with {body!r} is expected; there were: {_described(calls)}")
        return calls[0]

    async def assert_called_once_with_async(
        self,
        destination: str | Destination,
        body: object,
        timeout: float | timedelta = _PATIENCE,  # noqa: ASYNC109  # as the blocking method
    ) -> HandlerCall:
        """Wait and check as `assert_called_once_with` does, without blocking the event loop."""
        return await asyncio.to_thread(self.assert_called_once_with, destination, body, timeout)

    def assert_not_called(self, destination: str | Destination) -> None:
        """Check that there is no call so far with a message of a destination.

        Use `jmsjca.testing.idle.wait_until_idle` first, so that no message is on its way.

        Args:
            destination: The queue or topic, or its name.

        Raises:
            AssertionError: There are calls.
        """
        if calls := self.of(destination):
            raise AssertionError(f"No call with messages of {destination} is expected; there were: {_described(calls)}")

    def fail_next(
        self, times: int = 1, error: BaseException | None = None, destination: str | Destination | None = None
    ) -> None:
        """Make the next deliveries fail instead of calling the handler, so that their units are rolled back.

        Args:
            times: The number of deliveries.
            error: The exception, for example a `Reject` or a `Retry`; None for a `RuntimeError`.
            destination: The queue or topic, or its name; None for all.

        Raises:
            InvalidArgumentError: The number is less than 1.
        """
        if times < 1:
            raise InvalidArgumentError(f"times={times!r}: give the number of deliveries that fail, from 1 on.")
        planned = RuntimeError("The test lets this delivery fail.") if error is None else error
        name = None if destination is None else _name(destination)
        with self._changed:
            self._failures.append(_Failures(times, name, planned))

    def reset(self) -> None:
        """Forget all calls, and the failures that have not happened yet."""
        with self._changed:
            self._calls.clear()
            self._failures.clear()

    def __reduce__(self) -> tuple[type[Hooks], tuple[()]]:
        return Hooks, ()  # a connection factory travels with its hooks, but not to another process' test

    def _fail_if_planned(self, destination: str) -> None:
        with self._changed:
            planned = next((each for each in self._failures if each.destination in {None, destination}), None)
            if planned is None:
                return
            planned.times -= 1
            if not planned.times:
                self._failures.remove(planned)
        raise planned.error

    def _record(self, call: HandlerCall) -> None:
        with self._changed:
            self._calls.append(call)
            self._changed.notify_all()


def _of(calls: Iterable[HandlerCall], destination: str | Destination) -> list[HandlerCall]:
    name = _name(destination)
    return [call for call in calls if call.destination == name]


def _name(destination: str | Destination) -> str:
    return destination if isinstance(destination, str) else destination.name


def _name_of(message: Message) -> str:
    try:
        return "" if message.destination is None else message.destination.name
    except MessageFormatError:
        return ""


def _described(calls: Iterable[HandlerCall]) -> str:
    return "; ".join(map(_description, calls)) or "none"


def _description(call: HandlerCall) -> str:
    failure = f" failed: {call.error!r:.80}" if call.error is not None else ""
    return f"{call.destination}: {call.body!r:.80}{failure}"
