"""The parts of a transaction of the `transaction` package that the data managers of this room use."""

from typing import Any, Protocol

__all__ = ["JoinedTransaction"]


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
