"""Sessions for asyncio."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar, Unpack

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, SingleThreadExecutor, run_in_thread
from jmsjca.aio.consumer import Consumer
from jmsjca.aio.producer import Producer
from jmsjca.arguments import CALLABLE, Constraint
from jmsjca.destinations import Destination, Topic
from jmsjca.errors import IllegalStateError
from jmsjca.messages.converters import Body
from jmsjca.messages.message import Message
from jmsjca.outbound.producer import SendOptions
from jmsjca.outbound.session import MessageFactory

__all__ = ["Session"]

T = TypeVar("T")

_MESSAGE = Constraint[Message]("a received message, or None for all", Message)


class Session(MessageFactory, AsyncCloseable):
    """A `jmsjca.Session` for asyncio, used by one task at a time. `Connection.create_session` creates it.

    Its calls, and the calls of its producers and consumers, run one after the other on its thread: a waiting call, such
    as `Consumer.receive`, delays the others. Messages and destinations are created at once, without the thread.

    Args:
        wrapped: The blocking session.
        executor: The thread of the session.
    """

    def __init__(self, wrapped: outbound.Session, executor: SingleThreadExecutor) -> None:
        self._wrapped = wrapped
        self._executor = executor

    @property
    def closed(self) -> bool:
        """True as soon as closing has begun."""
        return self._wrapped.closed

    def create_producer(self, destination: Destination | None = None) -> AwaitableContextManager[Producer]:
        """Create a producer, to be awaited or entered. Without a destination each send names one.

        Raises:
            InvalidDestinationError: When awaited: the value is not a destination.
        """

        async def opened() -> Producer:
            """Create the producer."""
            return Producer(
                await self._executor.run_opening(partial(self._wrapped.create_producer, destination)), self._executor
            )

        return AwaitableContextManager(opened, "create_producer(…)")

    async def send(
        self, destination: str | Destination, body: Message | Body, **options: Unpack[SendOptions]
    ) -> Message:
        """Send a message, or a body as a message, as `jmsjca.Session.send` does.

        If the await is cancelled, the message may or may not be sent. It must not be used again; the session can.

        Raises:
            JMSError: As `jmsjca.Session.send`.
        """
        return await self._executor.run(partial(self._wrapped.send, destination, body, **options))

    def create_consumer(
        self, source: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> AwaitableContextManager[Consumer]:
        """Create a consumer, to be awaited or entered; see `jmsjca.Session.create_consumer`."""
        create = partial(self._wrapped.create_consumer, source, selector, no_local=no_local)
        return self._consumer(create, "create_consumer(…)")

    def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> AwaitableContextManager[Consumer]:
        """Create a consumer of a shared subscription; see `jmsjca.Session.create_shared_consumer`."""
        create = partial(self._wrapped.create_shared_consumer, topic, name, selector)
        return self._consumer(create, "create_shared_consumer(…)")

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> AwaitableContextManager[Consumer]:
        """Create the consumer of a durable subscription; see `jmsjca.Session.create_durable_consumer`."""
        create = partial(self._wrapped.create_durable_consumer, topic, name, selector, no_local=no_local)
        return self._consumer(create, "create_durable_consumer(…)")

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> AwaitableContextManager[Consumer]:
        """Create a consumer of a shared durable subscription; see `jmsjca.Session.create_shared_durable_consumer`."""
        create = partial(self._wrapped.create_shared_durable_consumer, topic, name, selector)
        return self._consumer(create, "create_shared_durable_consumer(…)")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        """Commit at the end of the block. Roll back on an exception, also if the task is cancelled.

        Blocks cannot be nested.

        Raises:
            IllegalStateError: The session is not transacted, or is already in such a block.
        """
        if not self._wrapped.transacted:
            raise IllegalStateError("This session is not transacted: create_session(transacted=True).")
        with self._wrapped._block:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
            committed = False
            try:
                yield self
                await self.commit()
                committed = True
            finally:
                if not (committed or self.closed):
                    await self.rollback()

    async def commit(self) -> None:
        """Acknowledge all messages received and send all messages sent since the last commit, as one.

        If the await is cancelled, the commit happens or not, as a whole. Call `rollback` to end an open transaction.

        Raises:
            IllegalStateError: The session is not transacted.
            TransactionRolledBackError: Nothing was committed.
            TransactionInDoubtError: The transaction may or may not have been committed.
        """
        await self._executor.run(self._wrapped.commit)

    async def rollback(self) -> None:
        """Discard all sends and request redelivery of all received messages, even if the await is cancelled."""
        await self._executor.run_shielded(self._wrapped.rollback)

    async def recover(self) -> None:
        """Request redelivery, in order, of all messages that are not acknowledged. Their redelivery is counted.

        Raises:
            IllegalStateError: The session is transacted: use `rollback`.
        """
        await self._executor.run_shielded(self._wrapped.recover)

    async def acknowledge(self, message: Message | None = None) -> None:
        """Acknowledge under `AcknowledgeMode.CLIENT` and ``INDIVIDUAL``; no effect in other sessions.

        Args:
            message: The message to acknowledge; None for all received messages. Do not call the message's own
                ``acknowledge()``, because it blocks the event loop.

        Raises:
            ArgumentTypeError: The value is not a message.
        """
        if message is not None:
            _MESSAGE("message", message)
        await self._executor.run(self._wrapped.acknowledge if message is None else message.acknowledge)

    async def run_sync(self, function: Callable[[outbound.Session], T]) -> T:
        """Call a function with the blocking session on the session's thread, for calls that have no method here.

        Args:
            function: For example ``lambda session: list(session.create_browser(queue))``. Once begun it runs to the
                end, even if the await is cancelled.
        """
        CALLABLE("function", function)
        return await self._executor.run(partial(function, self._wrapped))

    async def close(self) -> None:
        """Close the consumers, roll back the open transaction and end the thread. Idempotent.

        Another task may call it: a waiting receive returns None, and any other call ends first. Cancellation does not
        interrupt it.
        """
        await run_in_thread(self._close)

    def _close(self) -> None:
        try:
            self._wrapped.close()
        finally:
            self._executor.join()

    def _check_open(self) -> None:
        self._executor.fork_guard.check()
        if self._wrapped.closed:
            raise IllegalStateError("The session is closed.")

    def _consumer(self, create: Callable[[], outbound.MessageConsumer], call: str) -> AwaitableContextManager[Consumer]:
        async def opened() -> Consumer:
            """Open the consumer."""
            return Consumer(await self._executor.run_opening(create), self._wrapped, self._executor)

        return AwaitableContextManager(opened, call)
