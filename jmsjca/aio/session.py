"""Sessions for asyncio."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, SingleThreadExecutor, run_in_thread
from jmsjca.aio.consumer import Consumer
from jmsjca.aio.producer import Producer
from jmsjca.destinations import Destination, Topic
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message
from jmsjca.outbound.message_factory import MessageFactory

__all__ = ["Session"]

T = TypeVar("T")


class Session(MessageFactory, AsyncCloseable):
    """Made by `Connection.create_session`; used as `jmsjca.Session`, by one task at a time.

    Its calls, and those of what it made, run one after the other on its thread: one that waits, as `Consumer.receive`,
    holds up the others. Messages and names are made at once, without the thread.

    Args:
        wrapped: The session beneath, which blocks.
        executor: Its thread.
    """

    def __init__(self, wrapped: outbound.Session, executor: SingleThreadExecutor) -> None:
        self._wrapped = wrapped
        self._executor = executor

    @property
    def closed(self) -> bool:
        """True as soon as somebody began to close it."""
        return self._wrapped.closed

    async def create_producer(self, destination: Destination | None = None) -> Producer:
        """Make a producer; without a destination each send names one.

        Raises:
            InvalidDestinationError: It is no destination.
        """
        return Producer(await self._executor.run(partial(self._wrapped.create_producer, destination)), self._executor)

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> AwaitableContextManager[Consumer]:
        """Make a consumer, to be awaited or entered; see `jmsjca.Session.create_consumer`."""
        return self._consumer(partial(self._wrapped.create_consumer, source, selector, no_local=no_local))

    def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> AwaitableContextManager[Consumer]:
        """Make one of several consumers of a subscription; see `jmsjca.Session.create_shared_consumer`."""
        return self._consumer(partial(self._wrapped.create_shared_consumer, topic, name, selector))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> AwaitableContextManager[Consumer]:
        """Make the consumer of a durable subscription; see `jmsjca.Session.create_durable_consumer`."""
        return self._consumer(partial(self._wrapped.create_durable_consumer, topic, name, selector, no_local=no_local))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> AwaitableContextManager[Consumer]:
        """Make one of several of a durable subscription; see `jmsjca.Session.create_shared_durable_consumer`."""
        return self._consumer(partial(self._wrapped.create_shared_durable_consumer, topic, name, selector))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        """Commit at the end of the block, roll back on an exception, also if the task is cancelled.

        Raises:
            IllegalStateError: The session is not transacted.
        """
        if not self._wrapped.transacted:
            raise IllegalStateError("This session is not transacted: create_session(transacted=True).")
        try:
            yield self
            await self.commit()
        except BaseException:
            if not self.closed:
                await self.rollback()
            raise

    async def commit(self) -> None:
        """Acknowledge what was received and send what was sent since the last commit, together.

        If the await is cancelled it happens or not, as a whole: `rollback` ends what did not happen.

        Raises:
            IllegalStateError: The session is not transacted.
            TransactionRolledBackError: It did not happen.
            TransactionInDoubtError: It may or may not have happened.
        """
        await self._executor.run(self._wrapped.commit)

    async def rollback(self) -> None:
        """Forget what was sent, and let what was received come again; it happens even if the await is cancelled."""
        await self._executor.run_shielded(self._wrapped.rollback)

    async def recover(self) -> None:
        """Let everything that was received and not acknowledged come again, in order, counted.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        await self._executor.run_shielded(self._wrapped.recover)

    async def acknowledge(self, message: Message | None = None) -> None:
        """Acknowledge under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``; in other sessions it has no effect.

        Args:
            message: As its own ``acknowledge()``, which would block the event loop; None for all that was received.
        """
        await self._executor.run(self._wrapped.acknowledge if message is None else message.acknowledge)

    async def run_sync(self, function: Callable[[outbound.Session], T]) -> T:
        """Call a function with the session beneath, on its thread: for what has no method here.

        Args:
            function: For instance ``lambda session: list(session.create_browser(queue))``. Once it has begun it runs
                to its end, even if the await is cancelled.
        """
        return await self._executor.run(partial(function, self._wrapped))

    async def close(self) -> None:
        """Close consumers, roll back what is open and end the thread. Twice does nothing.

        Another task may call it: a receive that waits returns None, and any other call is waited for. It happens even
        if this is cancelled.
        """
        await run_in_thread(self.end)

    def end(self) -> None:
        """Close it, on a thread that may wait. For the connection."""
        try:
            self._wrapped.close()
        finally:
            self._executor.join()

    def _check_open(self) -> None:
        self._wrapped.lock.check_open()

    def _consumer(self, create: Callable[[], outbound.MessageConsumer]) -> AwaitableContextManager[Consumer]:
        async def opened() -> Consumer:
            """Open it, now."""
            return Consumer(await self._executor.run_opening(create), self._wrapped, self._executor)

        return AwaitableContextManager(opened)
