"""The points where metrics, tracing and interceptors attach.

Subclass `Hooks`, override the methods that you need, and pass an instance to the `ResourceAdapter` or to a
`ConnectionFactory`. The methods ``around_…`` are nested: they run code before and after the handler, the send, the
commit or the settlement. An exception of `around_delivery` counts as the handler's exception. An exception of
`around_send` or `around_create` fails the send. All other methods are notifications after the event. If they,
`around_commit` or `around_settlement` raise an `Exception`, it is logged and has no other effect.

An exit is a `BaseException` that is not an `Exception`, such as `SystemExit`. Inside a listener an exit fails the unit:
the unit is rolled back unless it has ended, the exit is logged, and the listener continues. Outside listeners, and on
the main thread, where it may come from a signal handler, an exit reaches the caller.

The decorator `use_hooks` adds hooks to one handler.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import current_thread, main_thread
from typing import Protocol, TypeVar
from weakref import WeakSet

from jmsjca.arguments import PLAIN_FUNCTION, Constraint
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, JMSError, MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import Outcome
from jmsjca.messages.message import Message

__all__ = ["AroundCommit", "DeadLetter", "HookChain", "Hooks", "Send", "hooks_of", "use_hooks"]

H = TypeVar("H", bound=Callable[..., object])

Send = Callable[[Message, Destination], None]
"""Sends a message to a destination."""

AroundCommit = Callable[[Sequence[tuple[Message, Destination]], Callable[[], None]], None]
"""Runs code around a commit. Its arguments are the messages to send, their destinations, and the commit."""

logger = get_logger("jmsjca.hooks")
_FAILED = "The hook %s failed; nothing else changes."


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that a listener moved to another destination, or deleted, instead of delivering it again.

    Attributes:
        message_id: The id of the message, or ``content:`` and a digest for a message with a missing or damaged id.
        source: The destination that it was received from.
        target: The destination that it was moved to; None if it was deleted.
        count: The number of redeliveries.
        reason: The reason given to `Reject`, or the number of redeliveries and the handler's last error.
        copy_id: The id of the copy at the target; None if it was deleted.
    """

    message_id: str
    source: Destination
    target: Destination | None
    count: int
    reason: str
    copy_id: str | None = None


