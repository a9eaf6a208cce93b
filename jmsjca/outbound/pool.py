"""The pool of connections: its idle connections, the threads that wait, and connections that threads share."""

import math
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Self

from jmsjca.arguments import MAX_TIMEOUT, TIMEOUT, Constraint
from jmsjca.arguments import check as check_arguments
from jmsjca.config.clock import SYSTEM_CLOCK, Clock, Deadline
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.errors import (
    ConfigurationError,
    IllegalStateError,
    JMSError,
    PoolTimeoutError,
    ResourceAllocationError,
)
from jmsjca.forking import ProcessBound, reset_in_child
from jmsjca.log_records import get_logger
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.pooled_connection import PoolableFactory, PooledConnection
from jmsjca.outbound.session import Session

__all__ = [
    "Claim",
    "ConnectionPool",
    "Key",
    "PoolPlaces",
    "SharedConnections",
    "lock_timeout",
]

logger = get_logger("jmsjca.outbound")

_MOST_USES = 100


_WHOLE = Constraint[int]("a whole number", int, error=ConfigurationError)
_LIMITS: dict[str, Constraint[Any]] = {
    "timeout": replace(TIMEOUT, error=ConfigurationError),
    "max_waiting": Constraint("a whole number from 0 on", int, within=(0, math.inf), error=ConfigurationError),
    "max_idle": Constraint(
        "seconds, as a number from 0 on",
        (int, float),
        within=(0, math.inf),
        error=ConfigurationError,
        seconds=True,
    ),
    "max_lifetime": Constraint(
        "seconds, as a number above 0",
        (int, float),
        fits=lambda seconds: seconds > 0,
        error=ConfigurationError,
        seconds=True,
    ),
}


def lock_timeout(seconds: float) -> float | None:
    """Return a timeout as a lock takes it: at least 0, and None for more than it can wait for."""
    return None if seconds > MAX_TIMEOUT else max(seconds, 0.0)


Key = tuple[str | None, str | None]
"""The user name and password of a connection; (None, None) for those of the factory."""


