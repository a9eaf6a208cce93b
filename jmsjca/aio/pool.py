"""The pool of connections for asyncio."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Self

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, AwaitableContextManager, open_in_thread, run_in_thread
from jmsjca.aio.connection import SessionOwner
from jmsjca.aio.session import Session
from jmsjca.arguments import check_instance
from jmsjca.config.settings import AcknowledgeMode

__all__ = ["ConnectionPool", "PooledConnection"]


class PooledConnection(SessionOwner):
    """A connection that returns to its pool when it is closed. `ConnectionPool.connection` lends it."""


class ConnectionPool(AsyncCloseable):
    """A `jmsjca.outbound.ConnectionPool` for asyncio. Any number of tasks, and threads, may share the blocking pool.

    A cancelled borrower leaves no connection borrowed. Its place in the queue of waiting ones stays until its turn or
    its timeout comes; the connection that it gets then is returned at once.

    Args:
        pool: The blocking pool. Closing this one closes it.

    Raises:
        ArgumentTypeError: The argument is no `jmsjca.outbound.ConnectionPool`.
    """

    def __init__(self, pool: outbound.ConnectionPool) -> None:
        wanted = "a pool, as in aio.ConnectionPool(outbound.ConnectionPool(factory))"
        check_instance("pool", pool, outbound.ConnectionPool, wanted)
        self._pool = pool

    @property
    def closed(self) -> bool:
        """True before `open` and after `close`."""
        return self._pool.closed

    def connection(
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | None = -1.0
    ) -> AwaitableContextManager[PooledConnection]:
        """Borrow a connection: await it, then start and close it, or enter it with ``async with``, which does both.

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
        """Borrow a connection with a session for the block. An open transaction is rolled back at its end.

        Args:
            transacted: True to commit all receipts and sends together.
            acknowledge_mode: As for `Connection.create_session`.

        Raises:
            JMSError: As `connection`.
        """
        async with self.connection() as connection, connection.create_session(transacted, acknowledge_mode) as session:
            yield session

    async def open(self, *, wait: bool = False, timeout: float | None = 30.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
        """Open the pool, and with ``wait`` its first connections, as `wait` does. Idempotent."""
        await run_in_thread(partial(self._pool.open, wait=wait, timeout=timeout))

    async def wait(self, timeout: float | None = 30.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
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

    async def close(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109  # as of the blocking pool
        """Close the pool: idle connections now, borrowed ones when they are returned. Idempotent.

        Args:
            timeout: Seconds to wait for borrowed connections.
        """
        await run_in_thread(partial(self._pool.close, timeout))

    async def __aenter__(self) -> Self:
        await self.open()
        return self
