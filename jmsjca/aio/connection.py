"""Connections and connection pools for asyncio."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Self, TypeVar

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, SingleThreadExecutor, open_in_thread, run_in_thread
from jmsjca.aio.session import Session
from jmsjca.arguments import CALLABLE, Constraint
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.outbound import pooled_connection
from jmsjca.outbound.session import checked_acknowledge_mode

__all__ = ["Connection", "ConnectionPool", "PooledConnection", "SessionOwner", "connect"]

T = TypeVar("T")

_FACTORY = Constraint[outbound.ConnectionFactory](
    "a ConnectionFactory, as in connect(ConnectionFactory('embedded://'))", outbound.ConnectionFactory
)
_POOL = Constraint[outbound.ConnectionPool](
    "a pool, as in aio.ConnectionPool(outbound.ConnectionPool(factory))", outbound.ConnectionPool
)


def connect(
    factory: outbound.ConnectionFactory, user_name: str | None = None, password: str | None = None
) -> AwaitableContextManager["Connection"]:
    """Open a connection: await it, then start it, or enter it with ``async with``, which starts it.

    Args:
        factory: The factory of the connection.
        user_name: User name; None for the factory's.
        password: Password of ``user_name``; ignored without a user name.

    Raises:
        ArgumentTypeError: The first argument is not a `ConnectionFactory`.
        JMSError: When opened, as `jmsjca.ConnectionFactory.create_connection`.
    """
    _FACTORY("factory", factory)

    async def opened() -> Connection:
        """Open the connection."""
        return Connection(await open_in_thread(partial(factory.create_connection, user_name, password)))

    return AwaitableContextManager(opened, "connect(…)")


class SessionOwner(AsyncCloseable):
    """A connection for asyncio, with its sessions and their threads.

    Args:
        wrapped: The blocking connection.
    """

    def __init__(self, wrapped: outbound.Connection | pooled_connection.PooledConnection) -> None:
        self._wrapped = wrapped
        self._sessions: list[tuple[Session, SingleThreadExecutor]] = []

    async def start(self) -> None:
        """Start the delivery of messages to consumers. Idempotent.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.start)

    async def stop(self) -> None:
        """Pause the delivery of messages: receives return no message until the next `start`. Idempotent.

        Raises:
            IllegalStateError: The connection is closed.
        """
        await run_in_thread(self._wrapped.stop)

    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO
    ) -> AwaitableContextManager[Session]:
        """Create a session, to be awaited or entered with ``async with``. Closing the session ends its thread.

        Args:
            transacted: True to commit receipts and sends together.
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
        """Close all sessions, which roll back; end their threads; and close or return the connection. Idempotent.

        A waiting receive returns None. Other calls in progress end first. Cancellation does not interrupt this.
        """
        await run_in_thread(self._close)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def _opened(self, create: Callable[[], outbound.Session]) -> Session:
        executor = SingleThreadExecutor("jmsjca session")
        session: Session | None = None
        try:
            session = Session(await executor.run_opening(create), executor)
            self._sessions = [each for each in self._sessions if not each[0].closed] + [(session, executor)]
            return session
        finally:
            if session is None or session.closed:  # closed with its connection, perhaps before it was in this list
                executor.end()

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
        CALLABLE("function", function)
        return await run_in_thread(partial(function, self._connection))


class PooledConnection(SessionOwner):
    """A connection that returns to its pool when it is closed. `ConnectionPool.connection` lends it."""


class ConnectionPool(AsyncCloseable):
    """A `jmsjca.outbound.ConnectionPool` for asyncio. Any number of tasks, and threads, may share the blocking pool.

        A cancelled borrower leaves no connection borrowed. Its place among the waiting borrowers is kept until its turn
        or its timeout; a connection that it gets then is returned at once.

    Args:
        pool: The blocking pool. Closing this pool also closes the blocking one.

    Raises:
        ArgumentTypeError: The argument is not a `jmsjca.outbound.ConnectionPool`.
    """

    def __init__(self, pool: outbound.ConnectionPool) -> None:
        self._pool = _POOL("pool", pool)

    @property
    def closed(self) -> bool:
        """True before `open` and after `close`."""
        return self._pool.closed

    def connection(
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | timedelta | None = -1.0
    ) -> AwaitableContextManager[PooledConnection]:
        """Borrow a connection: await it, and start and close it yourself; or use ``async with``, which does both.

        Args:
            user_name: As for `jmsjca.outbound.ConnectionPool.connection`.
            password: Password of ``user_name``.
            timeout: Seconds to wait if all connections are borrowed; -1 for the pool's timeout.

        Raises:
            JMSError: When opened, as `jmsjca.outbound.ConnectionPool.connection`.
        """
        borrow = partial(self._pool.get_connection, user_name, password, timeout=timeout)

        async def opened() -> PooledConnection:
            """Borrow the connection."""
            return PooledConnection(await open_in_thread(borrow))

        return AwaitableContextManager(opened, "connection(…)")

    @asynccontextmanager
    async def session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO
    ) -> AsyncGenerator[Session]:
        """Borrow a connection with a session for a block. An open transaction is rolled back at the end of the block.

        Args:
            transacted: True to commit all receipts and sends together.
            acknowledge_mode: As for `Connection.create_session`.

        Raises:
            JMSError: As `connection`.
        """
        async with self.connection() as connection, connection.create_session(transacted, acknowledge_mode) as session:
            yield session

    async def open(self, *, wait: bool = False, timeout: float | timedelta | None = 30.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
        """Open the pool, and with ``wait`` its first connections, as `wait` does. Idempotent."""
        await run_in_thread(partial(self._pool.open, wait=wait, timeout=timeout))

    async def wait(self, timeout: float | timedelta | None = 30.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
        """Open connections until there are ``min_size``: see `jmsjca.outbound.ConnectionPool.wait`."""
        await run_in_thread(partial(self._pool.wait, timeout))

    async def resize(self, min_size: int, max_size: int | None = None) -> None:
        """Change the sizes: see `jmsjca.outbound.ConnectionPool.resize`."""
        await run_in_thread(partial(self._pool.resize, min_size, max_size))

    async def drain(self) -> None:
        """Replace all connections: idle ones are closed now, borrowed ones when they are returned."""
        await run_in_thread(self._pool.drain)

    def get_stats(self) -> dict[str, int]:
        """Return the counters: see `jmsjca.outbound.ConnectionPool.get_stats`."""
        return self._pool.get_stats()

    async def close(self, timeout: float | timedelta = 5.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
        """Close the pool: idle connections now, borrowed ones when they are returned. Idempotent.

        Args:
            timeout: Seconds to wait for borrowed connections.
        """
        await run_in_thread(partial(self._pool.close, timeout))

    async def __aenter__(self) -> Self:
        await self.open()
        return self
