"""The data manager of a SQLAlchemy session: commits its database work when a transaction commits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from sqlalchemy import Engine, event
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session, SessionTransaction, sessionmaker

from jmsjca.errors import IllegalStateError, NotSupportedError, TransactionRolledBackError
from jmsjca.transactions.broker_data_manager import (
    JoinedTransaction,
    TransactionSource,
    decider_of,
    join_database,
    transaction_of,
)

if TYPE_CHECKING:  # the module needs greenlet, which SQLAlchemy does not install by itself
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker
    from typing_extensions import TypeIs

    from jmsjca.transactions.last_resource import Decision, LastResource

__all__ = [
    "SessionSource",
    "SqlDataManager",
    "asynchronous_sources",
    "is_asynchronous_engine",
    "join",
    "joined_session",
    "new_session",
    "run_on_loop",
    "running_loop",
    "vote_last",
]

_POLL_INTERVAL = 0.5  # seconds between checks of a waiting thread that the loop still runs

T = TypeVar("T")

SessionSource: TypeAlias = Engine | sessionmaker[Session]
"""The source of a session: an engine, or a factory of sessions."""


def join(session: Session | AsyncSession, transaction: TransactionSource) -> None:
    """Join a session to a transaction. Joining it again has no effect.

    The session stays open after the transaction; the caller closes it. If an `AsyncSession` has joined, end the
    transaction on a thread other than the thread of the event loop, as a listener does, or by
    ``await session.run_sync(lambda _: transaction.commit())`` (or ``abort``).

    Args:
        session: A session of SQLAlchemy 2.
        transaction: A transaction of the `transaction` package, or its manager.

    Raises:
        NotSupportedError: The session is set to commit in two phases.
    """
    _join(session, transaction, is_closed_at_end=False)


@overload
def joined_session(source: SessionSource, transaction: TransactionSource) -> Session:  # noqa: D418
    """Return a session for blocking calls."""


@overload
def joined_session(  # noqa: D418
    source: AsyncEngine | async_sessionmaker[AsyncSession], transaction: TransactionSource
) -> AsyncSession:
    """Return a session for coroutines."""


def joined_session(
    source: SessionSource | AsyncEngine | async_sessionmaker[AsyncSession], transaction: TransactionSource
) -> Session | AsyncSession:
    """Return a session that has joined a transaction and is closed when the transaction ends.

    Args:
        source: An engine, or a factory of sessions. While the transaction is open, the same source returns the same
            session.
        transaction: A transaction of the `transaction` package, or its manager.

    Raises:
        NotSupportedError: The session is set to commit in two phases.
    """
    joined = transaction_of(transaction)
    try:
        found: Session | AsyncSession = joined.data(source)
    except KeyError:
        found = new_session(source)
        _join(found, joined, is_closed_at_end=True)
        joined.set_data(source, found)
    return found


@overload
def new_session(source: SessionSource) -> Session:  # noqa: D418
    """Return a session for blocking calls."""


@overload
def new_session(source: AsyncEngine | async_sessionmaker[AsyncSession]) -> AsyncSession:  # noqa: D418
    """Return a session for coroutines."""


def new_session(source: SessionSource | AsyncEngine | async_sessionmaker[AsyncSession]) -> Session | AsyncSession:
    """Return a new session of a source."""
    if is_asynchronous_engine(source):
        session: AsyncSession = _asynchronous_module().AsyncSession(source)
        return session
    return Session(source) if isinstance(source, Engine) else source()


def vote_last(session: Session | AsyncSession, transaction: TransactionSource) -> None:
    """Make a joined session commit after all other databases: its rows state that the others have committed.

    Args:
        session: A session that joined the transaction by a function of this package.
        transaction: The transaction, or its manager.
    """
    transaction_of(transaction).data(_synchronous(session)).votes_last = True


def _join(session: Session | AsyncSession, transaction: TransactionSource, *, is_closed_at_end: bool) -> None:
    joined, key = transaction_of(transaction), _synchronous(session)
    if key.twophase:
        raise NotSupportedError(
            "A session with twophase=True cannot join a transaction. Create it without twophase, or on PostgreSQL use "
            "two_phase_session(…)."
        )
    try:
        joined.data(key)
    except KeyError:
        manager = SqlDataManager(session, is_closed_at_end=is_closed_at_end)
        manager.joined = joined
        join_database(manager, joined)
        joined.set_data(key, manager)


def _synchronous(session: Session | AsyncSession) -> Session:
    return session.sync_session if _is_asynchronous(session) else session


class SqlDataManager:
    """Commits a session in one phase, in its vote. The data manager of the broker votes after all sessions.

    It has no method ``savepoint``, like `BrokerDataManager`: use the session's own savepoints.

    Args:
        session: The session. Its own `commit` is refused until the transaction ends.
        is_closed_at_end: True to close the session when the transaction has ended.

    Attributes:
        votes_last: True to vote after all other databases.
        joined: The transaction that it has joined.
        decision: About the prepared unit of the broker; the commit of the session makes it.
    """

    transaction_manager: Any = None
    votes_last = False
    joined: JoinedTransaction | None = None
    decision: Decision | None = None
    _has_decisions: bool | None = None
    _place = 1  # order among sessions: a session that can still roll back after its vote has a smaller number

    def __init__(self, session: Session | AsyncSession, *, is_closed_at_end: bool = False) -> None:
        self._given = session
        self._session = _synchronous(session)
        self._loop = running_loop() if _is_asynchronous(session) else None
        self._is_closed_at_end = is_closed_at_end
        self._is_ended = self._is_rolled_back = False
        event.listen(self._session, "before_commit", self._refuse_commit)
        event.listen(self._session, "after_transaction_end", self._record_end)

    def sortKey(self) -> str:  # noqa: N802  # the name in the transaction package
        """Return the position among the data managers: late, because a commit in one phase cannot be undone."""
        if decider_of(self.joined) is self:
            return "~~~jmsjca"
        return f"{'~~inbox' if self.votes_last else f'~jmsjca-sql:{self._place}'}:{id(self._session)}"

    def tpc_begin(self, _transaction: JoinedTransaction) -> None:
        """Begin to commit: nothing to do."""

    def commit(self, _transaction: JoinedTransaction) -> None:
        """Flush the session: this detects most violated constraints before any data manager votes.

        Raises:
            TransactionRolledBackError: The application has rolled back or closed the session, so its work is lost.
        """
        if self._is_rolled_back:
            raise TransactionRolledBackError(
                "A session was rolled back or closed before the end of the transaction that it has joined. Let the "
                "transaction end it: use joined_session(…), and begin_nested() for work that may fail."
            )
        self._run(self._session.flush)

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Commit the database's transaction, with the decision about the broker's.

        Raises:
            TransactionInDoubtError: The database has not answered, and recovery will ask it for the decision.
        """
        self._stop_listening()
        self._run(self._commit)
        self._is_ended = True

    def _commit(self) -> None:
        if self.decision is None:
            self._session.commit()
        else:
            self.decision.make(self._session, self._session.commit)

    def has_decisions_of(self, last_resource: LastResource) -> bool:
        """Return True if the session's database has the decisions about prepared units."""
        if self._has_decisions is None:
            self._run(lambda: setattr(self, "_has_decisions", last_resource.is_in(self.engine)))
        return bool(self._has_decisions)

    @property
    def engine(self) -> Engine | None:
        """The engine of the session; None if it has several."""
        try:
            return self._session.get_bind().engine
        except UnboundExecutionError:
            return None

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Finish: the vote has committed."""
        self._close()

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has committed."""
        self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has committed."""
        if not self._is_ended:
            self._is_ended = True
            self._stop_listening()
            self._run(self._session.rollback)
        self._close()

    def _close(self) -> None:
        if self._is_closed_at_end:
            self._is_closed_at_end = False
            self._run(self._session.close)

    def _run(self, act: Callable[[], None]) -> None:
        """Call a method of the session. The method of an `AsyncSession` runs as a coroutine on its loop."""
        loop = self._loop
        if loop is None or loop is running_loop() or not _is_asynchronous(self._given):
            act()
            return
        run_on_loop(loop, self._given.run_sync(lambda _: act()))

    def _refuse_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():  # releasing a savepoint does not commit
            raise IllegalStateError("The session has joined a transaction. Commit the transaction instead.")

    def _record_end(self, _session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is None:
            self._is_rolled_back = True

    def _stop_listening(self) -> None:
        if event.contains(self._session, "before_commit", self._refuse_commit):
            event.remove(self._session, "before_commit", self._refuse_commit)
            event.remove(self._session, "after_transaction_end", self._record_end)


def _is_asynchronous(session: Session | AsyncSession) -> TypeIs[AsyncSession]:
    module = _asynchronous_module()
    return module is not None and isinstance(session, module.AsyncSession)


def is_asynchronous_engine(source: object) -> TypeIs[AsyncEngine]:
    """Return True for an `AsyncEngine`."""
    module = _asynchronous_module()
    return module is not None and isinstance(source, module.AsyncEngine)


def asynchronous_sources() -> tuple[type, ...]:
    """Return the types `AsyncEngine` and `async_sessionmaker`; an empty tuple if the program has not imported them."""
    module = _asynchronous_module()
    return () if module is None else (module.AsyncEngine, module.async_sessionmaker)


def _asynchronous_module() -> Any:
    """Return the module of asynchronous sessions; None while it is not imported: no such session exists then."""
    return sys.modules.get("sqlalchemy.ext.asyncio")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on the current thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def run_on_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of another thread, wait for it, and return its result.

    Args:
        loop: The loop.
        coroutine: The coroutine.

    Raises:
        IllegalStateError: The loop does not run anymore.
        BaseException: The error of the coroutine.
    """
    try:
        running = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError as error:  # the loop is closed
        coroutine.close()
        raise _not_running() from error
    while not running.done():
        if not loop.is_running():
            raise _not_running()
        with suppress(TimeoutError):
            running.exception(_POLL_INTERVAL)
    failure = running.exception()
    if failure is not None:  # before Python 3.13 `result` tests the exception itself for its truth
        raise failure
    return running.result()


def _not_running() -> IllegalStateError:
    return IllegalStateError("The event loop of an asynchronous database session does not run any more.")