class Claim:
    """A place or connection that a thread takes: recorded before it is taken, so that no exception can lose it.

    Attributes:
        connection: The connection that was taken, or opened in the place that the claim occupies.
    """

    connection: PooledConnection | None = None

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
            if isinstance(occupant, PooledConnection) and occupant in self._idle:  # its return was interrupted
                self._idle.remove(occupant)
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
        """Wake only the threads that can now get a connection: waking all threads would slow each of them down."""
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
        timeout: float | timedelta | None = 0.0,
        max_waiting: int = 0,
        max_idle: float | timedelta = 600.0,
        max_lifetime: float | timedelta = 3600.0,
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
        check_arguments(_LIMITS, max_waiting=max_waiting)
        waited = _LIMITS["timeout"]("timeout", timeout)
        self._factory = factory
        # Only a factory under a transaction manager has this method.
        self._take_kept: Callable[[object, Callable[[object], object]], object] | None
        self._take_kept = getattr(factory, "take_kept", None)
        self._timeout = waited if options.pool_timeout is None else lock_timeout(options.pool_timeout)
        self._max_waiting = max_waiting
        self._max_idle: float = _LIMITS["max_idle"]("max_idle", max_idle)
        self._max_lifetime: float = _LIMITS["max_lifetime"]("max_lifetime", max_lifetime)
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
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | timedelta | None = -1.0
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
            except BaseException:  # again, if a signal handler interrupted its first step
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
        self, user_name: str | None = None, password: str | None = None, *, timeout: float | timedelta | None = -1.0
    ) -> PooledConnection:
        """Borrow a connection, not started. Its ``close()`` returns it to the pool.

        Args:
            user_name: As for `connection`.
            password: As for `connection`.
            timeout: As for `connection`.

        Raises:
            JMSError: As `connection`.
        """
        key, claim, lent = (user_name, password), Claim(), None
        try:
            if self._take_kept is not None:
                lent = self._lend_kept(key, claim)
            lent = lent or self._lend_idle(key, claim) or self._lend(key, timeout, claim)
            return lent
        finally:
            if lent is None:
                self._give_up(claim)

    def _lend_kept(self, key: Key, claim: Claim) -> PooledConnection | None:
        """Lend the connection that the caller's transaction keeps, if any."""
        kept = self._take_kept and self._take_kept((self._return, key), claim.record)
        if not isinstance(kept, PooledConnection):
            return None
        self._count("requests_num")
        return kept.borrow(self._clock.monotonic())

    def _lend_idle(self, key: Key, claim: Claim) -> PooledConnection | None:
        """Lend the idle connection that was used last, if it is good: the usual case, in which no thread waits."""
        with self._lock:
            if self._check is not None or self._waiting or self._closed or not self._idle:
                return None
            connection, now = self._idle[-1], self._clock.monotonic()
            if connection.key != key or not self._is_fresh(connection, now, self._factory.idle_timeout):
                return None
            claim.connection = connection
            self._idle.pop()
            self._counters["requests_num"] += 1
            return connection.borrow(now)

    def _lend(self, key: Key, timeout: float | timedelta | None, claim: Claim) -> PooledConnection:
        deadline = Deadline(self._timeout if timeout == -1.0 else TIMEOUT("timeout", timeout), self._clock)
        began = self._clock.monotonic()
        self._count("requests_num")
        try:
            while (taken := self._take(key, deadline, claim)) is not None:
                if taken.key != key:  # the pool is full: an idle connection of other credentials makes room
                    self._discard(taken)
                elif self._is_good(taken):
                    return taken.borrow(self._clock.monotonic())
                else:
                    self._discard(taken, "connections_lost")
            return self._open_connection(key, claim)
        except Exception:
            self._count("requests_errors")
            raise
        finally:
            self._count("requests_wait_ms", round((self._clock.monotonic() - began) * 1000))

    def open(self, *, wait: bool = False, timeout: float | timedelta | None = 30.0) -> None:
        """Open the pool, and with ``wait`` its first ``min_size`` connections, as `wait` does. Idempotent."""
        with self._changed:
            self._closed = False
        if wait:
            self.wait(timeout)

    def wait(self, timeout: float | timedelta | None = 30.0) -> None:
        """Open connections until there are ``min_size``.

        Args:
            timeout: Seconds after which no further connection is begun; None for no end.

        Raises:
            PoolTimeoutError: The pool is not full in time.
            IllegalStateError: The pool is closed.
            JMSError: A connection cannot be opened.
        """
        seconds = TIMEOUT("timeout", timeout)
        deadline = Deadline(seconds, self._clock)
        while self._add_below_minimum(deadline, seconds):
            pass

    def _add_below_minimum(self, deadline: Deadline, timeout: float | None) -> bool:
        """Open an idle connection if there are fewer than ``min_size``; return False if there are not."""
        claim, added = Claim(), False
        try:
            if not self._reserve_below_minimum(claim):
                return False
            if deadline.remaining() == 0:
                raise PoolTimeoutError(f"The pool has less than {self._min_size} connections after {timeout} s.")
            self._open_connection((None, None), claim).close()
            added = True
            return True
        finally:
            if not added:
                self._give_up(claim)

    def close(self, timeout: float | timedelta = 5.0) -> None:
        """Close the pool: idle connections now, borrowed ones when they are returned. Waiting threads get an error.

        Args:
            timeout: Seconds to wait for borrowed connections. Those that are not returned then are logged.
        """
        seconds = TIMEOUT("timeout", timeout)
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
            if not self._changed.wait_for(lambda: not self._places, seconds):
                logger.warning("%r is closed, but connections are still borrowed.", self)

    def resize(self, min_size: int, max_size: int | None = None) -> None:
        """Change the sizes. Connections above the maximum are closed when they are returned.

        Args:
            min_size: The new minimum.
            max_size: The new maximum; None keeps it, unless the minimum is larger.

        Raises:
            ConfigurationError: A size is out of range.
        """
        largest = max(self._max_size, _WHOLE("min_size", min_size)) if max_size is None else max_size
        self._set_sizes(min_size, largest)
        with self._changed:
            self._notify()
        self._close_surplus()

    def drain(self) -> None:
        """Replace all connections: idle ones are closed now, borrowed ones when they are returned."""
        with self._changed:
            self._generation += 1
        self._discard_idle(lambda first: first.origin[0] != self._generation)

    def _lends_alone(self) -> bool:
        """Return True unless all connections are borrowed, and no thread waits for one: then they may be shared."""
        with self._lock:
            return bool(self._idle or len(self._places) < self._max_size or self._waiting)

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
        small, large = _WHOLE("min_size", min_size), _WHOLE("max_size", max_size)
        if not 0 <= small <= large or large < 1:
            raise ConfigurationError(f"min_size is {small}, max_size {large}: 0 <= min_size <= max_size >= 1.")
        self._min_size, self._max_size = small, large

    def _count(self, name: str, by: int = 1) -> None:
        with self._lock:
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
        finally:
            if connection is None:
                self._count("connections_errors")
            elif claim.connection is None:  # a signal handler has raised an exception
                connection.close()

    def _give_up(self, claim: Claim) -> None:
        """Return what was claimed and could not be lent, also because a signal handler raised an exception."""
        if claim.connection is not None:
            self._discard(claim.connection)
            claim.connection = None
        self._free(claim)

    def _is_good(self, connection: PooledConnection) -> bool:
        now = self._clock.monotonic()
        if connection.failed:
            self._failed_at = now  # siblings that were last used before are not handed out any more
        if not self._is_fresh(connection, now, float("inf") if self._check else self._factory.idle_timeout):
            return False
        if self._check is None:
            return True
        try:
            self._check(connection.connection)
        except Exception as error:  # noqa: BLE001  # of any kind, as in psycopg_pool
            logger.warning("A pooled connection failed its check, and is replaced: %r", error)
            return False
        return True

    def _is_fresh(self, connection: PooledConnection, now: float, idle_timeout: float) -> bool:
        generation, opened = connection.origin
        return (
            not connection.failed
            and self._failed_at < connection.last_success
            and now - connection.last_success <= idle_timeout
            and generation == self._generation
            and now - opened < self._max_lifetime
        )

    def _return(self, connection: PooledConnection) -> None:
        """Take a connection back: keep it if it is good, else close it."""
        now = self._clock.monotonic()
        with self._lock:
            self._counters["usage_ms"] += round((now - connection.borrowed_at) * 1000)
            if failed := connection.failed:
                self._counters["returns_bad"] += 1
                self._failed_at = now
            connection.last_success = now  # if it failed, it is closed below
            crowded = self._closed or len(self._places) > self._max_size
            generation, opened = connection.origin
            is_young = generation == self._generation and now - opened < self._max_lifetime
            keep = is_young and not (failed or crowded)
            if keep:
                self._idle.append(connection)
                if self._waiting:
                    self._notify()
        if not keep:
            self._discard(connection)
        if not keep or len(self._idle) > 1 or not self._max_idle:
            self._close_surplus()
        if self._timer is None:
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
        finally:
            self._give_up(claim)  # if it was interrupted

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