class Hooks:
    """Base class of hooks. Override the methods that you need; by default none has an effect."""

    def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
        """Run code around the handler.

        Args:
            endpoint: The display name of the activation.
            message: The delivered message.
            call_next: Calls the handler (or the next hook) and returns its result.

        Returns:
            The result of the handler.
        """
        del endpoint, message
        return call_next()

    def handled(self, endpoint: str, message: Message | None, seconds: float, *, failed: bool) -> None:
        """Called when a call of the handler has ended. It is cheaper than `around_delivery`.

        Args:
            endpoint: The display name of the activation.
            message: The message, or the first message of a batch; None for the end of a batch, and for a message that
                cannot be decoded.
            seconds: The duration of the call, including the decoding of the message, the hooks around it and replies.
            failed: True if the call raised an exception.
        """

    def around_send(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Run code around a send of the application: by a producer, a `Requestor`, or a handler's reply.

        The headers are already set, including ``message_id``. Changes to the message before ``call_next`` are sent with
        it, for example properties that carry a trace context. After ``call_next`` the message is sent; in a transacted
        session it belongs to the transaction, and only a rollback can undo the send.

        Args:
            message: The message.
            destination: The destination.
            call_next: Sends the message (or calls the next hook). Without this call the message is dropped.

        Raises:
            Exception: Fails the send. An exception that is not a `JMSError` becomes the ``__cause__`` of a `JMSError`.
        """
        del message, destination
        call_next()

    def around_create(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Run code around a send in a transaction. The send only adds the message to it: the commit sends the message.

        By default this calls `around_send` with the same arguments.

        Args:
            message: The message.
            destination: The destination.
            call_next: Adds the message to the transaction (or calls the next hook).
        """
        self.around_send(message, destination, call_next)

    def around_commit(self, sends: Sequence[tuple[Message, Destination]], call_next: Callable[[], None]) -> None:
        """Run code around a commit that sends messages: of a transacted session, or of a listener's unit.

        An `Exception` that the hook itself raises is logged and has no other effect: the commit is always made. Any
        other exception rolls back the unit of a listener, unless it has ended; in a session it reaches the caller.

        Args:
            sends: The messages that the application has sent in the transaction, with their destinations.
            call_next: Commits (or calls the next hook), and raises the error of the commit.
        """
        del sends
        call_next()

    def received(
        self, source: Destination, message: Message | None, seconds: float, error: Exception | None = None
    ) -> None:
        """Called when a consumer of a session has received a message or has failed. Not called if none arrived.

        Args:
            source: The destination of the consumer.
            message: The message; None if there is an error.
            seconds: The duration of the call, including the wait for the message.
            error: The error that the call raises; None if it returns the message.
        """

    def around_settlement(self, endpoint: str, messages: Sequence[Message], call_next: Callable[[], None]) -> None:
        """Run code around the commit or the rollback of a listener's unit, for example to measure it.

        An `Exception` that the hook itself raises is logged and has no other effect: the unit is always settled. Any
        other exception rolls the unit back, unless it has ended.

        Args:
            endpoint: The display name of the activation.
            messages: The messages of the unit that can be decoded.
            call_next: Settles the unit (or calls the next hook), and raises the error of the settlement.
        """
        del endpoint, messages
        call_next()

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Called when a unit has ended.

        Args:
            endpoint: The display name of the activation.
            outcome: The outcome of the unit.
            messages: Number of messages in the unit.
        """

    def dead_lettered(self, endpoint: str, letter: DeadLetter) -> None:
        """Called when a message was moved or deleted, by the redelivery handling or because the handler rejected it.

        Args:
            endpoint: The display name of the activation.
            letter: The message, its target and the reason.
        """

    def status_changed(self, endpoint: str, status: str) -> None:
        """Called when an activation's status has become "Up", "Down", "Connecting" or "Disconnecting"."""


_ATTRIBUTE = "__jmsjca_hooks__"
_declared: "WeakSet[Callable[..., object]]" = WeakSet()  # handlers of listeners


def use_hooks(*hooks: Hooks) -> Callable[[H], H]:
    """Return a decorator that adds hooks to the listeners of one handler. They run inside the hooks of the adapter.

    Put it below ``@adapter.listener(…)``. The function itself is unchanged: calling it does not run the hooks. Hooks
    around sends run for messages that the handler sends with its session, and for its reply.

    Args:
        *hooks: The hooks, the outermost first.

    Raises:
        ArgumentTypeError: A hook is not an instance of `Hooks`.
        ConfigurationError: As of `HookChain`. On decoration: the function already is the handler of a listener, which
            would not use the hooks; or it cannot have attributes.
    """
    HookChain(hooks)

    def add(handler: H) -> H:
        """Add the hooks to the handler, and return it."""
        if _is_declared(handler):
            raise ConfigurationError(
                f"{handler!r:.100} already is the handler of a listener: put @use_hooks(…) below @adapter.listener(…)."
            )
        try:
            setattr(handler, _ATTRIBUTE, (*hooks, *hooks_of(handler)))
        except AttributeError as error:
            raise ConfigurationError(
                f"Hooks cannot be added to {handler!r:.100}: decorate the underlying function."
            ) from error
        return handler

    return add


def hooks_of(handler: Callable[..., object]) -> tuple[Hooks, ...]:
    """Return the hooks that `use_hooks` has added to a handler, the outermost first."""
    found: tuple[Hooks, ...] = getattr(handler, _ATTRIBUTE, ())
    return found


def _is_declared(handler: Callable[..., object]) -> bool:
    try:
        return handler in _declared
    except TypeError:  # see declare_handler
        return False


def declare_handler(handler: Callable[..., object]) -> tuple[Hooks, ...]:
    """Return the hooks of a function that becomes a listener's handler. `use_hooks` refuses it afterwards."""
    with suppress(TypeError):  # the function cannot be referenced weakly, or hashed
        _declared.add(handler)
    return hooks_of(handler)


_HOOKS = Constraint[Sequence[Hooks]]("a sequence of Hooks, such as [hook]", Sequence)
_HOOK = Constraint[Hooks]("an instance of a subclass of Hooks", Hooks)
_METHOD = replace(PLAIN_FUNCTION, misfit=ConfigurationError)


class HookChain:
    """Calls several hooks: nested with the first one outermost, notifications in order.

    Args:
        hooks: The hooks.

    Attributes:
        wrap_deliveries: True if a hook runs code around deliveries.
        wrap_settlements: True if a hook runs code around settlements or commits.
        observe_calls: True if a hook is notified of calls of the handler.
        observe_settlements: True if a hook is notified of settled units.
        observe_receives: True if a hook is notified of received messages.

    Raises:
        ArgumentTypeError: The hooks are not a sequence, or a hook is not an instance of `Hooks`.
        ConfigurationError: A method of a hook is declared with ``async def`` or has a ``yield``.
    """

    def __init__(self, hooks: Sequence[Hooks] = ()) -> None:
        self._hooks = tuple(_HOOKS("hooks", hooks))
        for hook in self._hooks:
            _HOOK("A hook", hook)
            for name in vars(Hooks):
                _METHOD(f"The hook {type(hook).__name__}.{name}", getattr(hook, name))
        self._committing = self._overriding("around_commit")
        self._creates = bool(self._committing or self._overriding("around_create"))
        self._received = self._overriding("received")
        self.observe_receives = bool(self._received)
        self._delivering = self._overriding("around_delivery")
        self.wrap_deliveries = bool(self._delivering)
        self._handled = [hook.handled for hook in self._overriding("handled")]
        self.observe_calls = bool(self._handled)
        self._settling = self._overriding("around_settlement")
        self.wrap_settlements = bool(self._settling or self._committing)
        self._settled = self._overriding("settled")
        self.observe_settlements = bool(self._settled)

    def _overriding(self, method: str) -> list[Hooks]:
        """Return the hooks that override a method: calling the others for each message would only cost time."""
        inherited = getattr(Hooks, method)
        return [each for each in self._hooks if method in vars(each) or getattr(type(each), method) is not inherited]

    def deliver(self, endpoint: str, message: Message, handler: Callable[[], object]) -> object:
        """Call the handler inside all hooks."""
        call = handler
        for hook in reversed(self._delivering):
            call = partial(hook.around_delivery, endpoint, message, call)
        return call()

    def handled(self, endpoint: str, delivery: "_Decodable | None", seconds: float, *, failed: bool) -> None:
        """Notify the hooks of a call of the handler, with its first delivery. Called for each message.

        Raises:
            BaseException: The exit of a hook, which fails the unit.
        """
        try:
            message = None if delivery is None else delivery.message
        except MessageFormatError:
            message = None
        for notification in self._handled:
            try:
                notification(endpoint, message, seconds, failed=failed)
            except Exception:
                logger.exception(_FAILED, _name_of(notification))

    def settle(self, endpoint: str, deliveries: Sequence["_Decodable"], act: Callable[[], None]) -> None:
        """Settle a unit inside all hooks around settlements. The unit is settled exactly once."""
        if not self._settling:
            act()
            return
        messages = _decoded(deliveries)
        arounds = [partial(hook.around_settlement, endpoint, messages) for hook in self._settling]
        _run_once(arounds, act, f"the settlement of {endpoint}")

    def commit(self, sends: Sequence[tuple[Message, Destination]], act: Callable[[], None]) -> None:
        """Commit sent messages inside all hooks around commits. The commit is made exactly once."""
        _run_once([partial(hook.around_commit, sends) for hook in self._committing], act, "a commit")

    def wrap_send(self, send: Send, transaction: "_Transaction | None" = None) -> Send:
        """Wrap ``send`` in all hooks. Without hooks this returns ``send`` itself, so there is no overhead.

        Args:
            send: Sends at once, or adds the message to a transaction.
            transaction: Decides at each send whether it is deferred to the commit; None if ``send`` sends at once.
        """
        if not self._hooks:
            return send
        at_once = send
        for hook in reversed(self._hooks):
            at_once = _wrap_send(hook.around_send, at_once)
        if transaction is None or not self._creates:
            return _as_jms_error(at_once)

        def send_and_note(message: Message, to: Destination) -> None:
            """Add the message to the transaction, and record it for the commit."""
            send(message, to)
            transaction.note(message, to, self.commit)

        deferred: Send = send_and_note
        for hook in reversed(self._hooks):
            deferred = _wrap_send(hook.around_create, deferred)

        def choose_and_send(message: Message, to: Destination) -> None:
            """Send at once, or add to the transaction, as the transaction decides now."""
            (deferred if transaction.defers_sends else at_once)(message, to)

        return _as_jms_error(choose_and_send)

    def received(self, source: Destination, outcome: Message | Exception, seconds: float) -> None:
        """Notify the hooks of a received message, or of an error."""
        message, error = (outcome, None) if isinstance(outcome, Message) else (None, outcome)
        for hook in self._received:
            _notify(hook.received, source, message, seconds, error)

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Notify every hook of the end of a unit."""
        for hook in self._settled:
            _notify_in_listener(hook.settled, endpoint, outcome, messages)

    def dead_lettered(self, endpoint: str, letter: DeadLetter) -> None:
        """Notify every hook of a message that was moved or deleted."""
        for hook in self._hooks:
            _notify_in_listener(hook.dead_lettered, endpoint, letter)

    def status_changed(self, endpoint: str, status: str) -> None:
        """Notify every hook of a changed activation status."""
        for hook in self._hooks:
            _notify_in_listener(hook.status_changed, endpoint, status)


class _Decodable(Protocol):
    """A delivery, reduced to what this module uses."""

    @property
    def message(self) -> Message:
        """The message; `MessageFormatError` if it cannot be decoded."""
        ...


class _Once:
    """Calls a function only once, at the first call, and keeps its error.

    Args:
        act: The function.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self.calls = 0
        self.error: BaseException | None = None

    def __call__(self) -> None:
        self.calls += 1
        if self.calls > 1:
            return
        try:
            self._act()
        except BaseException as error:
            self.error = error
            raise


def _decoded(deliveries: Sequence[_Decodable]) -> list[Message]:
    found: list[Message] = []
    for delivery in deliveries:
        with suppress(MessageFormatError):
            found.append(delivery.message)
    return found


class _Transaction(Protocol):
    """The transaction of a session, reduced to what this module uses."""

    @property
    def defers_sends(self) -> bool:
        """True if a send made now only adds the message to a unit."""
        ...

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a send. ``around`` is called with all recorded sends, and with the commit that sends them."""
        ...


def _run_once(arounds: Sequence[Callable[[Callable[[], None]], None]], act: Callable[[], None], name: str) -> None:
    """Call ``act`` inside the hooks, exactly once, and raise its error. Errors of the hooks are logged."""
    once = _Once(act)
    call: Callable[[], None] = once
    for around in reversed(arounds):
        call = partial(around, call)
    try:
        call()
    except Exception as error:
        if error is not once.error:
            logger.exception("A hook around %s failed; nothing else changes.", name)
    if once.calls == 0:
        once()
    if once.error is not None:
        raise once.error


def _wrap_send(around: Callable[[Message, Destination, Callable[[], None]], None], send: Send) -> Send:
    return lambda message, to: around(message, to, partial(send, message, to))


def _as_jms_error(send: Send) -> Send:
    def _send_or_jms_error(message: Message, to: Destination) -> None:
        try:
            send(message, to)
        except JMSError:
            raise
        except Exception as error:
            raise JMSError(f"A hook around the send to {to} failed: {error!r:.200}") from error

    return _send_or_jms_error


def _notify(notification: Callable[..., None], *args: object) -> None:
    try:
        notification(*args)
    except Exception:
        logger.exception(_FAILED, _name_of(notification))


def _notify_in_listener(notification: Callable[..., None], *args: object) -> None:
    """Notify a hook. An exit is also logged, because it would end the listener, unless a signal handler raised it."""
    try:
        _notify(notification, *args)
    except BaseException:
        if current_thread() is main_thread():
            raise
        logger.exception(_FAILED, _name_of(notification))


def _name_of(notification: Callable[..., None]) -> object:
    return getattr(notification, "__qualname__", notification)
