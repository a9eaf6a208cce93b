"""The pool of connections. Its verbs and counters are those of psycopg_pool."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Self

from jmsjca.config.settings import SYSTEM_CLOCK, AcknowledgeMode, Clock, Deadline
from jmsjca.errors import ConfigurationError, JMSError, PoolTimeoutError
from jmsjca.forking import reset_in_child
from jmsjca.log_records import get_logger
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.pool_checks import check_limits, check_whole, checked_sizes, checked_timeout, lock_timeout
from jmsjca.outbound.pool_places import Claim, Key, PoolPlaces
from jmsjca.outbound.pooled_connection import PoolableFactory, PooledConnection, kept_connection
from jmsjca.outbound.session import Session

__all__ = ["ConnectionPool"]

logger = get_logger("jmsjca.outbound")

_TIMER_ENDS = 1.0  # seconds; it is longer only if it closes connections to a broker that does not answer
_COUNTERS = (
    *("requests_num", "requests_queued", "requests_wait_ms", "requests_errors", "usage_ms", "returns_bad"),
    *("connections_num", "connections_errors", "connections_lost"),
)


class ConnectionPool(PoolPlaces):
    """A pool of connections of one factory. Thread-safe and fair; a forked child begins with an empty pool.

    A borrowed connection belongs to its borrower alone. On return its sessions are closed, and its temporary
    destinations are deleted. A connection that failed is never handed out again, nor are the idle ones that have not
    been used successfully since.

    Args:
        factory: The factory. Its client id must be None: a client id belongs to one connection at a time. Options of
            the factory (``JMSJCA.poolminsize``, ``poolmaxsize``, ``pooltimeout``) override the sizes and the timeout.
        min_size: The number of connections that `wait` opens, and that are not closed for being idle; 0 by default.
        max_size: The maximum number of connections; 32 by default, as in JMSJCA.
        timeout: Seconds to wait for a connection if all are borrowed: 0, the default, fails at once; None waits
            forever.
        max_waiting: The maximum number of threads that wait for a connection; 0 means no maximum.
        max_idle: Seconds until an idle connection above ``min_size`` is closed; ``float("inf")`` keeps it.
        max_lifetime: Seconds, above 0, after which a connection is closed when it is returned, or infinity.
        check: Called with an idle connection before it is borrowed; an exception means that it is bad. None relies on
            the heartbeats of the connection and on ``idle_timeout`` of the factory: a connection without a successful
            use for that long is replaced.
        open: True to open the pool at once; False for a call of `open`.
        clock: Source of the time.

    Raises:
        ConfigurationError: A size or a time is out of range, or the factory has a client id.
    """

    def __init__(
        self,
        factory: PoolableFactory,
        *,
        min_size: int = 0,
        max_size: int = 32,
        timeout: float | None = 0.0,
        max_waiting: int = 0,
        max_idle: float = 600.0,
        max_lifetime: float = 3600.0,
        check: Callable[[Connection], object] | None = None,
        open: bool = True,  # noqa: A002  # psycopg's name
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        options = factory.options
        if factory.client_id is not None:
            raise ConfigurationError(
                f"The factory has the client id {factory.client_id!r}, which one connection at a time can use: it"
                " cannot be pooled. Leave the client id out, or create the connection without a pool."
            )
        check_limits(timeout, max_waiting, max_idle, max_lifetime)
        self._factory = factory
        self._timeout = timeout if options.pool_timeout is None else lock_timeout(options.pool_timeout)
        self._max_waiting, self._max_idle, self._max_lifetime = max_waiting, max_idle, max_lifetime
        self._check, self._clock = check, clock
        self._set_sizes(
            min_size if options.pool_min_size is None else options.pool_min_size,
            max_size if options.pool_max_size is None else options.pool_max_size,
        )
        self._timer: threading.Timer | None = None
        self._closed = True
        self._reset_after_fork()
        reset_in_child(self, ConnectionPool._reset_after_fork)
        if open:
            self.open()

    @property
    def closed(self) -> bool:
        """True before `open` and after `close`."""
        return self._closed

    @contextmanager
    def connection(
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | None = -1.0
    ) -> Generator[PooledConnection]:
        """Borrow a connection for the block, started.

        Args:
            user_name: User name, or a connection URL, as for `ConnectionFactory.create_connection`; None for the
                factory's. Connections of other credentials are not reused; an idle one makes room if the pool is full.
            password: Password of ``user_name``.
            timeout: Seconds to wait if all connections are borrowed; -1 for the pool's timeout.

        Raises:
            PoolTimeoutError: All connections are borrowed, and none is returned in time.
            ResourceAllocationError: ``max_waiting`` threads wait already.
            IllegalStateError: The pool is closed.
            JMSError: A new connection cannot be opened.
        """
        connection = self.get_connection(user_name, password, timeout=timeout)
        try:
            connection.start()
            yield connection
        finally:
            try:
                connection.close()
            except BaseException:  # again, if a signal handler interrupted its first steps
                connection.close()
                raise

    @contextmanager
    def session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO
    ) -> Generator[Session]:
        """Borrow a connection with a session for the block. An open transaction is rolled back at its end.

        Args:
            transacted: As for `Connection.create_session`.
            acknowledge_mode: As for `Connection.create_session`.

        Raises:
            JMSError: As `connection`.
        """
        with self.connection() as connection:
            yield connection.create_session(transacted, acknowledge_mode)

    def get_connection(
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | None = -1.0
    ) -> PooledConnection:
        """Borrow a connection, not started. Its ``close()`` returns it to the pool.

        Args:
            user_name: As for `connection`.
            password: As for `connection`.
            timeout: As for `connection`.

        Raises:
            JMSError: As `connection`.
        """
        deadline = Deadline(self._timeout if timeout == -1.0 else checked_timeout(timeout), self._clock)
        claim = Claim()
        try:
            return self._lend((user_name, password), deadline, claim)
        except BaseException:
            self._give_up(claim)
            raise

    def _lend(self, key: Key, deadline: Deadline, claim: Claim) -> PooledConnection:
        began = self._clock.monotonic()
        self._count("requests_num")
        try:
            if (kept := kept_connection(self._factory, (self._return, key), claim.record)) is not None:
                return kept.borrow(self._clock.monotonic())
            while (taken := self._take(key, deadline, claim)) is not None:
                if taken.key != key:  # the pool is full: an idle connection of other credentials makes room
                    self._discard(taken)
                elif self._is_good(taken):
                    return taken.borrow(self._clock.monotonic())
                else:
                    self._discard(taken, "connections_lost")
            return self._open_connection(key, claim)
        except BaseException:
            self._count("requests_errors")
            raise
        finally:
            self._count("requests_wait_ms", round((self._clock.monotonic() - began) * 1000))

    def open(self, *, wait: bool = False, timeout: float | None = 30.0) -> None:
        """Open the pool, and with ``wait`` its first ``min_size`` connections, as `wait` does. Idempotent."""
        with self._changed:
            self._closed = False
        if wait:
            self.wait(timeout)

    def wait(self, timeout: float | None = 30.0) -> None:
        """Open connections until there are ``min_size``.

        Args:
            timeout: Seconds after which no further connection is begun; None for no end.

        Raises:
            PoolTimeoutError: The pool is not full in time.
            IllegalStateError: The pool is closed.
            JMSError: A connection cannot be opened.
        """
        deadline = Deadline(checked_timeout(timeout), self._clock)
        while (connection := self._add_below_minimum(deadline, timeout)) is not None:
            try:
                connection.close()
            except BaseException:  # again, as in `connection`
                connection.close()
                raise

    def _add_below_minimum(self, deadline: Deadline, timeout: float | None) -> PooledConnection | None:
        """Open a connection if there are fewer than ``min_size``; return None if there are not."""
        claim = Claim()
        try:
            if not self._reserve_below_minimum(claim):
                return None
            if deadline.remaining() == 0:
                text = f"The pool has less than {self._min_size} connections after {timeout} s."
                raise PoolTimeoutError(text)  # noqa: TRY301  # the place is given up
            return self._open_connection((None, None), claim)
        except BaseException:
            self._give_up(claim)
            raise

    def close(self, timeout: float = 5.0) -> None:
        """Close the pool: idle connections now, borrowed ones when they are returned. Waiting threads get an error.

        Args:
            timeout: Seconds to wait for borrowed connections. Those that are not returned then are logged.
        """
        checked_timeout(timeout)
        with self._changed:
            self._closed = True
            timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            self._notify()
        self._discard_idle(lambda _: True)
        if timer is not None:
            timer.join(_TIMER_ENDS)  # until then it keeps the pool and its factory in memory
        with self._changed:
            if not self._changed.wait_for(lambda: not self._places, timeout):
                logger.warning("%r is closed, but connections are still borrowed.", self)

    def resize(self, min_size: int, max_size: int | None = None) -> None:
        """Change the sizes. Connections above the maximum are closed when they are returned.

        Args:
            min_size: The new minimum.
            max_size: The new maximum; None keeps it, unless the minimum is larger.

        Raises:
            ConfigurationError: A size is out of range.
        """
        largest = max(self._max_size, check_whole("min_size", min_size)) if max_size is None else max_size
        self._set_sizes(min_size, largest)
        with self._changed:
            self._notify()
        self._close_surplus()

    def drain(self) -> None:
        """Replace all connections: idle ones are closed now, borrowed ones when they are returned."""
        with self._changed:
            self._generation += 1
        self._discard_idle(lambda first: first.origin[0] != self._generation)

    def get_stats(self) -> dict[str, int]:
        """Return the counters by the names of psycopg_pool.

        The sizes and ``requests_waiting`` are the present state; the others have been counted since the pool was made.
        """
        with self._changed:
            return {
                "pool_min": self._min_size,
                "pool_max": self._max_size,
                "pool_size": len(self._places),
                "pool_available": len(self._idle),
                "requests_waiting": len(self._waiting),
                **self._counters,
            }

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ConnectionPool of {self._factory!r} with {len(self._places)} of {self._max_size} connections>"

    def _reset_after_fork(self) -> None:
        """Begin with an empty pool: the parent's connections and waiting threads do not exist in the child."""
        self._vacate()
        self._generation = 0
        self._failed_at = float("-inf")
        self._timer = None
        self._counters = dict.fromkeys(_COUNTERS, 0)

    def _set_sizes(self, min_size: int, max_size: int) -> None:
        self._min_size, self._max_size = checked_sizes(min_size, max_size)

    def _count(self, name: str, by: int = 1) -> None:
        with self._changed:
            self._counters[name] += by

    def _open_connection(self, key: Key, claim: Claim) -> PooledConnection:
        """Open a connection in the reserved place of a claim."""
        self._count("connections_num")
        generation, now = self._generation, self._clock.monotonic()
        connection: Connection | None = None
        try:
            connection = self._factory.create_connection(*key)
            claim.connection = PooledConnection(connection, key, self._return, (generation, now))
            self._occupy(claim, claim.connection)
            return claim.connection.borrow(now)
        except BaseException:
            if connection is None:
                self._count("connections_errors")
            elif claim.connection is None:  # a signal handler raised it
                connection.close()
            raise

    def _give_up(self, claim: Claim) -> None:
        """Return what was claimed and could not be lent, also because a signal handler raised an exception."""
        if claim.connection is not None:
            self._discard(claim.connection)
        self._free(claim)

    def _is_good(self, connection: PooledConnection) -> bool:
        now = self._clock.monotonic()
        if connection.failed:
            self._failed_at = now  # siblings that were last used before are not handed out any more
        if connection.last_success <= self._failed_at or self._is_too_old(connection, now):
            return False
        if self._check is None:
            return now - connection.last_success <= self._factory.idle_timeout
        try:
            self._check(connection.connection)
        except Exception as error:  # noqa: BLE001  # of any kind, as in psycopg_pool
            logger.warning("A pooled connection failed its check, and is replaced: %r", error)
            return False
        return True

    def _is_too_old(self, connection: PooledConnection, now: float) -> bool:
        generation, opened = connection.origin
        return generation != self._generation or now - opened >= self._max_lifetime

    def _return(self, connection: PooledConnection) -> None:
        """Take a connection back: keep it if it is good, else close it."""
        now = self._clock.monotonic()
        with self._changed:
            if connection in self._idle:  # it was taken back before a signal handler interrupted that
                self._notify()
                return
            self._count("usage_ms", round((now - connection.borrowed_at) * 1000))
            if connection.failed:
                self._count("returns_bad")
                self._failed_at = now
            connection.last_success = now  # if it failed, it is closed below
            crowded = self._closed or len(self._places) > self._max_size
            keep = not (crowded or connection.failed or self._is_too_old(connection, now))
            if keep:
                self._idle.append(connection)
                self._notify()
        if not keep:
            self._discard(connection)
        self._close_surplus()
        self._plan_maintenance()

    def _plan_maintenance(self) -> None:
        """Close surplus connections later, also if the pool is not used any more."""
        with self._changed:
            if self._timer or self._closed or len(self._idle) <= self._min_size or lock_timeout(self._max_idle) is None:
                return
            timer = threading.Timer(self._max_idle, self._maintain)
            timer.daemon = True
            timer.start()
            self._timer = timer

    def _maintain(self) -> None:
        with self._changed:
            self._timer = None
        self._close_surplus()
        self._plan_maintenance()

    def _close_surplus(self) -> None:
        """Close connections that have been idle for ``max_idle``, down to ``min_size``, and those above the maximum."""
        now = self._clock.monotonic()
        self._discard_idle(lambda first: self._is_surplus(first, now))

    def _is_surplus(self, first: PooledConnection, now: float) -> bool:
        size = len(self._places)
        return size > self._min_size and (size > self._max_size or now - first.last_success >= self._max_idle)

    def _discard_idle(self, applies: Callable[[PooledConnection], bool]) -> None:
        """Close idle connections, the one used longest ago first, while a condition applies to it."""
        claim = Claim()
        try:
            while self._claim_first(applies, claim):
                self._give_up(claim)
        except BaseException:  # of a signal handler
            self._give_up(claim)
            raise

    def _claim_first(self, applies: Callable[[PooledConnection], bool], claim: Claim) -> bool:
        with self._changed:
            if not (self._idle and applies(self._idle[0])):
                return False
            claim.connection = self._idle[0]
            self._idle.popleft()
            return True

    def _discard(self, connection: PooledConnection, counter: str | None = None) -> None:
        if counter:
            self._count(counter)
        try:
            with suppress(JMSError):
                connection.end()
        finally:
            self._free(connection)
