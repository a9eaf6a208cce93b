"""Receipts: who waits for which."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from itertools import count

from jmsjca.errors import ConnectionLostError, JMSError

__all__ = ["ReceiptWait", "Receipts"]


class ReceiptWait:
    """Ends when every receipt has come, or with the connection.

    Args:
        receipts: The ids; one may stand there several times.
    """

    def __init__(self, receipts: Sequence[str]) -> None:
        self.outstanding = len(receipts)
        self.receipts = frozenset(receipts)
        self._result: Future[None] = Future()

    def result(self, timeout: float) -> None:
        """Wait.

        Raises:
            ConnectionLostError: The connection was lost before, or so many seconds passed.
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
        """End it with an error."""
        if not self._result.done():
            self._result.set_exception(error)


class Receipts:
    """The receipts of one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[str, ReceiptWait] = {}
        self._unanswered = 0
        self._lost: JMSError | None = None
        self._numbers = count(1)

    @property
    def unanswered(self) -> int:
        """How many waits have not ended with a receipt; what is forgotten may still be answered, and counts."""
        with self._lock:
            return self._unanswered

    def new_id(self) -> str:
        """Give an id that nobody waits for yet."""
        return str(next(self._numbers))

    def expect(self, *receipts: str) -> ReceiptWait:
        """Wait for receipts, before they are asked for.

        Raises:
            ConnectionLostError: There is no connection any more.
        """
        wait = ReceiptWait(receipts)
        with self._lock:
            if self._lost is not None:
                raise ConnectionLostError(str(self._lost)) from self._lost
            self._waits.update(dict.fromkeys(receipts, wait))
            self._unanswered += 1
        return wait

    def forget(self, wait: ReceiptWait) -> None:
        """Let nobody wait for these receipts any more."""
        with self._lock:
            for receipt in wait.receipts:
                self._waits.pop(receipt, None)

    def on_receipt(self, receipt: str) -> None:
        """Take a receipt; one that nobody waits for is ignored."""
        with self._lock:
            wait = self._waits.get(receipt)
            if wait is not None:
                wait.on_receipt()
                if not wait.outstanding:
                    self._unanswered -= 1

    def fail(self, error: JMSError) -> None:
        """Let everybody know, now and later, that no more receipts come."""
        with self._lock:
            self._lost = error
            for wait in set(self._waits.values()):
                wait.fail(error)
            self._waits.clear()
