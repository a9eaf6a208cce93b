"""The places of a pool: its idle connections, the number of all, and the threads that wait for one."""

import threading
from collections import deque
from itertools import islice

from jmsjca.config.settings import Deadline
from jmsjca.errors import IllegalStateError, PoolTimeoutError, ResourceAllocationError
from jmsjca.forking import ProcessBound
from jmsjca.outbound.pooled_connection import PooledConnection

__all__ = ["Claim", "Key", "PoolPlaces"]

Key = tuple[str | None, str | None]
"""The user name and password of a connection; (None, None) for those of the factory."""


class Claim:
    """A place or connection that a thread takes: recorded before it is taken, so that no exception can lose it.

    Attributes:
        connection: The connection that was taken, or opened in the place that the claim occupies.
    """

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection: PooledConnection | None = None

    def record(self, connection: object) -> None:
        """Record the connection that is about to be taken."""
        if isinstance(connection, PooledConnection):
            self.connection = connection


class PoolPlaces(ProcessBound):
    """Base of `ConnectionPool`: hands out its places, in the order in which threads ask for them."""

    _min_size: int
    _max_size: int
    _max_waiting: int
    _closed: bool
    _counters: dict[str, int]

    def _vacate(self) -> None:
        """Begin with all places free."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._places: set[PooledConnection | Claim] = set()  # connections, and claims of those that are being opened
        self._idle: deque[PooledConnection] = deque()  # the one used last is at the right end
        self._waiting: deque[threading.Condition] = deque()

    def _occupy(self, claim: Claim, connection: PooledConnection) -> None:
        """Put an opened connection in the place of its claim."""
        with self._changed:
            self._places.add(connection)
            self._places.discard(claim)

    def _free(self, occupant: PooledConnection | Claim) -> None:
        """Free the place of a connection that has ended, or of a claim. Idempotent."""
        with self._changed:
            self._places.discard(occupant)
            self._notify()

    def _take(self, key: Key, deadline: Deadline, claim: Claim) -> PooledConnection | None:
        """Wait for an idle connection, or for room for a new one, in the order of arrival.

        Args:
            key: The user name and password.
            deadline: The end of the wait.
            claim: Records what is taken.

        Returns:
            A connection, of other credentials if the pool is full of them; None if the caller may open one: its place
            is reserved.
        """
        with self._changed:
            ticket = threading.Condition(self._lock)
            try:
                self._waiting.append(ticket)
                if not self._is_available(ticket):
                    self._begin_to_wait(deadline)
                if not ticket.wait_for(lambda: self._is_available(ticket), deadline.remaining()):
                    raise PoolTimeoutError(
                        f"All {self._max_size} connections of the pool are borrowed: return them sooner (close()),"
                        " or use a larger max_size or timeout."
                    )
                self._check_open()
                return self._pop(key, claim)
            finally:
                self._waiting.remove(ticket)
                self._notify()

    def _is_available(self, ticket: threading.Condition) -> bool:
        return self._closed or self._waiting.index(ticket) < self._count_available()

    def _count_available(self) -> int:
        return len(self._idle) + max(self._max_size - len(self._places), 0)

    def _notify(self) -> None:
        """Wake only the threads whose turn it is: waking all of them would slow each of them down."""
        turns = len(self._waiting) if self._closed else self._count_available()
        for ticket in islice(self._waiting, turns):
            ticket.notify()
        self._changed.notify_all()  # `close`

    def _begin_to_wait(self, deadline: Deadline) -> None:
        if deadline.remaining() == 0:
            return
        self._counters["requests_queued"] += 1
        if self._max_waiting and len(self._waiting) > self._max_waiting:
            raise ResourceAllocationError(f"{self._max_waiting} threads wait for a connection already (max_waiting).")

    def _pop(self, key: Key, claim: Claim) -> PooledConnection | None:
        """Return the idle connection of these credentials that was used last; see `_take`."""
        for connection in reversed(self._idle):
            if connection.key == key:
                break
        else:
            if len(self._places) < self._max_size:
                self._places.add(claim)
                return None
            connection = self._idle[0]
        claim.connection = connection
        self._idle.remove(connection)
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("The pool is closed: open() it, or use it as a context manager.")

    def _reserve_below_minimum(self, claim: Claim) -> bool:
        with self._changed:
            self._check_open()
            missing = len(self._places) < self._min_size
            if missing:
                self._places.add(claim)
            return missing
