"""Queue browsers."""

from collections.abc import Iterator, Sequence
from itertools import chain

from jmsjca import spi
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.session_lock import SessionLock

__all__ = ["QueueBrowser"]


class QueueBrowser(Closeable):
    """Made by `Session.create_browser` (JMS 3.1, section 4.1.6); for one thread at a time, as its session.

    Each iteration looks at the queue anew. A message that cannot be decoded raises `MessageFormatError` in its turn;
    the iterator can go on after it.

    Args:
        connection: The provider's connection.
        queue: What to look at.
        selector: Only messages that match; needs the capability ``selectors``.
        lock: The session's.

    Attributes:
        queue: What it looks at.
        selector: Only messages that match; None for all.
    """

    def __init__(self, connection: spi.Connection, queue: Queue, selector: str | None, lock: SessionLock) -> None:
        self._connection = connection
        self._lock = lock
        self._closed = False
        self.queue = queue
        self.selector = selector

    def close(self) -> None:
        """Look no more. Closing twice does nothing."""
        self._closed = True

    def __iter__(self) -> Iterator[Message]:
        with self._lock:
            self._check_open()
            found = iter(self._connection.browse(self.queue, selector=self.selector))
        # A map goes on after an exception: a message that cannot be decoded does not hide those behind it.
        return map(_message, chain.from_iterable(self._chunks(found)))

    def _chunks(self, found: Iterator[Sequence[spi.Delivery]]) -> Iterator[Sequence[spi.Delivery]]:
        while True:
            with self._lock:
                self._check_open()
                chunk = next(found, None)
            if chunk is None:
                return
            yield chunk

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("The browser is closed.")


def _message(delivery: spi.Delivery) -> Message:
    return delivery.message
