"""Connections for asyncio."""

from collections.abc import Callable
from functools import partial
from typing import Self, TypeVar

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, SingleThreadExecutor, open_in_thread, run_in_thread
from jmsjca.aio.session import Session
from jmsjca.arguments import check_callable, check_instance
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.outbound.pooled_connection import PooledConnection
from jmsjca.outbound.session_checks import checked_acknowledge_mode

__all__ = ["Connection", "SessionOwner", "connect"]

T = TypeVar("T")


def connect(
    factory: outbound.ConnectionFactory, user_name: str | None = None, password: str | None = None
) -> AwaitableContextManager["Connection"]:
    """Open a connection: await it, then start it, or enter it with ``async with``, which starts it.

    Args:
        factory: The factory of the connection.
        user_name: User name; None for the factory's.
        password: Password of ``user_name``; ignored without a user name.

    Raises:
        ArgumentTypeError: The first argument is no `ConnectionFactory`.
        JMSError: When opened, as `jmsjca.ConnectionFactory.create_connection`.
    """
    wanted = "a ConnectionFactory, as in connect(ConnectionFactory('embedded://'))"
    check_instance("factory", factory, outbound.ConnectionFactory, wanted)

    async def opened() -> Connection:
        """Open the connection."""
        return Connection(await open_in_thread(partial(factory.create_connection, user_name, password)))

    return AwaitableContextManager(opened, "connect(…)")


class SessionOwner(AsyncCloseable):
    """A connection for asyncio, with its sessions and their threads.

    Args:
        wrapped: The blocking connection.
    """

    def __init__(self, wrapped: outbound.Connection | PooledConnection) -> None:
        self._wrapped = wrapped
        self._sessions: list[tuple[Session, SingleThreadExecutor]] = []

    async def start(self) -> None:
        """Start the delivery of messages to consumers. Idempotent.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.start)

    async def stop(self) -> None:
        """Pause the delivery of messages: no receive returns a message before the next `start`. Idempotent.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.stop)

    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO
    ) -> AwaitableContextManager[Session]:
        """Create a session, to be awaited or entered with ``async with``. Closing it ends its thread.

        Args:
            transacted: True to commit all receipts and sends together.
            acknowledge_mode: The acknowledgement of receipts, an `AcknowledgeMode` or its name; ignored if transacted.

        Raises:
            IllegalStateError: When opened: the connection is closed.
            InvalidArgumentError: There is no such acknowledge mode, or ``transacted`` is neither True nor False.
            NotSupportedError: When opened: the broker has no transactions.
        """
        mode = checked_acknowledge_mode("acknowledge_mode", acknowledge_mode, transacted)
        return AwaitableContextManager(
            lambda: self._opened(partial(self._wrapped.create_session, transacted, mode)), "create_session(…)"
        )

    async def close(self) -> None:
        """Close all sessions, which roll back, end their threads, and close or return the connection. Idempotent.

        A waiting receive returns None; other calls in progress are waited for. Cancellation does not interrupt it.
        """
        await run_in_thread(self._close)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def _opened(self, create: Callable[[], outbound.Session]) -> Session:
        executor = SingleThreadExecutor("jmsjca session")
        try:
            session = Session(await executor.run_opening(create), executor)
        except BaseException:
            executor.end()
            raise
        self._sessions = [each for each in self._sessions if not each[0].closed] + [(session, executor)]
        if session.closed:  # with its connection, perhaps before this list had its thread
            executor.end()
        return session

    def _close(self) -> None:
        try:
            self._wrapped.close()
        finally:
            for _, executor in self._sessions:
                executor.join()


class Connection(SessionOwner):
    """A `jmsjca.Connection` for asyncio. `connect` creates it; any number of tasks may share it.

    Args:
        wrapped: The blocking connection.
    """

    def __init__(self, wrapped: outbound.Connection) -> None:
        super().__init__(wrapped)
        self._connection = wrapped

    async def run_sync(self, function: Callable[[outbound.Connection], T]) -> T:
        """Call a function with the blocking connection on another thread, for calls that have no method here.

        Args:
            function: For example ``lambda connection: connection.admin.depth(queue)``.
        """
        check_callable("function", function)
        return await run_in_thread(partial(function, self._connection))
