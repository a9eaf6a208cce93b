"""The data manager of a unit of work: commits its receipts and sends last when a transaction commits."""

from typing import Any, Protocol

from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.spi import Connection
from jmsjca.transactions.joined_transaction import JoinedTransaction, TransactionSource, mark_in_doubt, transaction_of

__all__ = ["BrokerDataManager", "EndableUnit", "join_data_manager", "join_unit", "joined_data_manager"]

_KEY = object()
_IN_DOUBT = (
    "The database sessions of the transaction are committed. If the broker has not committed, it redelivers the "
    "received messages: an inbox recognises them, and sends again what their handlers have sent. Without one, let the "
    "handler recognise its own rows."
)


class EndableUnit(Protocol):
    """A unit of work, as a transaction ends it."""

    def commit(self) -> None:
        """Commit."""
        ...

    def rollback(self, *, delay: float = 0.0) -> None:
        """Roll back: the received messages are redelivered after ``delay`` seconds."""
        ...


def join_unit(unit: EndableUnit, connection: Connection, transaction: TransactionSource) -> None:
    """Join a unit of work to a transaction.

    Args:
        unit: The unit; only the transaction may commit it or roll it back.
        connection: The unit's connection.
        transaction: A transaction of the `transaction` package, or its manager, which no other unit has joined.

    Raises:
        NotSupportedError: The broker does not commit units atomically.
        IllegalStateError: Another unit has joined the transaction.
    """
    join_data_manager(BrokerDataManager(unit), connection, transaction)


def join_data_manager(manager: "BrokerDataManager", connection: Connection, transaction: TransactionSource) -> None:
    """Join an existing data manager of a unit to a transaction. `join_unit` creates the data manager itself.

    Args:
        manager: The data manager.
        connection: The unit's connection.
        transaction: As for `join_unit`.

    Raises:
        NotSupportedError: As `join_unit`.
        IllegalStateError: As `join_unit`.
    """
    if not connection.capabilities.atomic:
        raise NotSupportedError(
            "This broker does not commit units atomically (capability 'atomic'), so its units "
            "cannot join a transaction. Use local units."
        )
    joined = transaction_of(transaction)
    if joined_data_manager(joined) is not None:
        raise IllegalStateError(
            "Another unit of a broker has already joined the transaction. A transaction takes one broker connection: "
            "use one broker unit for each transaction. In a listener, send with the session of the handler."
        )
    joined.join(manager)
    joined.set_data(_KEY, manager)


def joined_data_manager(transaction: JoinedTransaction) -> "BrokerDataManager | None":
    """Return the data manager of the unit that has joined a transaction; None if none has."""
    try:
        found: BrokerDataManager = transaction.data(_KEY)
    except KeyError:
        return None
    return found


class BrokerDataManager:
    """Commits a unit as its vote, after the votes of all databases.

    It has no method ``savepoint``, because a unit cannot be rolled back in part. The transaction then makes an
    optimistic savepoint, and refuses all others.

    Args:
        unit: The unit of work.
    """

    transaction_manager: Any = None

    def __init__(self, unit: EndableUnit) -> None:
        self._unit = unit
        self._is_ended = False

    def sortKey(self) -> str:  # noqa: N802  # the name in the transaction package
        """Return the position among the data managers: the last."""
        return "~~jmsjca"

    def tpc_begin(self, _transaction: JoinedTransaction) -> None:
        """Begin to commit: nothing to do."""

    def commit(self, _transaction: JoinedTransaction) -> None:
        """Prepare to commit: nothing reaches the broker before the vote."""

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Commit the unit. All databases have committed before, because this data manager is sorted last.

        Raises:
            TransactionRolledBackError: The broker rolled back; the databases have committed.
            TransactionInDoubtError: The broker may or may not have committed; the databases have committed.
        """
        self._is_ended = True  # a failed commit has released the deliveries already
        try:
            self._unit.commit()
        except TransactionInDoubtError as error:
            mark_in_doubt(_transaction)
            raise TransactionInDoubtError(f"{error} {_IN_DOUBT}") from error
        except BaseException as error:
            if not isinstance(error, TransactionRolledBackError | ConnectionLostError):
                mark_in_doubt(_transaction)
            raise
        mark_in_doubt(_transaction)  # if a later step fails, prepared database work must not be rolled back

    def tpc_finish(self, _transaction: JoinedTransaction) -> None:
        """Finish: the vote has committed."""

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has ended the unit."""
        self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has ended the unit."""
        if not self._is_ended:
            self._is_ended = True
            self._unit.rollback()
