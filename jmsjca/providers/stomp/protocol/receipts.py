"""Receipts, and the threads that wait for them."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from itertools import count

from jmsjca.errors import ConnectionLostError, JMSError

__all__ = ["ReceiptWait", "Receipts"]


class ReceiptWait:
    """Wait for several receipts. It ends when all have arrived, or with the connection.

    Args:
        receipts: The ids; an id may be listed several times.
    """

    def __init__(self, receipts: Sequence[str]) -> None:
        self.outstanding = len(receipts)
        self.receipts = frozenset(receipts)
        self._result: Future[None] = Future()

    def result(self, timeout: float) -> None:
        """Wait until all receipts have arrived.

        Raises:
            ConnectionLostError: The connection was lost, or `timeout` seconds passed.
        """
        try:
            self._result.result(timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError(f"The broker did not answer within {timeout:g} seconds.") from error

    def on_receipt(self) -> None:
        """Count one receipt."""
        self.outstanding -= 1
        if not self.outstanding:
            self._result.set_result(None)

    def fail(self, error: JMSError) -> None:
        """End the wait with an error."""
        if not self._result.done():
            self._result.set_exception(error)


class Receipts:
    """The receipts that are awaited on one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[str, ReceiptWait] = {}
        self._unanswered = 0
        self._lost: JMSError | None = None
        self._numbers = count(1)

    @property
    def unanswered(self) -> int:
        """Number of waits that no receipt has ended. Forgotten ones count: their receipts may still arrive."""
        with self._lock:
            return self._unanswered

    def new_id(self) -> str:
        """Return a new receipt id."""
        return str(next(self._numbers))

    def expect(self, *receipts: str) -> ReceiptWait:
        """Register a wait for receipts, before they are requested.

        Raises:
            ConnectionLostError: The connection has ended.
        """
        wait = ReceiptWait(receipts)
        with self._lock:
            if self._lost is not None:
                raise ConnectionLostError(str(self._lost)) from self._lost
            self._waits.update(dict.fromkeys(receipts, wait))
            self._unanswered += 1
        return wait

    def forget(self, wait: ReceiptWait) -> None:
        """Discard the receipts of a wait."""
        with self._lock:
            for receipt in wait.receipts:
                self._waits.pop(receipt, None)

    def on_receipt(self, receipt: str) -> None:
        """Handle a receipt. One that is not awaited is ignored."""
        with self._lock:
            wait = self._waits.get(receipt)
            if wait is not None:
                wait.on_receipt()
                if not wait.outstanding:
                    self._unanswered -= 1

    def fail(self, error: JMSError) -> None:
        """Fail all present and future waits: the connection has ended."""
        with self._lock:
            self._lost = error
            for wait in set(self._waits.values()):
                wait.fail(error)
            self._waits.clear()
