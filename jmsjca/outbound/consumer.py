"""Message consumers of sessions, and the prefetch buffer that they receive from."""

from collections import deque
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from threading import RLock
from time import perf_counter
from typing import Any, TypeVar, overload

from jmsjca import spi
from jmsjca.arguments import MAX_TIMEOUT, check_class, check_timeout, is_deferred
from jmsjca.config.settings import Deadline
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, NotSupportedError
from jmsjca.hooks import HookChain
from jmsjca.messages.message import Message
from jmsjca.messages.object_message import body_of
from jmsjca.outbound.connection_state import Closeable, ConnectionState
from jmsjca.outbound.message_listeners import ListenerDispatcher
from jmsjca.outbound.session_mode import MessageListener, SessionMode

__all__ = ["MessageConsumer", "ObservedReceiver", "PrefetchingReceiver", "limit_prefetch", "receive_delivery"]

T = TypeVar("T")


class PrefetchingReceiver:
    """Receives for one `MessageConsumer`: waits for messages, prefetches them and hands them over one by one.

    Args:
        consumer: The provider's consumer.
        mode: Acknowledges what is handed over.
        state: Whether the connection is started.
        prefetch: Maximum number of prefetched messages.

    Attributes:
        closed: True as soon as closing has begun.
        released: True once it has ended.
    """

    def __init__(self, consumer: spi.Consumer, mode: SessionMode, state: ConnectionState, prefetch: int) -> None:
        self._consumer = consumer
        self._mode = mode
        self._lock = mode.lock
        self._state = state
        self._prefetch = prefetch
        self._prefetched: deque[spi.Delivery] = deque()
        self._receiving = RLock()  # held while waiting for messages: `close` waits for it
        self._handing_over = RLock()  # held while a message is handed over: `close` and `pause` wait for it
        self._waking = RLock()  # held while the provider's consumer is woken
        self._wakeups = self._seen_wakeups = 0  # all of them; those before the latest receive
        self.closed = self.released = False
        state.add(self)

    def receive(
        self, timeout: float | None, hand_over: Callable[[], T], ended: Callable[[], bool] | None = None
    ) -> T | None:
        """Wait for a message and hand it over.

        Args:
            timeout: Seconds to wait; None waits forever, 0 does not wait.
            hand_over: Called under the locks once a message is prefetched: `take`, `take_if` or `take_body`.
            ended: Returns True to end the wait; None ends it when the consumer or the session is closed.

        Returns:
            The result of ``hand_over``; None if no message arrived in time or the wait was ended.

        Raises:
            IllegalStateError: The consumer is closed, or another thread uses its session.
            InvalidArgumentError: The timeout is no number of seconds, or negative.
            ConnectionLostError: The connection is lost, perhaps while it was stopped.
        """
        if timeout is not None and not (
            isinstance(timeout, (float, int))  # type: ignore[redundant-expr]  # a check; a call of it would take longer
            and 0 <= timeout <= MAX_TIMEOUT
        ):
            check_timeout("timeout", timeout)
        with self._lock:
            self.check_open()
            if self._mode.listening:
                raise IllegalStateError(
                    "This session has a message listener, so none of its consumers can receive synchronously "
                    "(JMS 3.1, section 6.2.5). Use another session, or remove the listener: set_message_listener(None)."
                )
            deadline: Deadline | None = None  # not needed if a message is prefetched already
            while True:
                with self._handing_over:
                    if self._prefetched and self._state.started and not self._ended():
                        return hand_over()
                deadline = deadline or Deadline(timeout)
                with self._receiving:
                    if not self._refill(deadline, ended or self._ended):
                        return None

    def check_open(self) -> None:
        """Raise an error if the consumer is closed.

        Raises:
            IllegalStateError: It is.
        """
        if self.closed:
            raise IllegalStateError("The consumer is closed; create another one with session.create_consumer(…).")

    def has_messages(self) -> bool:
        """Return True if there are prefetched messages."""
        return bool(self._prefetched)

    def fetch(self, ended: Callable[[], bool]) -> None:
        """Prefetch messages for a message listener, once the connection is started. Returns early if it is interrupted.

        Args:
            ended: Returns True to end the wait. Call `interrupt` after the change.

        Raises:
            JMSError: The consumer has ended.
        """
        with self._receiving:
            if self._state.wait(None, lambda: ended() or self._ended()) and not (ended() or self._ended()):
                self._receive_chunk(None)

    def hand_over(self, deliver: Callable[[spi.Delivery], None]) -> None:
        """Pass the first prefetched message, if any, to a message listener. `pause` and `close` wait for its return."""
        with self._handing_over:
            if self._prefetched and self._state.started and not self._ended():
                deliver(self._prefetched.popleft())

    def receive_if(
        self,
        accept: Callable[[Message | MessageFormatError], bool],
        abandoned: Callable[[], bool],
        timeout: float | None,
    ) -> None:
        """Offer the next message to a callback; if it is refused, it stays the next one.

        Args:
            accept: Called once with the message, or with the error if it cannot be decoded; returns True to receive it.
            abandoned: Returns True once the caller does not wait any more. Call `interrupt` after the change.
            timeout: Seconds to wait for a message; None waits forever, 0 does not wait.
        """
        self.receive(timeout, partial(self._take_if, accept), lambda: self._ended() or abandoned())

    def take(self) -> Message:
        """Return the first prefetched message, acknowledged as the session's mode says."""
        return self._mode.take(self._prefetched.popleft(), self)

    def take_delivery(self) -> tuple[Message | MessageFormatError, spi.Delivery]:
        """Return the first prefetched message, or the error if it cannot be decoded, with its delivery."""
        delivery = self._prefetched[0]
        try:
            return self.take(), delivery
        except MessageFormatError as error:
            return error, delivery

    def take_body(self, kind: type[T], allowed: AbstractSet[tuple[str, str]] | None) -> T:
        """Return the body of the first prefetched message.

        Raises:
            MessageFormatError: The body has another type. Under a mode that acknowledges automatically the message is
                not received then.
        """
        first = _decoded(self._prefetched[0]) if self._mode.automatic else None
        if not isinstance(first, Message):
            return body_of(self.take(), kind, allowed)
        body = body_of(first, kind, allowed)  # raises before the message is received: it stays the next one
        self.take()
        return body

    def limit_prefetch(self, messages: int) -> None:
        """Set the maximum number of messages that the next receive prefetches; see `MessageConsumer`."""
        self._prefetch = messages

    def discard_prefetched(self) -> None:
        """Forget all prefetched messages: a rollback has released them, to keep the order."""
        self._prefetched.clear()

    def return_prefetched(self) -> None:
        """Release the prefetched messages that are not released already."""
        prefetched = [*self._prefetched]
        self._prefetched.clear()
        with suppress(JMSError):
            self._consumer.release(prefetched)

    def interrupt(self) -> None:
        """Wake a waiting `receive`, so that it checks whether to continue."""
        with self._waking:
            self._wakeups += 1
            self._consumer.wake()
        self._state.notify()

    def pause(self) -> None:
        """Wait until no message is being handed over: the connection is stopped."""
        self.interrupt()
        with self._handing_over:
            pass

    def close(self) -> None:
        """Release the prefetched messages and close the provider's consumer. Waits for a receive of another thread."""
        if not self.released and not self._lock.fork_guard.in_child:  # a signal handler may have interrupted a close
            self.closed = True
            self._state.remove(self)
            self.interrupt()
            with self._receiving:
                pass  # no thread waits for messages any more
            with self._handing_over:
                self._prefetched.clear()
            self._consumer.close()
            self.released = True

    def _refill(self, deadline: Deadline, ended: Callable[[], bool]) -> bool:
        """Prefetch messages once the connection is started; return False if the wait is over."""
        if ended():
            return False
        if not self._state.wait_while_connected(deadline.remaining(), ended):
            if not ended():
                self._state.warn_if_never_started()
            return False
        if self._prefetched:
            return True
        self._mode.on_prefetch_empty()
        woken = self._receive_chunk(deadline.remaining())
        return bool(self._prefetched) or woken or deadline.remaining() != 0

    def _receive_chunk(self, timeout: float | None) -> bool:
        """Prefetch messages; return True if a wakeup, perhaps an earlier one, may have ended the wait for them."""
        with self._waking:  # the provider's consumer keeps a wakeup until a receive, and this count is as old
            wakeups = self._wakeups
        self._prefetched.extend(self._consumer.receive(self._prefetch, timeout))
        seen, self._seen_wakeups = self._seen_wakeups, wakeups
        return self._wakeups != seen

    def _take_if(self, accept: Callable[[Message | MessageFormatError], bool]) -> None:
        if accept(_decoded(self._prefetched[0])):
            with suppress(MessageFormatError):  # `accept` was given the error
                self.take()

    def _ended(self) -> bool:
        return self.closed or self._lock.closed


