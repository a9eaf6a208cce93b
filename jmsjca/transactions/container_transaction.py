"""A container-managed transaction: one unit of a listener, with its own transaction manager."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, ProviderNotInstalledError
from jmsjca.errors import TransactionInDoubtError as InDoubtError
from jmsjca.errors import TransactionRolledBackError as RolledBackError
from jmsjca.log_records import get_logger
from jmsjca.spi import Connection
from jmsjca.transactions.broker_data_manager import (
    BrokerDataManager,
    EndableUnit,
    JoinedTransaction,
    join_data_manager,
)
from jmsjca.transactions.locators import threads_manager

try:
    import transaction as package  # type: ignore[import-untyped]  # it has no annotations
    from transaction.interfaces import NoTransaction  # type: ignore[import-untyped]  # likewise
except ImportError as error:
    raise ProviderNotInstalledError(
        "transaction='required' needs the transaction package: pip install \"jmsjca[transactions]\"."
    ) from error

__all__ = ["ContainerTransaction", "ListenerUnit"]

logger = get_logger("jmsjca.transactions")


class ListenerUnit(EndableUnit, Protocol):
    """The unit of a listener."""

    def set_rollback_only(self) -> None:
        """Mark the unit for rollback."""
        ...


class ContainerTransaction:
    """The transaction of one unit. Only the listener ends it, on any thread.

    Each unit has its own manager. With one manager per thread, two asynchronous handlers on one event loop would commit
    each other's work.

    Args:
        unit: The unit of work.
        connection: The unit's connection.
        locator: The name of the locator that finds the thread's manager; None for ``transaction.manager``.

    Attributes:
        manager: The transaction manager of the unit.

    Raises:
        NotSupportedError: The broker does not commit units atomically.
    """

    def __init__(self, unit: ListenerUnit, connection: Connection, locator: str | None = None) -> None:
        self.manager: Any = package.TransactionManager(explicit=True)
        self._thread_local: Any = package.manager if locator is None else threads_manager(locator)
        self._data_manager = _ListenerDataManager(unit)
        self._transaction = self.manager.begin()
        join_data_manager(self._data_manager, connection, self._transaction)

    @property
    def is_doomed(self) -> bool:
        """True if the handler has called ``doom()``, which marks the transaction for rollback."""
        try:
            return bool(self.manager.isDoomed())
        except NoTransaction:  # the handler has aborted the transaction, which marked the unit for rollback
            return False

    @contextmanager
    def current(self) -> Generator[None]:
        """Make ``transaction.get()`` return this transaction on the current thread during the block."""
        thread_local = self._thread_local
        before, thread_local.manager = thread_local.manager, self.manager
        try:
            yield
        finally:
            thread_local.manager = before

    def commit(self) -> None:
        """Commit the databases, then the unit. An error of a data manager after the broker's commit is only logged.

        Raises:
            TransactionRolledBackError: A database or the broker did not commit. The received messages are redelivered.
                If the broker did not commit, or another data manager failed after the database, the work of the
                database is committed nevertheless.
            TransactionInDoubtError: The broker may or may not have committed; the databases have committed.
            ConnectionLostError: The connection was lost before the commit; the broker has not committed.
        """
        self._data_manager.is_ending = True
        try:
            with self.current():
                self.manager.commit()
        except Exception as error:
            if self._data_manager.failure is not None:
                raise self._data_manager.failure from error
            if self._data_manager.has_committed:
                logger.exception(
                    "A data manager failed after the broker had committed: the messages are settled, and those of the "
                    "handler are sent; what that data manager has not done is missing."
                )
                return
            if self._data_manager.has_voted or isinstance(error, (ConnectionLostError, RolledBackError, InDoubtError)):
                raise
            raise RolledBackError(f"The transaction was rolled back: {type(error).__name__}: {error}") from error
        finally:
            self.abandon()

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll back the databases and the unit.

        Args:
            delay: Seconds until the received messages are redelivered.

        Raises:
            ConnectionLostError: The connection is lost; the databases are rolled back.
            Exception: The unit could not be rolled back, for lack of memory: its messages stay held until its
                connection is closed.
        """
        self._data_manager.delay = delay
        self._abort()
        if self._data_manager.failure is not None:
            raise self._data_manager.failure

    def abandon(self) -> None:
        """Roll back what is still open. No effect once the transaction has ended."""
        with suppress(JMSError):  # on a lost connection the broker redelivers
            self._abort()

    def _abort(self) -> None:
        self._data_manager.is_ending = True
        try:
            with self.current(), suppress(NoTransaction):
                self.manager.abort()
        except JMSError:
            raise
        except Exception as error:  # noqa: BLE001  # data managers are the application's
            logger.warning("A data manager could not be rolled back: %r", error)
        finally:
            self._data_manager.abort(self._transaction)


class _ListenerDataManager(BrokerDataManager):
    """Refuses a commit, and only marks the unit for rollback on abort, until the listener ends the transaction.

    Attributes:
        is_ending: True once the listener ends the transaction.
        has_voted: True once the unit has been committed, or its commit has failed.
        has_committed: True once the unit has been committed.
        delay: Seconds until a rollback redelivers.
        failure: Why the unit could not be rolled back; the transaction may only log it.
    """

    def __init__(self, unit: ListenerUnit) -> None:
        super().__init__(unit)
        self._listener_unit = unit
        self.is_ending = self.has_voted = self.has_committed = False
        self.delay = 0.0
        self.failure: Exception | None = None

    def tpc_begin(self, _transaction: JoinedTransaction) -> None:
        """Begin to commit.

        Raises:
            IllegalStateError: The handler called ``commit`` itself.
        """
        if not self.is_ending:
            raise IllegalStateError(
                "The transaction belongs to a delivery: the handler's return commits it, its exception rolls it back. "
                "Call doom() to roll it back without an exception."
            )

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Commit or prepare the unit, as `BrokerDataManager` does."""
        self.has_voted = self._decider is None
        super().tpc_vote(_transaction)
        self.has_committed = self.has_voted

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Commit what was prepared."""
        self.has_voted = True
        super().tpc_finish(_transaction)
        self.has_committed = True

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, or mark the unit for rollback if the handler called ``abort``."""
        if self.is_ending:
            super().abort(_transaction)
            self.has_committed |= self._decision is not None and self._decision.commits is True
        elif not self._is_ended:
            self._listener_unit.set_rollback_only()

    def _roll_back(self) -> None:
        try:
            self._unit.rollback(delay=self.delay)
        except Exception as error:
            self.failure = error
            raise
