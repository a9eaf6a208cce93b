"""The data manager of a unit of work: commits its receipts and sends last when a transaction commits."""

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.spi import Connection, TwoPhaseConnection, Xid

if TYPE_CHECKING:  # the module needs SQLAlchemy
    from jmsjca.transactions.last_resource import Decision, LastResource

__all__ = [
    "BrokerDataManager",
    "Database",
    "EndableUnit",
    "JoinedTransaction",
    "JoinedTransactionManager",
    "TransactionSource",
    "decider_of",
    "is_in_doubt",
    "join_data_manager",
    "join_database",
    "join_unit",
    "joined_data_manager",
    "mark_in_doubt",
    "transaction_of",
]

_KEY, _DATABASES, _MARK = object(), object(), object()
_IN_DOUBT = (
    "The database sessions of the transaction are committed. If the broker has not committed, it redelivers the "
    "received messages: an inbox recognises them, and sends again what their handlers have sent. Without one, let the "
    "handler recognise its own rows."
)


class JoinedTransaction(Protocol):
    """A transaction of the `transaction` package: `transaction.TransactionManager().begin()` returns one."""

    def join(self, resource: Any) -> None:
        """Add a data manager."""
        ...

    def data(self, ob: object) -> Any:
        """Return what `set_data` stored for an object. `KeyError` if it stored nothing."""
        ...

    def set_data(self, ob: object, ob_data: Any) -> None:
        """Store data for an object until the transaction ends."""
        ...


class JoinedTransactionManager(Protocol):
    """A manager of the `transaction` package, such as the parameter ``transaction`` of a handler."""

    def get(self) -> Any:
        """Return the current transaction."""
        ...

    def doom(self) -> Any:
        """Mark the transaction for rollback."""
        ...


TransactionSource: TypeAlias = JoinedTransaction | JoinedTransactionManager
"""A transaction, or the manager that holds it."""


def transaction_of(source: TransactionSource) -> JoinedTransaction:
    """Return a transaction, or the current one of a manager."""
    get = getattr(source, "get", None)
    return cast("JoinedTransaction", source if get is None else get())


def mark_in_doubt(transaction: JoinedTransaction) -> None:
    """Record that the broker has committed or may have committed."""
    transaction.set_data(_MARK, True)


def is_in_doubt(transaction: JoinedTransaction) -> bool:
    """Return True if the broker has committed or may have committed."""
    return bool(_data(transaction, _MARK))


class Database(Protocol):
    """The data manager of a database.

    Attributes:
        decision: About the prepared unit of the broker; the commit of the database makes it.
    """

    decision: "Decision | None"

    def has_decisions_of(self, last_resource: "LastResource") -> bool:
        """Return True if the database has the decisions about prepared units."""
        ...


def join_database(manager: Database, transaction: JoinedTransaction) -> None:
    """Join the data manager of a database to a transaction."""
    transaction.join(manager)
    transaction.set_data(_DATABASES, [*_data(transaction, _DATABASES, ()), manager])


def decider_of(transaction: JoinedTransaction | None) -> Database | None:
    """Return the data manager of the database that decides, because its commit has the decision in a row.

    Returns:
        None if the broker commits as the last one, in one phase.
    """
    broker = None if transaction is None else joined_data_manager(transaction)
    if transaction is None or broker is None or broker.last_resource is None:
        return None
    last_resource = broker.last_resource
    return next((m for m in _data(transaction, _DATABASES, ()) if m.has_decisions_of(last_resource)), None)


def _data(transaction: JoinedTransaction, key: object, default: Any = None) -> Any:
    try:
        return transaction.data(key)
    except KeyError:
        return default


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
    if getattr(connection, "qualifier", None) is not None:
        manager.last_resource = cast("TwoPhaseConnection", connection).decider
    manager.joined = joined
    joined.join(manager)
    joined.set_data(_KEY, manager)


def joined_data_manager(transaction: JoinedTransaction) -> "BrokerDataManager | None":
    """Return the data manager of the unit that has joined a transaction; None if none has."""
    found: BrokerDataManager | None = _data(transaction, _KEY)
    return found


class BrokerDataManager:
    """Commits a unit as its vote, after the votes of all databases; or prepares it before, and lets a database decide.

    It has no method ``savepoint``, because a unit cannot be rolled back in part. The transaction then makes an
    optimistic savepoint, and refuses all others.

    Args:
        unit: The unit of work.

    Attributes:
        joined: The transaction that it has joined.
        last_resource: The database that can decide the unit; None if the unit cannot be prepared.
    """

    transaction_manager: Any = None
    joined: JoinedTransaction | None = None
    last_resource: "LastResource | None" = None
    _decider: Database | None = None
    _decision: "Decision | None" = None  # about the prepared unit

    def __init__(self, unit: EndableUnit) -> None:
        self._unit = unit
        self._is_ended = False

    def sortKey(self) -> str:  # noqa: N802  # the name in the transaction package
        """Return the position among the data managers: the last, or the first if a database decides."""
        self._decider = decider_of(self.joined)
        return "~~jmsjca" if self._decider is None else "!jmsjca"

    def tpc_begin(self, _transaction: JoinedTransaction) -> None:
        """Begin to commit: nothing to do."""

    def commit(self, _transaction: JoinedTransaction) -> None:
        """Prepare to commit: nothing reaches the broker before the vote."""

    def tpc_vote(self, _transaction: JoinedTransaction) -> None:
        """Commit the unit. All databases have committed before, because this data manager is sorted last.

        If a database decides, prepare the unit instead.

        Raises:
            TransactionRolledBackError: The broker rolled back; the databases have committed, unless one decides.
            TransactionInDoubtError: The broker may or may not have committed; the databases have committed.
        """
        if self._decider is not None and self.last_resource is not None:
            xid: Xid | None = cast("Any", self._unit).prepare()
            if xid is not None:
                self._decision = self._decider.decision = self.last_resource.decision(xid)
            return
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
        """Finish: the vote has committed, or the database has decided to.

        Raises:
            TransactionRolledBackError: An operator has rolled the prepared unit back.
        """
        if not self._is_ended:
            self._is_ended = True
            self._unit.commit()

    def tpc_abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has ended the unit."""
        self.abort(_transaction)

    def abort(self, _transaction: JoinedTransaction) -> None:
        """Roll back, unless the vote has ended the unit, or the database has decided to commit."""
        if self._is_ended:
            return
        self._is_ended = True
        if self._decision is None or self._decision.commits is False:
            self._roll_back()
        else:
            mark_in_doubt(_transaction)
            if self._decision.commits:
                self._unit.commit()
            else:
                cast("Any", self._unit).abandon()

    def _roll_back(self) -> None:
        self._unit.rollback()