class ObservedReceiver(PrefetchingReceiver):
    """Notifies hooks of the messages that it hands over, and of errors.

    Args:
        consumer: The provider's consumer.
        mode: Acknowledges what is handed over.
        state: Whether the connection is started.
        prefetch: Maximum number of prefetched messages.
        hooks: The hooks.
        source: The destination or subscription of the consumer.
    """

    def __init__(  # noqa: PLR0917  # four are those of the base class
        self,
        consumer: spi.Consumer,
        mode: SessionMode,
        state: ConnectionState,
        prefetch: int,
        hooks: HookChain,
        source: Destination | Subscription,
    ) -> None:
        super().__init__(consumer, mode, state, prefetch)
        self._hooks = hooks
        self._place = source.topic if isinstance(source, Subscription) else source
        self._outcome: Message | JMSError | None = None

    def receive(
        self, timeout: float | None, hand_over: Callable[[], T], ended: Callable[[], bool] | None = None
    ) -> T | None:
        """Wait for a message and hand it over, as the base class does, and notify the hooks."""
        began = perf_counter()
        try:
            return super().receive(timeout, hand_over, ended)
        except JMSError as error:
            self._outcome = error
            raise
        finally:
            outcome, self._outcome = self._outcome, None
            if outcome is not None:
                self._hooks.received(self._place, outcome, perf_counter() - began)

    def take(self) -> Message:
        """Return the first prefetched message, acknowledged as the session's mode says."""
        try:
            self._outcome = message = super().take()
        except MessageFormatError as error:  # the caller may return it instead
            self._outcome = error
            raise
        return message


