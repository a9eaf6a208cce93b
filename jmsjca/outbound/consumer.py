"""Consumers of sessions: receiving, message listeners, and queue browsers."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from itertools import chain, count
from operator import attrgetter
from threading import Condition, RLock, Thread, current_thread
from time import perf_counter
from typing import Any, NamedTuple, TypeVar, overload

from jmsjca import spi
from jmsjca.arguments import CLASS, MAX_TIMEOUT, TIMEOUT, GuardedAttributes, is_deferred
from jmsjca.config.clock import Deadline
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, NotSupportedError
from jmsjca.hooks import HookChain
from jmsjca.log_records import exc_info_of, get_logger
from jmsjca.messages.message import Message
from jmsjca.messages.object_message import body_of
from jmsjca.outbound.connection_state import Closeable, ConnectionState
from jmsjca.outbound.session_mode import MessageListener, SessionMode
from jmsjca.outbound.unit_of_work import SessionLock, SessionMember, aborts_if_interrupted

__all__ = [
    "MAX_FAILURES",
    "ListenerDispatcher",
    "MessageConsumer",
    "ObservedReceiver",
    "PoppedDelivery",
    "PrefetchingReceiver",
    "QueueBrowser",
    "limit_prefetch",
    "pop_delivery",
    "receive_delivery",
]

logger = get_logger("jmsjca.outbound")

#: Failed deliveries in a row after which a listener is removed. Brokers that limit deliveries by default (Artemis 10,
#: RabbitMQ 20) dead-letter the message before.
MAX_FAILURES = 25

T = TypeVar("T")


class ListenerDispatcher:
    """Calls the message listeners of one session, one after the other, on one thread.

    While the connection is started, the thread holds the lock of the session, so that another thread that uses the
    session gets an error. Each consumer has a second thread, which only waits for the broker.

    Args:
        mode: Settles the messages.
        state: Whether the connection is started.
        report: Called with the error when a listener is removed.
    """

    def __init__(self, mode: SessionMode, state: ConnectionState, report: Callable[[JMSError], None]) -> None:
        self._mode = mode
        self._lock = self.lock = mode.lock
        self._state = state
        self._report = report
        self._changed = Condition()
        self._fetchers: dict[PrefetchingReceiver, _Fetcher] = {}
        self._turns = count(1)
        self._thread: Thread | None = None
        self._dispatching = False  # whether the thread uses the session, or is about to

    def set(self, receiver: "PrefetchingReceiver", listener: MessageListener | None) -> None:
        """Set, replace or remove the listener of a consumer. Waits for a running call of the old one.

        Args:
            receiver: The consumer's prefetch buffer.
            listener: The listener; None to receive synchronously again.

        Raises:
            IllegalStateError: The session or the consumer is closed, or another thread uses the session; or the session
                can have no listeners.
        """
        if listener is not None and self._mode.no_listeners:
            raise IllegalStateError(self._mode.no_listeners)
        self._lock.check_open()
        receiver.check_open()
        with nullcontext() if self._thread else self._lock:  # no other thread may be receiving synchronously
            self._remove(receiver)
            if listener is not None:
                self._add(receiver, listener)
        if not self._fetchers:
            self._join()

    def listener(self, receiver: "PrefetchingReceiver") -> MessageListener | None:
        """Return the listener of a consumer; None without one."""
        fetcher = self._fetchers.get(receiver)
        return fetcher.listener if fetcher else None

    def check_allowed(self, call: str) -> None:
        """Raise an error if the caller is a message listener of this session.

        Args:
            call: The call, for the error message.

        Raises:
            IllegalStateError: The call waits until all listeners of the session have returned.
        """
        if self._thread is current_thread():
            raise IllegalStateError(
                f"{call} waits until the message listeners of its session have returned, so none of them can call it "
                "(JMS 3.1, sections 6.1.5 and 6.1.8). Call it on another thread, or close the consumer."
            )

    def forget(self, receiver: "PrefetchingReceiver") -> None:
        """Remove the listener of a closed consumer, if any."""
        if self._thread is not None and not self._lock.in_child:  # where the threads do not exist
            self._remove(receiver)
            if not self._fetchers:
                self._join()

    def interrupt(self) -> None:
        """Wake the thread, so that it checks whether to continue."""
        with self._changed:
            self._changed.notify_all()

    def pause(self) -> None:
        """Wait until the thread does not use the session any more: the connection is stopped."""
        with self._changed:
            self._changed.notify_all()
            if self._thread is not current_thread():
                self._changed.wait_for(lambda: not self._dispatching)

    def close(self) -> None:
        """Remove all listeners, and wait for a running call, which can still use the session. Idempotent."""
        if self._thread is not None:
            for receiver in list(self._fetchers):
                self._remove(receiver)
            self._join()

    def _add(self, receiver: "PrefetchingReceiver", listener: MessageListener) -> None:
        fetcher = _Fetcher(receiver, listener, self._changed)
        with self._changed:
            self._fetchers[receiver] = fetcher
            self._mode.listening = True
            if self._thread is None:
                self._state.add(self)
                self._thread = Thread(target=self._run, name="jmsjca listeners", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        fetcher.start()

    def _remove(self, receiver: "PrefetchingReceiver") -> None:
        """Remove the listener of a consumer, if any, once it has returned from a running call."""
        fetcher = self._fetchers.get(receiver)
        if fetcher is not None:
            fetcher.end()  # first: an interrupted call can be repeated
        with self._changed:
            self._fetchers.pop(receiver, None)
            self._mode.listening = bool(self._fetchers)
            self._changed.notify_all()

    def _join(self) -> None:
        """Wait until the thread has ended, and with it the use of the session. A listener does not wait for itself."""
        thread = self._thread
        self._state.notify()
        if thread is not None and thread is not current_thread():
            thread.join()

    def _run(self) -> None:
        while not self._is_over():
            if self._state.wait(None, lambda: not self._fetchers) and self._set_dispatching(begun=True):
                with self._lock.exclusive():
                    while (fetcher := self._next_ready()) is not None:
                        self._deliver(fetcher)
                self._set_dispatching(begun=False)

    def _is_over(self) -> bool:
        """Return True if there are no listeners any more; the thread ends then."""
        with self._changed:
            if not self._fetchers:
                self._thread = None
                self._state.remove(self)
            return self._thread is None

    def _set_dispatching(self, *, begun: bool) -> bool:
        """Record whether the thread uses the session, for which `pause` waits. It may only while it is started."""
        with self._changed:
            self._dispatching = begun and self._state.started
            self._changed.notify_all()
            return self._dispatching

    def _next_ready(self) -> "_Fetcher | None":
        """Wait for a message; return the consumer that has one, or None if the connection or the listeners stop.

        Of several consumers that have one, it is that which has waited longest for its turn.
        """
        with self._changed:
            while self._state.started and self._fetchers:
                self._forget_ended()
                ready = [each for each in self._fetchers.values() if each.is_ready()]  # the others are still fetching
                if ready:
                    chosen = min(ready, key=attrgetter("last_turn"))
                    chosen.last_turn = next(self._turns)
                    return chosen
                if self._fetchers:
                    self._changed.wait()
        return None

    def _forget_ended(self) -> None:
        for fetcher in [each for each in self._fetchers.values() if each.ended]:
            del self._fetchers[fetcher.receiver]
            if fetcher.error is not None:
                logger.error("%s gets no more messages: %s", fetcher, fetcher.error)
                self._report(fetcher.error)
        self._mode.listening = bool(self._fetchers)

    def _deliver(self, fetcher: "_Fetcher") -> None:
        call = _Call(fetcher.listener)
        try:
            fetcher.receiver.hand_over(lambda delivery: self._mode.deliver(delivery, fetcher.receiver, call))
        except BaseException as error:  # noqa: BLE001  # whatever it is, this thread has further messages to deliver
            if call.message is None and isinstance(error, IllegalStateError):
                return  # a listener of the session has rolled back, which released this delivery
            self._on_failure(fetcher, call.message, error)
        else:
            fetcher.failures = 0

    def _on_failure(self, fetcher: "_Fetcher", message: Message | None, error: BaseException) -> None:
        fetcher.failures += self._mode.automatic
        logger.error(
            "%s failed on message %s: %s",
            fetcher,
            message.message_id if message else "(not decoded)",
            "it is redelivered"
            if self._mode.automatic
            else "it is not acknowledged or committed, and the next follows",
            exc_info=exc_info_of(error),
        )
        if fetcher.failures >= MAX_FAILURES:
            self._give_up(fetcher, error)

    def _give_up(self, fetcher: "_Fetcher", error: BaseException) -> None:
        """Remove a listener that fails again and again. No message is lost: all stay where they are."""
        self._remove(fetcher.receiver)
        fetcher.receiver.return_prefetched()
        told = JMSError(
            f"{fetcher} has failed {fetcher.failures} times in a row, and was removed; the message stays in its queue. "
            "Correct the listener and set it again, or let the broker dead-letter such messages "
            f"(DestinationSettings.max_deliveries). The last failure: {error!r:.200}"
        )
        told.__cause__ = error
        logger.error("%s", told)
        self._report(told)


class _Call:
    """Calls a listener, and notes the message: without one, the failure is not the listener's."""

    __slots__ = ("_listener", "message")

    def __init__(self, listener: MessageListener) -> None:
        self._listener = listener
        self.message: Message | None = None

    def __call__(self, message: Message) -> object:
        self.message = message
        return self._listener(message)


