"""Sessions of PostgreSQL that commit in two phases: prepared before the broker commits, and committed after it."""

import logging
import re
import uuid
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jmsjca.errors import NotSupportedError
from jmsjca.transactions.joined_transaction import JoinedTransaction, TransactionSource, is_in_doubt, transaction_of
from jmsjca.transactions.sql_data_manager import SqlDataManager

__all__ = ["TwoPhaseDataManager", "recover_prepared", "two_phase_session"]

logger = logging.getLogger("jmsjca.transactions")

_PREFIX = "jmsjca-"
_OURS = re.compile(rf"{_PREFIX}[0-9a-f]{{32}}")


def two_phase_session(engine: sa.Engine, transaction: TransactionSource) -> Session:
    """Return a session that has joined a transaction, commits in two phases, and is closed with it.

    The database prepares in its vote, the broker commits after that, and then the database commits. If the broker rolls
    back, so does the database. After the death of a process use `recover_prepared`.

    Args:
        engine: An engine of PostgreSQL with ``max_prepared_transactions`` above 0.
        transaction: A transaction of the `transaction` package, or its manager. The same engine has the same session as
            long as the transaction is open.

    Raises:
        NotSupportedError: The database is another one.
    """
    joined = transaction_of(transaction)
    try:
        found: Session = joined.data(engine)
    except KeyError:
        if engine.dialect.name != "postgresql":
            raise NotSupportedError(
                f"{engine.dialect.name} does not commit in two phases; only PostgreSQL does. Use joined_session(…)."
            ) from None
        manager = TwoPhaseDataManager(engine.connect())
        joined.join(manager)
        found = manager.session
        joined.set_data(engine, found)
        joined.set_data(found, manager)
    return found


def recover_prepared(engine: sa.Engine, *, older_than: float = 60.0) -> int:
    """Commit the transactions that processes prepared before they died.

    It is unknown whether the broker had committed. If it had not, it redelivers the messages, and an inbox recognises
    them, as its rows are committed here.

    Args:
        engine: The engine of the database.
        older_than: Seconds since the preparation, which is longer than any commit of the broker takes. Younger ones may
            belong to a process that is alive. 0 takes all.

    Returns:
        The number of transactions.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
    """
    prepared = sa.text(
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, :prefix) "
        "AND prepared <= now() - make_interval(secs => :seconds)"
    )
    recovered = 0
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        for gid in connection.scalars(prepared, {"prefix": _PREFIX, "seconds": older_than}).all():
            if _OURS.fullmatch(gid):
                connection.exec_driver_sql(f"COMMIT PREPARED '{gid}'")
                recovered += 1
    if recovered:
        logger.warning("%d prepared transactions of dead processes were committed.", recovered)
    return recovered


class TwoPhaseDataManager(SqlDataManager):
    """Prepares in its vote, and commits when all have voted.

    Args:
        connection: A connection to the database, which the data manager closes.

    Attributes:
        session: The session.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._xid = f"{_PREFIX}{uuid.uuid4().hex}"
        self._two_phase: Any = connection.begin_twophase(self._xid)
        self.session = Session(connection, join_transaction_mode="rollback_only")
        self._is_prepared = False
        super().__init__(self.session, is_closed_at_end=True)

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Prepare the database's transaction."""
        self._stop_listening()
        self._two_phase.prepare()
        self._is_prepared = True

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Commit: the broker has committed. An error is logged, as nothing can be rolled back any more."""
        self._is_ended = True
        try:
            self._two_phase.commit()
        except SQLAlchemyError:
            logger.exception(
                "The database did not commit the prepared transaction %s, although the broker has: use "
                "recover_prepared(…) when the database is there again.",
                self._xid,
            )
        self._close()

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back; or commit, if the broker may have committed."""
        if self._is_prepared and not self._is_ended and is_in_doubt(_transaction):
            self.tpc_finish(_transaction)
        else:
            self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the transaction has ended."""
        if not self._is_ended:
            self._is_ended = True
            self._stop_listening()
            self._two_phase.rollback()
        self._close()

    def _close(self) -> None:
        self.session.close()
        self._connection.close()
