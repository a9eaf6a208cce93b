"""Connections for asyncio."""

from collections.abc import Callable
from functools import partial
from typing import Self, TypeVar

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, SingleThreadExecutor, open_in_thread, run_in_thread
from jmsjca.aio.session import Session
from jmsjca.config import AcknowledgeMode

__all__ = ["Connection", "connect"]

T = TypeVar("T")


def connect(
    factory: outbound.ConnectionFactory, user_name: str | None = None, password: str | None = None
) -> AwaitableContextManager["Connection"]:
    """Open a connection, to be awaited, stopped, or entered with ``async with``, which starts it.

    Args:
        factory: Makes it.
        user_name: Who connects, if not the factory's.
        password: The password of ``user_name``; ignored without one.

    Raises:
        JMSError: When opened, as `jmsjca.ConnectionFactory.create_connection`.
    """

    async def opened() -> Connection:
        """Open it, now."""
        return Connection(await open_in_thread(partial(factory.create_connection, user_name, password)))

    return AwaitableContextManager(opened)


class Connection(AsyncCloseable):
    """Made by `connect`; used as `jmsjca.Connection`. Any number of tasks may share it.

    Args:
        wrapped: The connection beneath, which blocks.
    """

    def __init__(self, wrapped: outbound.Connection) -> None:
        self._wrapped = wrapped
        self._sessions: list[Session] = []

    async def start(self) -> None:
        """Let consumers receive. Again is harmless.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.start)

    async def stop(self) -> None:
        """Let consumers wait: no receive returns with a message from here to the next `start`.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.stop)

    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO
    ) -> AwaitableContextManager[Session]:
        """Make a session, to be awaited or entered with ``async with``; its thread lives until it is closed.

        Args:
            transacted: True if what it receives and sends is committed together.
            acknowledge_mode: How receipt is acknowledged otherwise; ignored if transacted.

        Raises:
            IllegalStateError: When opened: the connection is closed.
            NotSupportedError: When opened: the broker has no transactions.
        """
        return AwaitableContextManager(
            lambda: self._opened(partial(self._wrapped.create_session, transacted, acknowledge_mode))
        )

    async def run_sync(self, function: Callable[[outbound.Connection], T]) -> T:
        """Call a function with the connection beneath, on another thread: for what has no method here.

        Args:
            function: For instance ``lambda connection: connection.admin.depth(queue)``.
        """
        return await run_in_thread(partial(function, self._wrapped))

    async def close(self) -> None:
        """Close all sessions, rolling back what is open, end their threads, and close the link. Twice does nothing.

        A receive that waits returns None; other calls at work are waited for. It happens even if this is cancelled.
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
        self._sessions = [s for s in self._sessions if not s.closed] + [session]
        return session

    def _close(self) -> None:
        try:
            self._wrapped.close()
        finally:
            for session in self._sessions:
                session.end()
