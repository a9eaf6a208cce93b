"""PostgreSQL sessions that commit in two phases: they prepare before the broker commits, and commit after it."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from jmsjca.arguments import SECONDS
from jmsjca.errors import NotSupportedError
from jmsjca.log_records import get_logger
from jmsjca.transactions.broker_data_manager import (
    JoinedTransaction,
    TransactionSource,
    is_in_doubt,
    join_database,
    transaction_of,
)
from jmsjca.transactions.sql_data_manager import SqlDataManager, is_asynchronous_engine

if TYPE_CHECKING:  # the module needs greenlet, which SQLAlchemy does not install by itself
    from collections.abc import Awaitable

    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

__all__ = ["TwoPhaseDataManager", "recover_prepared", "two_phase_session"]

logger = get_logger("jmsjca.transactions")

_PREFIX = "jmsjca-"
_OURS = re.compile(rf"{_PREFIX}[0-9a-f]{{32}}")
_NOT_PERMITTED, _IS_BUSY = "42501", "55000"  # codes of PostgreSQL's errors


@overload
def two_phase_session(engine: sa.Engine, transaction: TransactionSource) -> Session:  # noqa: D418
    """Return a session for blocking calls."""


@overload
def two_phase_session(engine: AsyncEngine, transaction: TransactionSource) -> AsyncSession:  # noqa: D418
    """Return a session for coroutines."""


def two_phase_session(engine: sa.Engine | AsyncEngine, transaction: TransactionSource) -> Session | AsyncSession:
    """Return a session that has joined a transaction, commits in two phases, and is closed when the transaction ends.

    The database prepares in its vote, then the broker commits, then the database commits. If the broker rolls back, so
    does the database. After a process has died, call `recover_prepared`.

    Args:
        engine: An engine of PostgreSQL with ``max_prepared_transactions`` above 0. With an `AsyncEngine` the session is
            an `AsyncSession`, as with `joined_session`.
        transaction: A transaction of the `transaction` package, or its manager. While the transaction is open, the same
            engine returns the same session.

    Raises:
        NotSupportedError: The database is not PostgreSQL.
    """
    joined = transaction_of(transaction)
    try:
        found: Session | AsyncSession = joined.data(engine)
    except KeyError:
        found = _new_session(engine)
        manager = TwoPhaseDataManager(found)
        manager.joined = joined
        join_database(manager, joined)
        joined.set_data(engine, found)
        joined.set_data(manager.session, manager)
    return found


@overload
def recover_prepared(engine: sa.Engine, *, older_than: float | timedelta = 60.0) -> int:  # noqa: D418
    """Commit the prepared transactions, and return their number."""


@overload
def recover_prepared(engine: AsyncEngine, *, older_than: float | timedelta = 60.0) -> Awaitable[int]:  # noqa: D418
    """Commit the prepared transactions when awaited, and return their number."""


def recover_prepared(engine: sa.Engine | AsyncEngine, *, older_than: float | timedelta = 60.0) -> int | Awaitable[int]:
    """Commit the transactions that processes prepared before they died.

    It is unknown whether the broker had committed. If it had not, it redelivers the messages, and an inbox recognises
    them, because this call commits the inbox rows.

    Args:
        engine: The engine of the database. With an `AsyncEngine` the call is awaited.
        older_than: Minimum age in seconds, or a `timedelta`, counted from the preparation. Choose more than any commit
            of the broker takes, because younger transactions may belong to a live process. 0 commits all.

    Returns:
        The number of committed transactions. Not counted are transactions that another process has committed or is
        committing, and transactions of other roles: only these roles or a superuser may commit them, and a warning is
        logged for each.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
    """
    seconds = SECONDS("older_than", older_than)
    if is_asynchronous_engine(engine):
        return _recover_asynchronously(engine, seconds)
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        return _recover(connection, seconds)


class TwoPhaseDataManager(SqlDataManager):
    """Prepares in its vote, and commits after all data managers have voted.

    Args:
        session: A session of this module, which is closed at the end.

    Attributes:
        session: The session; the synchronous session of an `AsyncSession`.
    """

    session: _TwoPhaseSession
    _place = 0

    def __init__(self, session: Session | AsyncSession) -> None:
        super().__init__(session, is_closed_at_end=True)
        assert isinstance(self._session, _TwoPhaseSession)  # noqa: S101  # the callers are in this module
        self.session = self._session
        self._is_prepared = False

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Prepare the database's transaction. Commit it instead if it decides the unit of the broker."""
        if self.decision is not None:
            super().tpc_vote(_transaction)
            return
        self._stop_listening()
        self._run(self.session.prepare_phase)
        self._is_prepared = True

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Commit: the broker has committed. An error is only logged, because nothing can be rolled back anymore."""
        try:
            if not self._is_ended:
                self._is_ended = True
                self._run(self.session.commit_phase)
        except SQLAlchemyError:
            logger.exception(
                "The database did not commit the prepared transaction %s, although the broker has: use "
                "recover_prepared(…) when the database is there again.",
                self.session.xid,
            )
        self._close()

    def _commit(self) -> None:
        if self.decision is not None:
            self.decision.make(self.session, self.session.commit_phase)

    @property
    def engine(self) -> sa.Engine:
        """The engine of the session."""
        return self.session.engine

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back. Commits instead if the session is prepared and the broker may have committed."""
        if self._is_prepared and not self._is_ended and is_in_doubt(_transaction):
            self.tpc_finish(_transaction)
        else:
            self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the transaction has ended."""
        if not self._is_ended:
            self._is_ended = True
            self._stop_listening()
            self._run(self.session.roll_back)
        self._close()


class _TwoPhaseSession(Session):
    """A session that opens its connection, and begins its transaction, at its first statement.

    Args:
        bind: The engine.
        **options: Options of `Session`.

    Attributes:
        xid: The name of the prepared transaction.
        engine: The engine.
    """

    def __init__(self, bind: sa.Engine, **options: Any) -> None:
        super().__init__(bind, join_transaction_mode="rollback_only", **options)
        self.xid = f"{_PREFIX}{uuid.uuid4().hex}"
        self.engine = bind
        self._connection: sa.Connection | None = None
        self._phases: Any = None

    def get_bind(self, *_args: object, **_options: object) -> sa.Connection:
        """Return the connection, with an open two-phase transaction."""
        if self._connection is None:
            self._connection = self.engine.connect()
            self._phases = self._connection.begin_twophase(self.xid)
        return self._connection

    def prepare_phase(self) -> None:
        """Prepare, if a statement was executed."""
        if self._phases is not None:
            self._phases.prepare()

    def commit_phase(self) -> None:
        """Commit the prepared transaction."""
        if self._phases is not None:
            self._phases.commit()

    def roll_back(self) -> None:
        """Roll back the transaction, prepared or not."""
        if self._phases is not None:
            self._phases.rollback()

    def close(self) -> None:
        """Close the session and its connection."""
        super().close()
        if self._connection is not None:
            self._connection.close()


def _new_session(engine: sa.Engine | AsyncEngine) -> Session | AsyncSession:
    if engine.dialect.name != "postgresql":
        raise NotSupportedError(
            f"{engine.dialect.name} does not commit in two phases; only PostgreSQL does. Use joined_session(…)."
        )
    if is_asynchronous_engine(engine):
        from sqlalchemy.ext.asyncio import AsyncSession  # the module needs greenlet

        return AsyncSession(engine, sync_session_class=_TwoPhaseSession)
    return _TwoPhaseSession(engine)


async def _recover_asynchronously(engine: AsyncEngine, older_than: float) -> int:
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        return await connection.run_sync(_recover, older_than)


def _recover(connection: sa.Connection, older_than: float) -> int:
    prepared = sa.text(
        "SELECT gid, owner FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, :prefix) "
        "AND prepared <= now() - make_interval(secs => :seconds)"
    )
    recovered = 0
    for gid, owner in connection.execute(prepared, {"prefix": _PREFIX, "seconds": older_than}).all():
        if _OURS.fullmatch(gid):
            recovered += _commit_prepared(connection, gid, owner)
    if recovered:
        logger.warning("%d prepared transactions of dead processes were committed.", recovered)
    return recovered


def _commit_prepared(connection: sa.Connection, gid: str, owner: str) -> bool:
    """Commit a prepared transaction; return False if another process commits it, or only its owner may."""
    try:
        connection.exec_driver_sql(f"COMMIT PREPARED '{gid}'")
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        code = _code_of(error)
        waiting = sa.text("SELECT 1 FROM pg_prepared_xacts WHERE gid = :gid")
        if code == _NOT_PERMITTED:
            logger.warning(
                "The prepared transaction %s was left: it belongs to the role %r, and keeps its locks. Call "
                "recover_prepared(…) with an engine of that role, or of a superuser.",
                gid,
                owner,
            )
        elif code != _IS_BUSY and connection.scalar(waiting, {"gid": gid}):
            raise
        return False
    return True


def _code_of(error: DBAPIError) -> str | None:
    """Return the SQLSTATE of an error, which psycopg2 names differently."""
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
