"""Asynchronous sends: messages in flight, completion listeners and futures (JMS 3.1, section 7.3)."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Condition, Thread, current_thread
from typing import Protocol, cast

from jmsjca.arguments import PLAIN_FUNCTION, wrong_argument
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, TransactionInDoubtError
from jmsjca.hooks import Send
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.outbound.unit_of_work import SessionLock

__all__ = ["AsynchronousSends", "CompletionListener", "OnCompletion", "checked_listener"]

logger = get_logger("jmsjca.outbound")

Begin = Callable[[Message, Destination], Callable[[], None]]


class CompletionListener(Protocol):
    """Receives the outcomes of asynchronous sends (JMS 3.1, section 7.3)."""

    def on_completion(self, message: Message, /) -> object:
        """Called when the message is sent, with the same guarantee as after a synchronous send."""
        ...

    def on_exception(self, message: Message, error: JMSError, /) -> object:
        """Called when the message is not sent, or is in doubt (`TransactionInDoubtError`)."""
        ...


OnCompletion = Callable[[Message, JMSError | None], object] | CompletionListener
"""A `CompletionListener`; or a function of the message and its error, which is None after a successful send."""


def checked_listener(name: str, value: object) -> OnCompletion | None:
    """Return a completion listener or None after validation.

    Raises:
        ArgumentTypeError: The value is neither a function nor an object with all methods of a `CompletionListener`;
            or a function or method is declared with ``async def`` or has a ``yield``.
    """
    if callable(value):
        PLAIN_FUNCTION(name, value)
    elif value is not None:
        methods = [getattr(value, method, None) for method in ("on_completion", "on_exception")]
        if not all(callable(method) for method in methods):
            raise wrong_argument(name, value, "a function of the message and its error, or a CompletionListener")
        for method in methods:
            PLAIN_FUNCTION(name, method)
    return cast("OnCompletion | None", value)


class AsynchronousSends:
    """The asynchronous sends of one session: pipelined, and completed in order on one thread.

    The thread waits for the outcome of one send after the other, so completion listeners never run on the I/O thread of
    a provider, nor on a thread of the application.

    Args:
        begin: Begins to send a message, and returns the function that waits for its outcome.
        lock: The lock of the session.
        wrap_send: Wraps a send in the hooks.
        limit: The maximum number of incomplete sends.
    """

    def __init__(self, begin: Begin, lock: SessionLock, wrap_send: Callable[[Send], Send], limit: int) -> None:
        self._begin = begin
        self._lock = lock
        self._wrap_send = wrap_send
        self._limit = max(limit, 1)
        self._changed = Condition()
        self._in_flight: SimpleQueue[_PendingSend | None] = SimpleQueue()  # None ends the thread
        self._thread: Thread | None = None  # until the first send
        self._begun = 0
        self._completed = 0
        self._awaited: list[int] = []  # numbers of completed sends that threads wait for

    def send(self, message: Message, to: Destination, on_completion: OnCompletion | None) -> "Future[Message]":
        """Begin to send a message, and return a future of the message. Waits while too many sends are in flight.

        The caller holds the lock of the session.

        Raises:
            JMSError: The message cannot be sent; then there is no completion.
        """
        self._await_capacity()
        pending = _PendingSend(message, to, on_completion)
        try:
            self._wrap_send(partial(pending.begin, self._begin))(message, to)
        except JMSError:
            if pending.begun:  # a hook failed after the message was on its way: no listener gets its outcome
                self._put(pending.without_listener())
            raise
        self._put(pending)
        return pending.future

    def is_current_thread(self) -> bool:
        """Return True in a completion listener of this session."""
        return self._thread is current_thread()

    def check_allowed(self, call: str) -> None:
        """Raise an error if the caller is a completion listener of this session.

        Args:
            call: The call, for the error message.

        Raises:
            IllegalStateError: JMS does not allow the call there (section 7.3.4), since it waits for the listener.
        """
        if self.is_current_thread():
            raise IllegalStateError(
                f"{call} waits until all completion listeners of its session have returned, so none of them can call "
                "it (JMS 3.1, section 7.3.4). Call it on another thread."
            )

    def wait(self, call: str) -> None:
        """Wait until all sends begun before are completed, and their listeners have returned.

        Args:
            call: The waiting call, for the error message.

        Raises:
            IllegalStateError: The caller is a completion listener of this session.
        """
        if self._thread is not None and not self._lock.in_child:  # where the thread does not exist
            self.check_allowed(call)
            self._await_completed(self._begun)

    def close(self) -> None:
        """Wait for all sends, and end the thread."""
        self.wait("close()")
        if self._thread is not None:
            self._in_flight.put(None)
            self._thread.join()

    def _await_capacity(self) -> None:
        """Wait for the completion of half of the sends if too many are in flight; a listener never waits."""
        if self._begun - self._completed >= self._limit and not self.is_current_thread():
            self._await_completed(self._begun - self._limit // 2)

    def _await_completed(self, count: int) -> None:
        with self._changed:
            self._awaited.append(count)
            try:
                self._changed.wait_for(lambda: self._completed >= count)
            finally:
                self._awaited.remove(count)

    def _put(self, pending: "_PendingSend") -> None:
        if self._thread is None:
            self._thread = Thread(target=self._complete_all, name="jmsjca completions", daemon=True)
            self._thread.start()
        self._begun += 1
        self._in_flight.put(pending)

    def _complete_all(self) -> None:
        for pending in iter(self._in_flight.get, None):
            pending.complete()
            with self._changed:
                self._completed += 1
                if self._completed in self._awaited:
                    self._changed.notify_all()


class _PendingSend:
    """One asynchronous send, and the receivers of its outcome.

    Args:
        message: The message.
        to: Its destination.
        on_completion: The completion listener, if any.

    Attributes:
        future: The message, or the error of its send. It cannot be cancelled.
    """

    __slots__ = ("_message", "_on_completion", "_to", "_wait", "future")

    def __init__(self, message: Message, to: Destination, on_completion: OnCompletion | None) -> None:
        self._message = message
        self._to = to
        self._on_completion = on_completion
        self._wait: Callable[[], None] | None = None  # None: a hook has dropped the message
        self.future: Future[Message] = Future()
        self.future.set_running_or_notify_cancel()

    @property
    def begun(self) -> bool:
        """True once the provider has the message."""
        return self._wait is not None

    def begin(self, begin: Begin, message: Message, to: Destination) -> None:
        """Begin to send."""
        self._wait = begin(message, to)

    def without_listener(self) -> "_PendingSend":
        """Return this send without a receiver of its outcome."""
        self._on_completion = None
        return self

    def complete(self) -> None:
        """Wait for the outcome, and report it to the completion listener and the future."""
        error = self._error()
        try:
            if self._on_completion is not None:
                _notify(self._on_completion, self._message, error)
        except BaseException:  # whatever it raises, this thread has further sends to complete
            logger.exception("The completion listener of %s failed; nothing else changes.", self._message.message_id)
        if error is None:
            self.future.set_result(self._message)
        else:
            self.future.set_exception(error)

    def _error(self) -> JMSError | None:
        try:
            if self._wait is not None:
                self._wait()
        except (ConnectionLostError, TransactionInDoubtError) as error:
            return self._caused(TransactionInDoubtError("is in doubt: it may or may not be sent"), error)
        except JMSError as error:
            return error
        except Exception as error:  # noqa: BLE001  # the caller is told on its own thread
            return self._caused(JMSError("failed"), error)
        return None

    def _caused(self, kind: JMSError, error: BaseException) -> JMSError:
        told = type(kind)(f"The asynchronous send of {self._message.message_id} to {self._to} {kind}: {error}")
        told.__cause__ = error
        return told


def _notify(on_completion: OnCompletion, message: Message, error: JMSError | None) -> None:
    if callable(on_completion):
        on_completion(message, error)
    elif error is None:
        on_completion.on_completion(message)
    else:
        on_completion.on_exception(message, error)
