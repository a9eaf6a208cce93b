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
    """A borrowed connection, and who uses it.

    Attributes:
        connection: The connection.
        users: One object for each block that uses it now.
        uses: The number of blocks that have begun to use it since it was borrowed.
    """

    connection: PooledConnection
    users: set[object]
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
        user = object()
        try:
            yield self._join_or_borrow(user).connection
        finally:
            try:
                self._leave(user)
            except BaseException:  # again, if a signal handler interrupted it
                self._leave(user)
                raise

    def _join_or_borrow(self, user: object) -> _Shared:
        shared = self._join(user)
        if shared is None and self._joinable():
            try:
                return self._borrow(user, 0.0)
            except PoolTimeoutError:  # another thread was faster
                shared = self._join(user)
        return shared or self._borrow(user, -1.0)

    def _join(self, user: object) -> _Shared | None:
        """Join the connection with the fewest users; None if the pool has one left, or others wait for it."""
        stats = self._pool.get_stats()
        if stats["pool_available"] or stats["pool_size"] < stats["pool_max"] or stats["requests_waiting"]:
            return None
        with self._lock:
            shared = min(self._joinable(), key=lambda each: len(each.users), default=None)
            if shared is not None:
                shared.uses += 1
                shared.users.add(user)
            return shared

    def _joinable(self) -> list[_Shared]:
        return [each for each in self._in_use if each.uses < _MOST_USES and not each.connection.failed]

    def _borrow(self, user: object, timeout: float) -> _Shared:
        connection = self._pool.get_connection(timeout=timeout)
        try:
            shared = _Shared(connection, {user})
            with self._lock:
                self._in_use.append(shared)
        except BaseException:  # of a signal handler
            connection.close()
            raise
        return shared

    def _leave(self, user: object) -> None:
        """End the use of a connection, if it has begun; the last user returns the connection. Idempotent."""
        with self._lock:
            shared = self._used_by(user)
            if shared is None:
                return
            if len(shared.users) > 1:
                shared.users.remove(user)
                return
            shared.uses = _MOST_USES  # no thread joins it any more
        shared.connection.close()
        with self._lock:
            self._in_use.remove(shared)

    def _used_by(self, user: object) -> _Shared | None:
        """Return the connection that a block uses; None before it has one, and in a forked child."""
        return next(iter([each for each in self._in_use if user in each.users]), None)

    def _reset_after_fork(self) -> None:
        """Begin without connections: those of the parent are not the child's."""
        self._lock = threading.Lock()
        self._in_use: list[_Shared] = []
