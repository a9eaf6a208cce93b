"""Consumers for asyncio, and the hand-over of a received message from the session's thread to the event loop."""

import asyncio
from concurrent.futures import Future
from typing import Any, Self, overload

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, SingleThreadExecutor, run_in_thread
from jmsjca.errors import IllegalStateError, MessageFormatError
from jmsjca.messages.message import Message
from jmsjca.outbound.consumer import PrefetchingReceiver

__all__ = ["Consumer"]


class Consumer(AsyncCloseable):
    """A `jmsjca.MessageConsumer` for asyncio. Like its session it is used by one task at a time.

    `Session.create_consumer` and its variants create it. ``async for message in consumer`` receives one message after
    the other, and ends when the consumer is closed.

    Args:
        wrapped: The blocking consumer.
        session: The blocking session that created it.
        executor: The thread of the session.
    """

    def __init__(
        self, wrapped: outbound.MessageConsumer, session: outbound.Session, executor: SingleThreadExecutor
    ) -> None:
        self._wrapped = wrapped
        self._receiver = wrapped._receiver  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        self._session = session
        self._executor = executor

    @property
    def closed(self) -> bool:
        """True once the consumer or its session is closed."""
        return self._wrapped.closed or self._session.closed

    @overload
    async def receive(self, timeout: None = None) -> Message | Any:  # noqa: ASYNC109, D418
        """Wait for the next message."""

    @overload
    async def receive(self, timeout: float | None) -> Message | None:  # noqa: ASYNC109, D418
        """Wait for the next message; return None at the timeout."""

    async def receive(self, timeout: float | None = None) -> Message | Any:  # noqa: ASYNC109  # JMS has it
        """Receive the next message.

        Without a timeout only the close by another task ends the wait without a message: type checkers do not demand a
        check for None then.

        A cancelled receive consumes nothing: the message stays the next one. A returned message is acknowledged, or
        belongs to the transaction, before the next call of the session; if that fails, the next call raises the error,
        and the message is redelivered.

        Args:
            timeout: Seconds to wait, from the time when the session is free; None waits forever, 0 does not wait.

        Returns:
            The message; None if none arrived in time, or if another task closed the consumer meanwhile.

        Raises:
            IllegalStateError: The consumer is closed.
            MessageFormatError: The message cannot be decoded; see `jmsjca.MessageConsumer.receive`.
        """
        return await ReceiveHandoff(self._receiver, self._executor, timeout).receive()

    async def close(self) -> None:
        """Release prefetched messages; received ones stay with the session. Idempotent.

        Another task may call it: a waiting `receive` returns None.
        """
        await run_in_thread(self._wrapped.close)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        try:
            message = None if self.closed else await self.receive()
        except IllegalStateError:
            if not self.closed:  # not closed meanwhile
                raise
            message = None
        if message is None:
            raise StopAsyncIteration
        return message


class ReceiveHandoff:
    """One receive: the thread proposes a message, the event loop accepts it, so a cancelled receive loses no message.

    The thread proposes the message and waits for the answer. The event loop answers between two awaits, where no
    cancellation can occur: either it accepts, and the message is returned and settled as the session's mode says; or it
    refuses, and the message stays the next one.

    Args:
        receiver: The prefetch buffer of the blocking consumer.
        executor: The thread of the session.
        timeout: Seconds that the thread waits for a message; None waits forever.
    """

    def __init__(self, receiver: PrefetchingReceiver, executor: SingleThreadExecutor, timeout: float | None) -> None:
        self._receiver = receiver
        self._executor = executor
        self._timeout = timeout
        self._proposed: Future[Message | None] = Future()
        self._accepted: Future[bool] = Future()

    async def receive(self) -> Message | None:
        """Return the message that the thread proposes; None if none arrived in time."""
        self._executor.submit_detached(self._receive)
        try:
            return await asyncio.wrap_future(self._proposed)
        except (asyncio.CancelledError, GeneratorExit):
            self._accepted.set_result(False)
            self._receiver.interrupt()
            raise
        finally:
            if not self._accepted.done():
                self._accepted.set_result(True)

    def _receive(self) -> None:
        try:
            self._executor.raise_pending()
            self._receiver.receive_if(self._propose, self._accepted.done, self._timeout)
        except Exception as error:
            if self._proposed.done():
                raise
            self._resolve(error)
        finally:
            if not self._proposed.done():
                self._resolve(None)

    def _propose(self, message: Message | MessageFormatError) -> bool:
        self._resolve(message)
        return self._accepted.result()

    def _resolve(self, outcome: Message | Exception | None) -> None:
        if not self._proposed.set_running_or_notify_cancel():
            return  # the receive is cancelled
        if isinstance(outcome, Exception):
            self._proposed.set_exception(outcome)
        else:
            self._proposed.set_result(outcome)
