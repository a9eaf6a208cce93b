"""The pool to which the producers of a session return when they are closed (option ``JMSJCA.producerpooling``)."""

from collections.abc import Iterator

from jmsjca.destinations import Destination

__all__ = ["ProducerPool"]

_MOST_IDLE = 100


class ProducerPool:
    """The closed producers of a session that its next producers continue, at most one for each destination.

    At the broker, a producer is its sequence of message ids: all else, such as the link to the destination, belongs to
    the connection. The next producer is another object, with the default options, so that neither the options of the
    closed object nor a use of it reach the next one. When the pool is full, the producer closed first is dropped.

    Args:
        most: The maximum number of producers.
    """

    def __init__(self, most: int = _MOST_IDLE) -> None:
        self._most = most
        self._idle: dict[Destination | None, Iterator[str]] = {}

    def take(self, destination: Destination | None) -> Iterator[str] | None:
        """Remove the producer of a destination from the pool, and return its message ids; None without one."""
        return self._idle.pop(destination, None)

    def put(self, destination: Destination | None, message_ids: Iterator[str]) -> None:
        """Store a closed producer, unless its destination is temporary: a later one of that name is another one.

        Args:
            destination: The destination; None for a producer that names one in each send.
            message_ids: The message ids of its next sends.
        """
        if destination is not None and destination.temporary:
            return
        self._idle.pop(destination, None)
        self._idle[destination] = message_ids
        if len(self._idle) > self._most:
            del self._idle[next(iter(self._idle))]

    def clear(self) -> None:
        """Drop all producers: their session is closed."""
        self._idle.clear()

    def __len__(self) -> int:
        return len(self._idle)