class MessageConsumer(Closeable):
    """Receives the messages of a queue or of a subscription (JMS 3.1, chapter 8).

    `Session.create_consumer` and its variants create it; like its session it is for one thread at a time. Iterating
    over it receives one message after the other, and ends when the consumer is closed.

    Args:
        receiver: The prefetch buffer.
        listeners: Calls the message listeners of the session.
        selector: The selector of the consumer.
    """

    def __init__(self, receiver: PrefetchingReceiver, listeners: ListenerDispatcher, selector: str | None) -> None:
        self._receiver = receiver
        self._listeners = listeners
        self._selector = selector

    @property
    def closed(self) -> bool:
        """True once the consumer is closed."""
        return self._receiver.closed

    @property
    def selector(self) -> str | None:
        """Only matching messages are received; None for all."""
        self._receiver.check_open()
        return self._selector

    @overload
    def receive(self, timeout: None = None) -> Message | Any:  # noqa: D418
        """Wait for the next message."""

    @overload
    def receive(self, timeout: float | None) -> Message | None:  # noqa: D418
        """Wait for the next message; return None at the timeout."""

    def receive(self, timeout: float | None = None) -> Message | Any:
        """Receive the next message (JMS 3.1, section 8.5).

        Without a timeout only the close by another thread ends the wait without a message: type checkers do not demand
        a check for None then.

        Args:
            timeout: Seconds to wait; None waits forever, 0 does not wait.

        Returns:
            The message; None if none arrived in time, or if another thread closed the consumer meanwhile.

        Raises:
            IllegalStateError: The consumer is closed, or another thread uses its session.
            InvalidArgumentError: The timeout is no number of seconds, or negative.
            MessageFormatError: The message cannot be decoded. Under `AcknowledgeMode.AUTO` and ``DUPS_OK`` it is
                redelivered, and counted; otherwise it was received and is settled with the others.
        """
        return self._receiver.receive(timeout, self._receiver.take)

    def receive_no_wait(self) -> Message | None:
        """Receive the next message without waiting; return None if there is no message yet."""
        return self._receiver.receive(0, self._receiver.take)

    def receive_body(
        self,
        kind: type[T],
        timeout: float | None = None,
        *,
        allowed: AbstractSet[tuple[str, str]] | None = None,
    ) -> T | None:
        """Receive the body of the next message (JMS 3.1, section 8.6).

        Args:
            kind: The expected type, as in `Message.get_body`.
            timeout: Seconds to wait; None waits forever, 0 does not wait.
            allowed: To receive a pickled object: the classes and functions that it may name, as in
                `ObjectMessage.get_object`. Without them the body of an `ObjectMessage` is not unpickled.

        Returns:
            The body; None if no message arrived in time.

        Raises:
            MessageFormatError: The body has another type, is missing, or names something that is not allowed. Under
                `AcknowledgeMode.AUTO` and ``DUPS_OK`` the message was not received then: it is still the next one.
                Otherwise it was.
            ArgumentTypeError: ``kind`` is no class. Nothing was received.
            InvalidArgumentError: The timeout is no number of seconds, or negative.
        """
        check_class("kind", kind)
        return self._receiver.receive(timeout, partial(self._receiver.take_body, kind, allowed))

    @property
    def message_listener(self) -> MessageListener | None:
        """The message listener; None without one. `set_message_listener` sets it."""
        self._receiver.check_open()
        return self._listeners.listener(self._receiver)

    def set_message_listener(self, listener: MessageListener | None) -> None:
        """Deliver the messages to a function, one after the other, instead of `receive` (JMS 3.1, section 8.7).

        Delivery begins when the connection is started. From then on the session belongs to the thread that calls its
        message listeners, one at a time: they may use the session, and another thread that does gets an
        `IllegalStateError`, except for `close` of the session and its consumers, which wait for a running listener, and
        this method. The consumers of a session with a listener cannot receive synchronously.

        Under `AcknowledgeMode.AUTO` and ``DUPS_OK`` a message is acknowledged when the listener has returned. If the
        listener raises an exception, the message is redelivered at once, and counted; after 25 failures in a row the
        listener is removed, and the `Connection.exception_listener` is called. In other sessions the next message
        follows, and the listener commits, rolls back, acknowledges or recovers. Each exception is logged.

        Args:
            listener: Called with each message. It cannot stop or close its connection, or close its session; it can
                close its consumer. None ends the delivery, after a running call.

        Raises:
            IllegalStateError: The consumer is closed.
            NotSupportedError: The value is declared with ``async def``, has a ``yield``, or cannot be called.
        """
        given: object = listener
        if given is not None and (not callable(given) or is_deferred(given)):
            raise NotSupportedError(
                f"A message listener is a function of one message, not {listener!r:.100}. With asyncio use "
                "`async for message in consumer` of jmsjca.aio."
            )
        self._listeners.set(self._receiver, listener)

    def close(self) -> None:
        """Release prefetched messages; received ones stay with the session (JMS 3.1, section 8.8). Idempotent.

        Another thread may call it: a waiting `receive` returns None, and this returns after it, and after a running
        call of the message listener.
        """
        self._receiver.close()
        self._listeners.forget(self._receiver)

    def __iter__(self) -> Iterator[Message]:
        receiver = self._receiver
        while not receiver.closed and (message := self.receive()) is not None:
            yield message

    def _limit_prefetch(self, messages: int) -> None:
        """Set the maximum number of messages that the next receive prefetches, the one that it returns included."""
        self._receiver.limit_prefetch(messages)

    def _receive_delivery(self, timeout: float | None) -> tuple[Message | MessageFormatError, spi.Delivery] | None:
        """Receive the next message with its delivery, which has its bytes; the error if it cannot be decoded."""
        return self._receiver.receive(timeout, self._receiver.take_delivery)


# For connectors; methods of these names would be offered to every user of a consumer.
receive_delivery = MessageConsumer._receive_delivery  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
limit_prefetch = MessageConsumer._limit_prefetch  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _decoded(delivery: spi.Delivery) -> Message | MessageFormatError:
    try:
        return delivery.message
    except MessageFormatError as error:
        return error
