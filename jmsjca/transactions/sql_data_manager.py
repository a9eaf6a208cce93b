"""The data manager of a SQLAlchemy session: its database work commits when a transaction commits."""

from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from jmsjca.errors import IllegalStateError, NotSupportedError
from jmsjca.transactions.joined_transaction import JoinedTransaction

__all__ = ["SqlDataManager", "join"]


def join(session: Session | AsyncSession, transaction: JoinedTransaction) -> None:
    """Join a session to a transaction. Joining it again has no effect.

    The session stays open after the transaction: the caller closes it. A transaction that an `AsyncSession` joined must
    be ended by ``await session.run_sync(lambda _: transaction.commit())`` (or ``abort``).

    Args:
        session: A session of SQLAlchemy 2.
        transaction: A transaction of the `transaction` package.

    Raises:
        NotSupportedError: The session commits in two phases.
    """
    joined = session.sync_session if isinstance(session, AsyncSession) else session
    if joined.twophase:
        raise NotSupportedError("A session with twophase=True cannot join a transaction. Make it without twophase.")
    try:
        transaction.data(joined)
    except KeyError:
        manager = SqlDataManager(joined)
        transaction.join(manager)
        transaction.set_data(joined, manager)


class SqlDataManager:
    """Commits a session in one phase, as its vote: before the broker, whose data manager votes last.

    Args:
        session: The session. Its own `commit` is refused until the transaction ends.
    """

    transaction_manager: Any = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_ended = False
        event.listen(session, "before_commit", self._refuse_commit)

    def sortKey(self) -> str:  # noqa: N802  # the name in the transaction package
        """Return the position among the data managers: late, as a commit in one phase cannot be undone."""
        return f"~jmsjca-sql:{id(self._session)}"

    def tpc_begin(self, _transaction: JoinedTransaction) -> None:
        """Begin to commit: nothing to do."""

    def commit(self, _transaction: JoinedTransaction) -> None:
        """Flush the session: most violated constraints show here, before any data manager votes."""
        self._session.flush()

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Commit the database's transaction."""
        self._stop_refusing()
        self._session.commit()
        self._is_ended = True

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Finish: the vote has committed."""

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has committed."""
        self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has committed."""
        if not self._is_ended:
            self._is_ended = True
            self._stop_refusing()
            self._session.rollback()

    def _refuse_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():  # the release of a savepoint commits nothing
            raise IllegalStateError("The session has joined a transaction. Commit the transaction instead.")

    def _stop_refusing(self) -> None:
        if event.contains(self._session, "before_commit", self._refuse_commit):
            event.remove(self._session, "before_commit", self._refuse_commit)
