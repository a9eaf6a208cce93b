"""A consumer used from asyncio."""

from typing import Self

from jmsjca import outbound
from jmsjca.aio.closing import Closing
from jmsjca.aio.offer import Offer
from jmsjca.aio.worker import Worker, aside
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message

__all__ = ["Consumer"]


class Consumer(Closing):
    """Made by `Session.create_consumer` and its like; used by one task at a time, as its session.

    ``async for message in consumer`` waits for one message after the other, and ends when the consumer is closed.

    Args:
        wrapped: The consumer beneath, which blocks.
        session: The session that made it.
        worker: The thread of that session.
    """

    def __init__(self, wrapped: outbound.MessageConsumer, session: outbound.Session, worker: Worker) -> None:
        self._wrapped = wrapped
        self._session = session
        self._worker = worker

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
        return await Offer(self._wrapped, self._worker, timeout).take()

    async def close(self) -> None:
        """Give back what was taken ahead; what was received stays with the session. Twice does nothing.

        Another task may call it: a waiting `receive` returns None.
        """
        await aside(self._wrapped.close)

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
