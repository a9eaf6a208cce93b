"""Enlistment: the units with which connections take part in the transactions of a transaction manager.

The module needs the `transaction` package; only factories under a transaction manager import it.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import NamedTuple

from jmsjca import spi
from jmsjca.errors import JMSError, TransactionRolledBackError
from jmsjca.log_records import get_logger
from jmsjca.outbound.unit_of_work import CurrentUnit, UnitOfWork
from jmsjca.transactions.broker_data_manager import (
    BrokerDataManager,
    JoinedTransaction,
    join_data_manager,
    joined_data_manager,
)
from jmsjca.transactions.locators import TransactionLocator, current_transaction, find_locator

__all__ = ["ConnectionEnlistment", "kept_in_transaction", "resolve_locator"]

logger = get_logger("jmsjca.transactions")


def resolve_locator(locator: TransactionLocator | str) -> TransactionLocator:
    """Return a locator, given as a function or by its name.

    Raises:
        InvalidOptionError: There is no locator of that name.
    """
    return find_locator(locator) if isinstance(locator, str) else locator


def kept_in_transaction(locator: TransactionLocator, key: object, record: Callable[[object], object]) -> object | None:
    """Return the connection that was closed in the caller's transaction and is kept for it, or None.

    Args:
        locator: Finds the transaction.
        key: The key under which the connection is kept.
        record: As for `ConnectionEnlistment.take_kept`.
    """
    transaction = current_transaction(locator)
    found = None if transaction is None else joined_data_manager(transaction)
    return found.enlistment.take_kept(key, record) if isinstance(found, _JoinedUnit) else None


class _Kept(NamedTuple):
    key: object
    thing: object
    release: Callable[[], None]


class ConnectionEnlistment:
    """Joins the sessions of one connection to transactions. All of them share one unit in each transaction.

    Args:
        connection: The provider's connection.
        locator: Finds the caller's transaction.
        emulates: True to commit the unit in the second phase, after the votes of all data managers.
    """

    def __init__(self, connection: spi.Connection, locator: TransactionLocator, *, emulates: bool = False) -> None:
        self.connection = connection
        self._locator = locator
        self._emulates = emulates
        self._lock = Lock()
        self._open: set[_JoinedUnit] = set()
        self._kept: _Kept | None = None

    @property
    def emulates(self) -> bool:
        """True if the sessions may end their unit before the transaction does."""
        return self._emulates

    @property
    def is_inside(self) -> bool:
        """True if the caller is in a transaction."""
        return current_transaction(self._locator) is not None

    def unit(self) -> "_JoinedUnit | None":
        """Return the unit in the caller's transaction, which it joins if it has not; None outside of one.

        Raises:
            IllegalStateError: Another connection has joined the transaction.
            NotSupportedError: The broker does not commit units atomically.
        """
        transaction = current_transaction(self._locator)
        if transaction is None:
            return None
        found = joined_data_manager(transaction)
        if isinstance(found, _JoinedUnit) and found.enlistment is self:
            return found
        self._abort_forgotten()
        unit = _EmulatedUnit(self, transaction) if self._emulates else _JoinedUnit(self, transaction)
        join_data_manager(unit, self.connection, transaction)
        with self._lock:
            self._open.add(unit)
        return unit

    def keep(self, key: object, kept: object, release: Callable[[], None]) -> None:
        """Call a function when all joined transactions of the connection are over; at once if no one is open.

        Args:
            key: Identifies the users of the connection that may go on with it in the same transaction.
            kept: The connection for them, which `take_kept` returns; then ``release`` is not called.
            release: The function.
        """
        self._abort_forgotten()
        with self._lock:
            if self._open:
                self._kept = _Kept(key, kept, release)
                return
        release()

    def take_kept(self, key: object, record: Callable[[object], object]) -> object | None:
        """Return what is kept under a key, for further use; None if nothing is.

        Args:
            key: The key.
            record: Called with it before it is taken, so that no exception of a signal handler can lose it.
        """
        with self._lock:
            kept = self._kept
            if kept is None or kept.key != key:
                return None
            record(kept.thing)
            self._kept = None
        return kept.thing

    def _abort_forgotten(self) -> None:
        """Abort the units that a signal handler kept from the end of their transactions, which are over."""
        with self._lock:
            forgotten = [unit for unit in self._open if unit.is_forgotten]
        for unit in forgotten:
            with suppress(JMSError):  # the connection has lost the unit, and therefore its messages
                unit.abort(unit.transaction)

    def end(self, unit: "_JoinedUnit") -> None:
        """Forget a unit after its transaction, and release what was kept for it. Idempotent."""
        with self._lock:
            self._open.discard(unit)
            kept, self._kept = (None, self._kept) if self._open else (self._kept, None)
        if kept is not None:
            try:
                kept.release()
            except JMSError as error:  # the transaction has ended, whatever becomes of the connection
                logger.info("A connection that a transaction had kept could not be closed: %s", error)


class _JoinedUnit(BrokerDataManager):
    """The unit of a connection in one transaction: its vote commits it, as the last one."""

    def __init__(self, enlistment: ConnectionEnlistment, transaction: JoinedTransaction) -> None:
        self.current = CurrentUnit(partial(UnitOfWork.begin, enlistment.connection))
        self.enlistment = enlistment
        self.transaction = transaction
        self.is_over = False
        super().__init__(self.current)

    @property
    def is_forgotten(self) -> bool:
        """True if the transaction is over, and has neither committed nor aborted the unit."""
        return not self.is_over and joined_data_manager(self.transaction) is not self

    def commit(self, _transaction: JoinedTransaction) -> None:
        """Prepare to commit: nothing reaches the broker before the vote.

        Raises:
            TransactionRolledBackError: ``set_rollback_only()`` was called on a received message.
        """
        if self.current.unit is not None and self.current.unit.rollback_only:
            raise TransactionRolledBackError(
                "The transaction was rolled back: one of its received messages demanded it (set_rollback_only)."
            )

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Finish: the vote has committed, or the database has decided to."""
        try:
            super().tpc_finish(_transaction)
        finally:
            self._finish()

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has ended the unit."""
        try:
            super().abort(_transaction)
        finally:
            self._finish()

    def _finish(self) -> None:
        self.is_over = True
        self.enlistment.end(self)


class _EmulatedUnit(_JoinedUnit):
    """A unit that takes part in the second phase only: a failure leaves the other data managers committed."""

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Vote for the commit without asking the broker."""

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Commit.

        Raises:
            TransactionRolledBackError: The broker rolled back; the other data managers have committed.
            TransactionInDoubtError: The broker may or may not have committed; the others have.
        """
        try:
            super().tpc_vote(_transaction)
        finally:
            self._finish()
