"""Consumers for asyncio, and how a received message passes from the session's thread to the event loop."""

import asyncio
from concurrent.futures import Future
from typing import Self

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, SingleThreadExecutor, run_in_thread
from jmsjca.errors import IllegalStateError, MessageFormatError
from jmsjca.messages import Message
from jmsjca.outbound import MessageConsumer

__all__ = ["Consumer", "ReceiveHandoff"]


class Consumer(AsyncCloseable):
    """Made by `Session.create_consumer` and its like; used by one task at a time, as its session.

    ``async for message in consumer`` waits for one message after the other, and ends when the consumer is closed.

    Args:
        wrapped: The consumer beneath, which blocks.
        session: The session that made it.
        executor: The thread of that session.
    """

    def __init__(
        self, wrapped: outbound.MessageConsumer, session: outbound.Session, executor: SingleThreadExecutor
    ) -> None:
        self._wrapped = wrapped
        self._session = session
        self._executor = executor

    @property
    def closed(self) -> bool:
        """True once it was closed, or its session."""
        return self._wrapped.closed or self._session.closed

    async def receive(self, timeout: float | None = None) -> Message | None:  # noqa: ASYNC109  # JMS has it
        """Receive the next message.

        A cancelled receive takes nothing: the message stays the next one. What is returned is acknowledged, or part of
        the unit, before the session's next call; should that fail, the next call says so, and the message comes again.

        Args:
            timeout: Seconds to wait, from when the session is free; None waits for ever, 0 does not wait.

        Returns:
            The message; None if none came in time, or if the consumer was closed meanwhile by another task.

        Raises:
            IllegalStateError: The consumer is closed.
            MessageFormatError: The message cannot be decoded; see `jmsjca.MessageConsumer.receive`.
        """
        return await ReceiveHandoff(self._wrapped, self._executor, timeout).receive()

    async def close(self) -> None:
        """Give back what was taken ahead; what was received stays with the session. Twice does nothing.

        Another task may call it: a waiting `receive` returns None.
        """
        await run_in_thread(self._wrapped.close)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        try:
            message = None if self.closed else await self.receive()
        except IllegalStateError:
            if not self.closed:  # just now
                raise
            message = None
        if message is None:
            raise StopAsyncIteration
        return message


class ReceiveHandoff:
    """Shown by the thread, taken on the event loop: so no message is received that `take` does not return.

    The thread shows the message and waits for the answer. That is given between two awaits, where no cancellation can
    come: yes, and the message is returned and settled as the session's mode says; or no, and it is the next one again.

    Args:
        consumer: Whose message.
        executor: The session's thread.
        timeout: Seconds that the thread waits for one; None for ever.
    """

    def __init__(self, consumer: MessageConsumer, executor: SingleThreadExecutor, timeout: float | None) -> None:
        self._consumer = consumer
        self._executor = executor
        self._timeout = timeout
        self._shown: Future[Message | None] = Future()
        self._answer: Future[bool] = Future()

    async def receive(self) -> Message | None:
        """Let the thread receive, and take what it shows; None if there was nothing in time."""
        self._executor.submit_detached(self._receive)
        try:
            return await asyncio.wrap_future(self._shown)
        except (asyncio.CancelledError, GeneratorExit):
            self._answer.set_result(False)
            self._consumer.interrupt()
            raise
        finally:
            if not self._answer.done():
                self._answer.set_result(True)

    def _receive(self) -> None:
        try:
            self._executor.raise_pending()
            self._consumer.receive_if(self._propose, self._answer.done, self._timeout)
        except BaseException as error:
            if self._shown.done():
                raise
            self._resolve(error)
        if not self._shown.done():
            self._resolve(None)

    def _propose(self, message: Message | MessageFormatError) -> bool:
        self._resolve(message)
        return self._answer.result()

    def _resolve(self, outcome: Message | BaseException | None) -> None:
        if not self._shown.set_running_or_notify_cancel():
            return  # nobody waits any more
        if isinstance(outcome, BaseException):
            self._shown.set_exception(outcome)
        else:
            self._shown.set_result(outcome)