class _Fetcher:
    """Fetches the messages of one consumer for its listener, on a thread that only waits for the broker.

    It fetches only while the dispatcher waits for messages of this consumer. It never fetches while the listener runs:
    the listener may roll back, and a rollback also releases the messages that are prefetched by then.

    Args:
        receiver: The consumer's prefetch buffer.
        listener: The message listener.
        changed: The condition of the dispatcher.

    Attributes:
        receiver: The same.
        listener: The same.
        ended: True once the listener is removed, or the consumer closed or broken.
        error: Why fetching failed; None if it did not.
        failures: Failed deliveries in a row.
        last_turn: The number of its last delivery in the session; 0 before the first.
    """

    def __init__(self, receiver: "PrefetchingReceiver", listener: MessageListener, changed: Condition) -> None:
        self.receiver = receiver
        self.listener = listener
        self.ended = False
        self.error: JMSError | None = None
        self.failures = self.last_turn = 0
        self._changed = changed
        self._wanted = False
        self._thread = Thread(target=self._run, name="jmsjca listener's messages", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def is_ready(self) -> bool:
        """Return True if there is a message; otherwise fetch some. The caller holds the condition."""
        if self.receiver.has_messages():
            return True
        if not self._wanted:
            self._wanted = True
            self._changed.notify_all()
        return False

    def end(self) -> None:
        """End the thread, and wait for a running call of the listener."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()
        self.receiver.pause()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._is_wanted():
                self.receiver.fetch(lambda: self.ended)
                self._on_fetched()
        except JMSError as error:
            self.error = error
        finally:
            with self._changed:
                self.ended = True
                self._changed.notify_all()

    def _is_wanted(self) -> bool:
        """Wait until the dispatcher wants messages; return False if the listener or the consumer has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self.ended or self.receiver.closed)
            return not (self.ended or self.receiver.closed)

    def _on_fetched(self) -> None:
        with self._changed:
            self._wanted = not self.receiver.has_messages()
            self._changed.notify_all()

    def __str__(self) -> str:
        return f"The message listener {getattr(self.listener, '__qualname__', self.listener)!s:.100}"


