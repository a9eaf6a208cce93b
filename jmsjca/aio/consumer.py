"""Consumers for asyncio. Hands over received messages from the session's thread to the event loop."""

import asyncio
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Self, overload

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, SingleThreadExecutor, run_in_thread
from jmsjca.errors import IllegalStateError, MessageFormatError
from jmsjca.messages.message import Message
from jmsjca.outbound.consumer import PrefetchingReceiver

__all__ = ["Consumer"]


class Consumer(AsyncCloseable):
    """A `jmsjca.MessageConsumer` for asyncio. Like its session, it is used by one task at a time.

    `Session.create_consumer` and its variants create it. ``async for message in consumer`` receives messages until the
    consumer is closed.

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
    async def receive(self, timeout: float | timedelta | None) -> Message | None:  # noqa: ASYNC109, D418
        """Wait for the next message; return None at the timeout."""

    async def receive(self, timeout: float | timedelta | None = None) -> Message | Any:  # noqa: ASYNC109  # JMS has it
        """Receive the next message.

        Without a timeout, the wait only ends without a message if another task closes the consumer. Therefore type
        checkers do not demand a check for None then.

        A cancelled receive consumes nothing: its message is the next one to be received. A returned message is
        acknowledged, or belongs to the transaction, before the next call of the session. If that fails, the next call
        raises the error, and the message is redelivered.

        Args:
            timeout: Seconds to wait, counted from when the session is free; None waits forever, 0 does not wait.

        Returns:
            The message; None if none arrived in time, or if another task closed the consumer during the wait.

        Raises:
            IllegalStateError: The consumer is closed.
            MessageFormatError: The message cannot be decoded; see `jmsjca.MessageConsumer.receive`.
        """
        return await ReceiveHandoff(self._receiver, self._executor, timeout).receive()

    async def close(self) -> None:
        """Release prefetched messages. Received messages stay with the session. Idempotent.

        Another task may call it: a waiting `receive` returns None.
        """
        await run_in_thread(self._wrapped.close)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        try:
            message = None if self.closed else await self.receive()
        except IllegalStateError:
            if not self.closed:  # otherwise another task closed it during the wait
                raise
            message = None
        if message is None:
            raise StopAsyncIteration
        return message


class ReceiveHandoff:
    """One receive: the thread proposes a message, and the event loop accepts it, so no cancelled receive loses one.

    The thread waits for the answer to its proposal. The event loop answers between two awaits, where no cancellation
    can occur. If it accepts, the message is returned and settled in the session's mode. If it refuses, the message
    stays the next one to be received.

    Args:
        receiver: The prefetch buffer of the blocking consumer.
        executor: The thread of the session.
        timeout: Seconds that the thread waits for a message; None waits forever.
    """

    def __init__(
        self, receiver: PrefetchingReceiver, executor: SingleThreadExecutor, timeout: float | timedelta | None
    ) -> None:
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
