"""Connections of a pool that several threads use at the same time, each with a session of its own."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from jmsjca.errors import PoolTimeoutError
from jmsjca.forking import reset_in_child
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.outbound.pooled_connection import PooledConnection

__all__ = ["SharedConnections"]

_MOST_USES = 100


@dataclass(eq=False)
class _Shared:
    """A borrowed connection, and how many threads use it.

    Attributes:
        connection: The connection.
        users: The number of threads that use it now.
        uses: The number of threads that have begun to use it since it was borrowed.
    """

    connection: PooledConnection
    users: int = 1
    uses: int = 1


class SharedConnections:
    """Lends connections of a pool for single sends. While the pool has none left, threads share those in use.

    A connection to a broker carries many sessions, so that a thread need not wait for another one's send. A connection
    is not shared any more after it failed, after a hundred uses, and while threads wait for the pool: when its last
    user leaves it returns to the pool, which checks, replaces or lends it.

    Args:
        pool: The pool.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._reset_after_fork()
        reset_in_child(self, SharedConnections._reset_after_fork)

    @contextmanager
    def connection(self) -> Generator[PooledConnection]:
        """Borrow a connection, or share one. Create a session on it, and close that in the block.

        Raises:
            JMSError: As `ConnectionPool.get_connection`.
        """
        shared = self._join_or_borrow()
        try:
            yield shared.connection
        finally:
            self._leave(shared)

    def _join_or_borrow(self) -> _Shared:
        shared = self._join()
        if shared is None and self._joinable():
            try:
                return self._borrow(0.0)
            except PoolTimeoutError:  # another thread was faster
                shared = self._join()
        return shared or self._borrow(-1.0)

    def _join(self) -> _Shared | None:
        """Join the connection with the fewest users; None if the pool has one left, or others wait for it."""
        stats = self._pool.get_stats()
        if stats["pool_available"] or stats["pool_size"] < stats["pool_max"] or stats["requests_waiting"]:
            return None
        with self._lock:
            shared = min(self._joinable(), key=lambda each: each.users, default=None)
            if shared is not None:
                shared.users += 1
                shared.uses += 1
            return shared

    def _joinable(self) -> list[_Shared]:
        return [each for each in self._in_use if each.uses < _MOST_USES and not each.connection.failed]

    def _borrow(self, timeout: float) -> _Shared:
        shared = _Shared(self._pool.get_connection(timeout=timeout))
        with self._lock:
            self._in_use.append(shared)
        return shared

    def _leave(self, shared: _Shared) -> None:
        with self._lock:
            shared.users -= 1
            last = shared.users == 0
            if last and shared in self._in_use:  # in a forked child it is not
                self._in_use.remove(shared)
        if last:
            shared.connection.close()

    def _reset_after_fork(self) -> None:
        """Begin without connections: those of the parent are not the child's."""
        self._lock = threading.Lock()
        self._in_use: list[_Shared] = []