class Use:
    """The use of a connection of `SharedConnections` by one send.

    Attributes:
        shared: The connection, and its other users; None without one.
    """

    shared: "_Shared | None" = None


@dataclass(eq=False, slots=True)
class _Shared:
    """A borrowed connection, and who uses it.

    Attributes:
        users: The sends that use it now.
        connection: The connection; None until it is borrowed, and once it is returned.
        uses: The number of sends that have begun to use it since it was borrowed.
    """

    users: set[Use]
    connection: PooledConnection | None = None
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

    def join_or_borrow(self, use: Use) -> PooledConnection:
        """Borrow a connection, or share one. `leave` ends the use, also after an error of this method.

        Args:
            use: The use that begins.

        Raises:
            JMSError: As `ConnectionPool.get_connection`.
        """
        if self._in_use:
            if joined := self._join(use):
                return joined
            if self._joinable():
                try:
                    return self._borrow(use, 0.0)
                except PoolTimeoutError:  # another thread was faster
                    self.leave(use)
                    if joined := self._join(use):
                        return joined
        return self._borrow(use, -1.0)

    def _join(self, use: Use) -> PooledConnection | None:
        """Join the connection with the fewest users; None if the pool has one left, or others wait for it."""
        if self._pool._lends_alone():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
            return None
        with self._lock:
            use.shared = min(self._joinable(), key=lambda each: len(each.users), default=None)
            if use.shared is None:
                return None
            use.shared.uses += 1
            use.shared.users.add(use)
            return use.shared.connection

    def _joinable(self) -> list[_Shared]:
        return [
            each
            for each in self._in_use
            if each.uses < _MOST_USES and each.connection is not None and not each.connection.failed
        ]

    def _borrow(self, use: Use, timeout: float) -> PooledConnection:
        use.shared = shared = _Shared({use})  # before a connection is borrowed, so that no interruption can lose it
        with self._lock:
            self._in_use.append(shared)
        shared.connection = self._pool.get_connection(timeout=timeout)
        return shared.connection

    def leave(self, use: Use) -> None:
        """End the use of a connection, if it has begun; the last user returns the connection. Idempotent."""
        shared = use.shared
        if shared is None:
            return
        with self._lock:
            shared.users.discard(use)
            if shared.users:
                return
            shared.uses = _MOST_USES  # no thread joins it any more
        if shared.connection is not None:
            shared.connection.close()
            shared.connection = None
        with self._lock:
            if shared in self._in_use:  # not in a forked child
                self._in_use.remove(shared)
        use.shared = None

    def _reset_after_fork(self) -> None:
        """Start without connections: the connections of the parent process must not be used in the child."""
        self._lock = threading.Lock()
        self._in_use: list[_Shared] = []
