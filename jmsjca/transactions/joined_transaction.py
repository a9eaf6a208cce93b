"""The parts of the `transaction` package that this room uses: a transaction, and the manager that holds it."""

from typing import Any, Protocol, TypeAlias, cast

__all__ = [
    "JoinedTransaction",
    "JoinedTransactionManager",
    "TransactionSource",
    "is_in_doubt",
    "mark_in_doubt",
    "transaction_of",
]

_IN_DOUBT = object()


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
    transaction.set_data(_IN_DOUBT, True)


def is_in_doubt(transaction: JoinedTransaction) -> bool:
    """Return True if the broker has committed or may have committed."""
    try:
        return bool(transaction.data(_IN_DOUBT))
    except KeyError:
        return False
