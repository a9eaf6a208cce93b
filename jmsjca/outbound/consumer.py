"""Message consumers of sessions."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from threading import RLock
from time import monotonic
from typing import TypeVar

from jmsjca import spi
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError
from jmsjca.messages import Message
from jmsjca.outbound.connection_state import Closeable, ConnectionState
from jmsjca.outbound.session_mode import SessionMode

__all__ = ["MessageConsumer"]

T = TypeVar("T")


class MessageConsumer(Closeable):
    """Made by `Session.create_consumer` and its like (JMS 3.1, chapter 8); for one thread at a time, as its session.

    Iterating over it waits for one message after the other, and ends when the consumer is closed.

    Args:
        provider_consumer: The provider's consumer.
        mode: What the session does with what is received.
        state: Whether the connection is started.
        prefetch: How many messages are taken ahead.
        selector: What it was made with.

    Attributes:
        selector: Only messages that match are received; None for all.
        closed: True once it was closed.
    """

    def __init__(
        self,
        provider_consumer: spi.Consumer,
        mode: SessionMode,
        state: ConnectionState,
        *,
        prefetch: int,
        selector: str | None,
    ) -> None:
        self._consumer = provider_consumer
        self._mode = mode
        self._lock = mode.lock
        self._state = state
        self._prefetch = prefetch
        self._prefetched: deque[spi.Delivery] = deque()
        self._receiving = RLock()  # held where messages are waited for: who closes the consumer waits for that
        self._handing_over = RLock()  # held where one is handed over: so does who closes, and who stops the connection
        self._woken = False
        self.selector = selector
        self.closed = False

    def receive(self, timeout: float | None = None) -> Message | None:
        """Receive the next message (JMS 3.1, section 8.5).

        Args:
            timeout: Seconds to wait; None waits for ever, 0 does not wait.

        Returns:
            The message; None if none came in time, or if the consumer was closed meanwhile by another thread.

        Raises:
            IllegalStateError: The consumer is closed, or another thread uses its session.
            MessageFormatError: The message cannot be decoded. Under `AcknowledgeMode.AUTO` and ``DUPS_OK`` it comes
                again, counted; otherwise it was received and is settled with the others.
        """
        return self._receive(timeout, self._take)

    def receive_no_wait(self) -> Message | None:
        """Receive the next message if it is there; None if it is not."""
        return self._receive(0, self._take)

    def receive_body(self, kind: type[T], timeout: float | None = None) -> T | None:
        """Receive the body of the next message (JMS 3.1, section 8.6).

        Args:
            kind: The type asked for, as in `Message.get_body`.
            timeout: Seconds to wait; None waits for ever, 0 does not wait.

        Returns:
            The body; None if no message came in time.

        Raises:
            MessageFormatError: The body is of another type, or there is none. Under `AcknowledgeMode.AUTO` and
                ``DUPS_OK`` the message was not received then: it is still the next one. Otherwise it was.
        """
        return self._receive(timeout, partial(self._take_body, kind))

    def receive_if(
        self,
        accept: Callable[[Message | MessageFormatError], bool],
        given_up: Callable[[], bool],
        timeout: float | None,
    ) -> None:
        """Show the next message to somebody who may refuse it: then it is still the next one. For `jmsjca.aio`.

        Args:
            accept: Called once with the message, or with the error if it cannot be decoded; True receives it.
            given_up: True once nobody waits any more; whoever makes it true calls `interrupt`.
            timeout: Seconds to wait for a message; None waits for ever, 0 does not wait.
        """
        self._receive(timeout, partial(self._take_if, accept), lambda: self._ended() or given_up())

    def discard_prefetched(self) -> None:
        """Forget what was taken ahead: to keep the order, a rollback has taken it back. For the session."""
        self._prefetched.clear()

    def return_prefetched(self) -> None:
        """Let what was taken ahead come again, if it did not go back already. For the session."""
        ahead = [*self._prefetched]
        self._prefetched.clear()
        with suppress(JMSError):
            self._consumer.release(ahead)

    def interrupt(self) -> None:
        """Let a waiting `receive` look again whether it may go on. For the session."""
        self._woken = True
        self._consumer.wake()
        self._state.notify()

    def pause(self) -> None:
        """Return when no message is being handed over any more: the connection is stopped. For the session."""
        self.interrupt()
        with self._handing_over:
            pass

    def close(self) -> None:
        """Give back what was taken ahead; what was received stays with the session (JMS 3.1, section 8.8).

        Another thread may call it: a waiting `receive` returns None, and this returns after it.
        """
        if not self.closed and not self._lock.fork_guard.in_child:
            self.closed = True
            self.interrupt()
            with self._receiving:
                pass  # nobody waits any more
            with self._handing_over:
                self._prefetched.clear()
            self._consumer.close()

    def __iter__(self) -> Iterator[Message]:
        while not self.closed and (message := self.receive()) is not None:
            yield message

    def _receive(
        self, timeout: float | None, hand_over: Callable[[], T], ended: Callable[[], bool] | None = None
    ) -> T | None:
        with self._lock:
            if self.closed:
                raise IllegalStateError("The consumer is closed.")
            deadline = None if timeout is None else monotonic() + timeout
            while True:
                with self._handing_over:
                    if self._prefetched and self._state.started and not self._ended():
                        return hand_over()
                with self._receiving:
                    if not self._refill(deadline, ended or self._ended):
                        return None

    def _refill(self, deadline: float | None, ended: Callable[[], bool]) -> bool:
        """Take messages ahead, once the connection is started; False if there is nothing more to wait for."""
        if ended() or not self._state.wait(_left(deadline), ended):
            return False
        if not self._prefetched:
            self._mode.on_prefetch_empty()
            self._prefetched.extend(self._consumer.receive(self._prefetch, _left(deadline)))
        woken, self._woken = self._woken, False
        return bool(self._prefetched) or woken or _left(deadline) != 0

    def _take(self) -> Message:
        return self._mode.take(self._prefetched.popleft(), self)

    def _take_if(self, accept: Callable[[Message | MessageFormatError], bool]) -> None:
        if accept(_decoded(self._prefetched[0])):
            with suppress(MessageFormatError):  # it was shown
                self._take()

    def _take_body(self, kind: type[T]) -> T:
        first = _decoded(self._prefetched[0]) if self._mode.automatic else None
        if isinstance(first, Message):
            first.get_body(kind)  # refused before it is received: it stays the next one
        return self._take().get_body(kind)

    def _ended(self) -> bool:
        return self.closed or self._lock.closed


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - monotonic(), 0)


def _decoded(delivery: spi.Delivery) -> Message | MessageFormatError:
    try:
        return delivery.message
    except MessageFormatError as error:
        return error
