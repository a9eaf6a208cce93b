"""Queue browsers."""

from collections.abc import Iterator, Sequence
from itertools import chain

from jmsjca import spi
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError
from jmsjca.messages.message import Message
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.session_lock import SessionLock

__all__ = ["QueueBrowser"]


class QueueBrowser(Closeable):
    """Iterable over the messages that wait in a queue, without consuming them (JMS 3.1, section 4.1.6).

    `Session.create_browser` creates it; like its session it is for one thread at a time. Each iteration browses the
    queue from its beginning. A message that cannot be decoded raises `MessageFormatError` at its position; the same
    iterator can then continue with the next message.

    Args:
        connection: The provider's connection.
        queue: The queue to browse.
        selector: Only matching messages are returned; needs the capability ``selectors``.
        lock: The lock of the session.

    Raises:
        InvalidDestinationError: The broker cannot browse the queue.
        InvalidSelectorError: The selector is invalid.
    """

    def __init__(self, connection: spi.Connection, queue: Queue, selector: str | None, lock: SessionLock) -> None:
        self._connection = connection
        self._lock = lock
        self._closed = False
        self._queue = queue
        self._selector = selector
        for _ in connection.browse(queue, selector=selector, limit=0):  # asks the broker, without reading a message
            pass

    @property
    def closed(self) -> bool:
        """True once the browser or its session is closed."""
        return self._closed or self._lock.closed

    @property
    def queue(self) -> Queue:
        """The browsed queue."""
        self._check_open()
        return self._queue

    @property
    def selector(self) -> str | None:
        """Only matching messages are returned; None for all."""
        self._check_open()
        return self._selector

    def close(self) -> None:
        """Close the browser. Idempotent."""
        self._closed = True

    def __iter__(self) -> Iterator[Message]:
        with self._lock:
            self._check_open()
            chunks = iter(self._connection.browse(self._queue, selector=self._selector))
        # Unlike a generator, a map continues after an exception: an undecodable message does not hide later ones.
        return map(_message, chain.from_iterable(self._locked(chunks)))

    def _locked(self, chunks: Iterator[Sequence[spi.Delivery]]) -> Iterator[Sequence[spi.Delivery]]:
        while True:
            with self._lock:
                self._check_open()
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    def _check_open(self) -> None:
        self._lock.check_open()
        if self._closed:
            raise IllegalStateError("The browser is closed; create another one with session.create_browser(…).")


def _message(delivery: spi.Delivery) -> Message:
    return delivery.message