class PrefetchingReceiver(SessionMember):
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

    @aborts_if_interrupted
    def receive(
        self, timeout: float | timedelta | None, hand_over: Callable[[], T], ended: Callable[[], bool] | None = None
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
            InvalidArgumentError: The timeout is not a number of seconds, or is negative.
            ConnectionLostError: The connection is lost, perhaps while it was stopped.
        """
        if timeout is not None and not (
            isinstance(timeout, (float, int))  # a check; a call of it would take longer
            and 0 <= timeout <= MAX_TIMEOUT
        ):
            timeout = TIMEOUT("timeout", timeout)
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
                delivery = self._prefetched.popleft()
                self._consumer.hand_over((delivery,))
                deliver(delivery)

    def receive_if(
        self,
        accept: Callable[[Message | MessageFormatError], bool],
        abandoned: Callable[[], bool],
        timeout: float | timedelta | None,
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
        delivery = self._prefetched.popleft()
        try:
            return self._mode.take(delivery, self)
        finally:  # also for a message that cannot be decoded, which the caller learns now
            self._consumer.hand_over((delivery,))

    def pop(self) -> tuple[Message | MessageFormatError, "PoppedDelivery"]:
        """Return the first prefetched message, or the error if it cannot be decoded. The session has not received it.

        Closing the consumer releases it, unless it is taken.
        """
        delivery = self._prefetched.popleft()
        return _decoded(delivery), PoppedDelivery(
            delivery, partial(self._consumer.hand_over, (delivery,)), partial(self._mode.take, delivery, self)
        )

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

    @aborts_if_interrupted
    def close(self) -> None:
        """Release the prefetched messages and close the provider's consumer. Waits for a receive of another thread."""
        if not self.released and not self._lock.in_child:
            self.closed = True
            self._state.remove(self)
            self.interrupt()
            with self._receiving:
                pass  # no thread waits for messages any more
            with self._handing_over:
                self._prefetched.clear()
            if self._abort.cause is None:  # else the abort has closed it
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
        if self._abort.cause is not None:
            raise self._abort.error()
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


class PoppedDelivery(NamedTuple):
    """A delivery that a consumer has returned, and that its session has not received yet.

    Attributes:
        delivery: The delivery.
        hand_over: Records that the application gets the message now.
        take: Receives the message in the session's unit; raises `MessageFormatError` if it cannot be decoded.
    """

    delivery: spi.Delivery
    hand_over: Callable[[], None]
    take: Callable[[], Message]


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

    def __init__(  # the base class takes the first four
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
        self, timeout: float | timedelta | None, hand_over: Callable[[], T], ended: Callable[[], bool] | None = None
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


class MessageConsumer(SessionMember, Closeable, GuardedAttributes):
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
        self._lock = listeners.lock
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
    def receive(self, timeout: float | timedelta | None) -> Message | None:  # noqa: D418
        """Wait for the next message; return None at the timeout."""

    def receive(self, timeout: float | timedelta | None = None) -> Message | Any:
        """Receive the next message (JMS 3.1, section 8.5).

        Without a timeout, None is returned only if another thread closes the consumer. Type checkers then do not demand
        a check for None.

        Args:
            timeout: Seconds to wait; None waits forever, 0 does not wait.

        Returns:
            The message; None if no message arrived in time, or if another thread closed the consumer during the call.

        Raises:
            IllegalStateError: The consumer is closed, or another thread uses its session.
            InvalidArgumentError: The timeout is not a number of seconds, or is negative.
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
        timeout: float | timedelta | None = None,
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
                `AcknowledgeMode.AUTO` and ``DUPS_OK`` the message was not received, and the next call gets it.
                Under the other modes the message was received.
            ArgumentTypeError: ``kind`` is not a class. No message was received.
            InvalidArgumentError: The timeout is not a number of seconds, or is negative.
        """
        CLASS("kind", kind)
        return self._receiver.receive(timeout, partial(self._receiver.take_body, kind, allowed))

    @property
    def message_listener(self) -> MessageListener | None:
        """The message listener; None without one. `set_message_listener` sets it."""
        self._receiver.check_open()
        return self._listeners.listener(self._receiver)

    @aborts_if_interrupted
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

    @aborts_if_interrupted
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

    def _receive_delivery(
        self, timeout: float | timedelta | None
    ) -> tuple[Message | MessageFormatError, spi.Delivery] | None:
        """Receive the next message with its delivery, which has its bytes; the error if it cannot be decoded."""
        return self._receiver.receive(timeout, self._receiver.take_delivery)

    def _pop_delivery(
        self, timeout: float | timedelta | None
    ) -> tuple[Message | MessageFormatError, PoppedDelivery] | None:
        """Return the next message without receiving it; the error if it cannot be decoded."""
        return self._receiver.receive(timeout, self._receiver.pop)


# For connectors; methods of these names would be offered to every user of a consumer.
receive_delivery = MessageConsumer._receive_delivery  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
pop_delivery = MessageConsumer._pop_delivery  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
limit_prefetch = MessageConsumer._limit_prefetch  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _decoded(delivery: spi.Delivery) -> Message | MessageFormatError:
    try:
        return delivery.message
    except MessageFormatError as error:
        return error


class QueueBrowser(SessionMember, Closeable, GuardedAttributes):
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

    _closed_text = "The browser is closed; create another one with session.create_browser(…)."

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

    @aborts_if_interrupted
    def __iter__(self) -> Iterator[Message]:
        with self._lock:
            self._check_open()
            chunks = iter(self._connection.browse(self._queue, selector=self._selector))
        # Unlike a generator, a map continues after an exception: an undecodable message does not hide later ones.
        return map(_message, chain.from_iterable(self._locked(chunks)))

    def _locked(self, chunks: Iterator[Sequence[spi.Delivery]]) -> Iterator[Sequence[spi.Delivery]]:
        while (chunk := self._next(chunks)) is not None:
            yield chunk

    @aborts_if_interrupted
    def _next(self, chunks: Iterator[Sequence[spi.Delivery]]) -> Sequence[spi.Delivery] | None:
        with self._lock:
            self._check_open()
            return next(chunks, None)


def _message(delivery: spi.Delivery) -> Message:
    return delivery.message
