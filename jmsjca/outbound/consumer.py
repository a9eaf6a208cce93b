"""A message consumer of a session."""

from collections import deque
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message
from jmsjca.outbound.closing import Closing

if TYPE_CHECKING:
    from jmsjca.outbound.session import Session

__all__ = ["MessageConsumer"]


class MessageConsumer(Closing):
    """Made by `Session.create_consumer`.

    Args:
        session: Whose unit takes what is received.
        supplier: The provider's consumer.
        running: Set while the connection is started.
        prefetch: How many messages are taken ahead.
    """

    def __init__(self, session: "Session", supplier: spi.Consumer, running: Event, prefetch: int) -> None:
        self._session = session
        self._supplier = supplier
        self._running = running
        self._prefetch = prefetch
        self._prefetched: deque[spi.Delivery] = deque()
        self._in_unit = False
        self.closed = False

    def receive(self, timeout: float | None = None) -> Message | None:
        """Receive the next message.

        Args:
            timeout: Seconds to wait; None waits for ever, 0 does not wait.

        Returns:
            The message; None if none came in time, or if the consumer was closed meanwhile.

        Raises:
            IllegalStateError: The consumer is closed.
            MessageFormatError: The message cannot be decoded; it stays unacknowledged.
        """
        if self.closed:
            raise IllegalStateError("The consumer is closed.")
        if not self._prefetched:
            self._prefetched.extend(self._fetch(timeout))
        if not self._prefetched:
            return None
        self._in_unit = True
        return self._session.take(self._prefetched.popleft())

    def unit_ended(self, *, rolled_back: bool) -> None:
        """Learn of the end of the session's unit. For the session.

        A rollback took back what was taken ahead too, to keep the order: but only if the unit had taken something
        from here.
        """
        if rolled_back and self._in_unit:
            self._prefetched.clear()
        self._in_unit = False

    def close(self) -> None:
        """Give back what was taken ahead. What the session's unit took stays with the unit."""
        if not self.closed:
            self.closed = True
            self._prefetched.clear()
            self._supplier.close()

    def _fetch(self, timeout: float | None) -> list[spi.Delivery]:
        deadline = None if timeout is None else monotonic() + timeout
        if not self._running.wait(timeout):
            return []
        left = None if deadline is None else max(deadline - monotonic(), 0)
        return list(self._supplier.receive(self._prefetch, left))
