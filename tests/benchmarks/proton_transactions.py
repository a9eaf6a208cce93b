"""Proton's own `MessagingHandler` in transactions, as the examples that come with it have them.

Its sender commits without a look at what the broker said to the messages; some brokers then commit without those that
they refused. That is cheaper than to wait for it, as a unit does.
"""

from typing import Any

from proton.handlers import TransactionHandler

from tests.benchmarks.proton_loops import BATCH, BODY, HandlerReceives, HandlerSends

__all__ = ["AtomicHandlerReceives", "AtomicHandlerSends"]


class _InTransactions(TransactionHandler):
    """One transaction after the other; what is to be done in each is the other half's."""

    transaction: Any = None
    _inside = 0  # messages of the transaction

    def on_connection_opened(self, event: Any) -> None:
        super().on_connection_opened(event)  # type: ignore[misc]
        self._declare(event)

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction, self._inside = event.transaction, 0
        self.proceed(event)

    def on_transaction_committed(self, event: Any) -> None:
        for _ in range(self._inside):
            self.count(event)  # type: ignore[attr-defined]
        if self.figures is None:  # type: ignore[attr-defined]
            self._declare(event)

    def proceed(self, event: Any) -> None:
        """Go on in the transaction, as far as that goes."""
        raise NotImplementedError

    def note(self) -> None:
        """Note a message of the transaction; the last one ends it."""
        self._inside += 1
        if self._inside == BATCH:
            self.transaction.commit()
            self.transaction = None

    def _declare(self, event: Any) -> None:
        event.container.declare_transaction(event.connection, handler=self, settle_before_discharge=True)


class AtomicHandlerSends(_InTransactions, HandlerSends):
    def on_sendable(self, event: Any) -> None:
        self.proceed(event)

    def on_accepted(self, event: Any) -> None:
        """The end of the transaction counts."""

    def proceed(self, event: Any) -> None:
        while self.transaction and self._link.credit:
            self.transaction.send(self._link, self.message())
            self._sent += 1
            self.note()


class AtomicHandlerReceives(_InTransactions, HandlerReceives):
    """Asks for the messages of a transaction when that has begun: more would be handed over while none is open."""

    def __init__(self, url: str, queue: str, count: int) -> None:
        super().__init__(url, queue, count, 0, auto_accept=False)

    def on_message(self, event: Any) -> None:
        assert len(event.message.body) == len(BODY)
        self.transaction.accept(event.delivery)
        self.note()

    def proceed(self, event: Any) -> None:
        self._link.flow(BATCH)
