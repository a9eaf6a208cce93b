"""Message listeners of a session's consumers (JMS 3.1, sections 6.2.13 and 8.7): one thread calls all of them."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from operator import attrgetter
from threading import Condition, Thread, current_thread
from typing import Protocol

from jmsjca import spi
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.outbound.connection_state import ConnectionState
from jmsjca.outbound.session_mode import MessageListener, SessionMode
from jmsjca.outbound.unit_of_work import PrefetchOwner

__all__ = ["MAX_FAILURES", "ListenerDispatcher"]

logger = get_logger("jmsjca.outbound")

#: Failed deliveries in a row after which a listener is removed. Brokers that limit deliveries by default (Artemis 10,
#: RabbitMQ 20) dead-letter the message before.
MAX_FAILURES = 25


class ListenedReceiver(PrefetchOwner, Protocol):
    """The prefetch buffer of a consumer, as far as its message listener needs it."""

    @property
    def closed(self) -> bool:
        """True once the consumer is closed."""
        ...

    def check_open(self) -> None:
        """Raise an error if the consumer is closed."""
        ...

    def has_messages(self) -> bool:
        """Return True if there are prefetched messages."""
        ...

    def fetch(self, ended: Callable[[], bool]) -> None:
        """Prefetch messages. Return early if the wait is interrupted or ``ended`` returns True."""
        ...

    def hand_over(self, deliver: Callable[[spi.Delivery], None]) -> None:
        """Pass the first prefetched message, if any, to a function."""
        ...

    def pause(self) -> None:
        """Interrupt `fetch`, and wait for the end of a running `hand_over`."""
        ...


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
        self._lock = mode.lock
        self._state = state
        self._report = report
        self._changed = Condition()
        self._fetchers: dict[ListenedReceiver, _Fetcher] = {}
        self._turns = count(1)
        self._thread: Thread | None = None
        self._dispatching = False  # whether the thread uses the session, or is about to

    def set(self, receiver: ListenedReceiver, listener: MessageListener | None) -> None:
        """Set, replace or remove the listener of a consumer. Waits for a running call of the old one.

        Args:
            receiver: The consumer's prefetch buffer.
            listener: The listener; None to receive synchronously again.

        Raises:
            IllegalStateError: The session or the consumer is closed, or another thread uses the session; or the session
                can have no listeners.
        """
        if listener is not None:
            self._mode.check_listens()
        self._lock.check_open()
        receiver.check_open()
        with nullcontext() if self._thread else self._lock:  # no other thread may be receiving synchronously
            self._remove(receiver)
            if listener is not None:
                self._add(receiver, listener)
        if not self._fetchers:
            self._join()

    def listener(self, receiver: ListenedReceiver) -> MessageListener | None:
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

    def forget(self, receiver: ListenedReceiver) -> None:
        """Remove the listener of a closed consumer, if any."""
        if self._thread is not None and not self._lock.fork_guard.in_child:  # where the threads do not exist
            self._remove(receiver)
            if not self._fetchers:
                self._join()

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

    def _add(self, receiver: ListenedReceiver, listener: MessageListener) -> None:
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

    def _remove(self, receiver: ListenedReceiver) -> None:
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
                ready = [each for each in self._fetchers.values() if each.is_ready()]  # the others fetch meanwhile
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
            exc_info=error,
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

    It fetches only while the dispatcher waits for messages of this consumer, and so never while its listener runs,
    which may roll back: what is fetched meanwhile would be released already.

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

    def __init__(self, receiver: ListenedReceiver, listener: MessageListener, changed: Condition) -> None:
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
