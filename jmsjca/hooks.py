"""The points where metrics, tracing and interceptors attach.

Subclass `Hooks`, override what you need, hand it to the `ResourceAdapter` or to a `ConnectionFactory`.
`around_delivery` and `around_send` are onions: they see the message before and after the handler or the send, and an
exception that they raise counts as the handler's, or fails the send. The notices (`status_changed`, `settled`) come
after the fact; an exception in one is logged and changes nothing.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from jmsjca.destinations import Destination
from jmsjca.errors import JMSError
from jmsjca.messages import Message, Outcome

__all__ = ["HookChain", "Hooks", "Send"]

Send = Callable[[Message, Destination], None]
"""Sends a message to a destination."""

logger = logging.getLogger("jmsjca.hooks")


class Hooks:
    """Override what you need; each method does nothing by itself."""

    def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
        """Surround the handler.

        Args:
            endpoint: The display name of the activation.
            message: What is delivered.
            call_next: Calls the handler (or the next hook) and gives its result.

        Returns:
            What the handler returned.
        """
        del endpoint, message
        return call_next()

    def around_send(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Surround a send of the application: by a producer, a `Requestor`, or a handler that replies.

        The headers are set already, ``message_id`` among them. What is set in the message before ``call_next``, for
        instance properties that carry a trace, is sent with it. After ``call_next`` the message is sent, or in a
        transacted session noted for the commit, and nothing takes it back but a rollback.

        Args:
            message: What is sent.
            destination: Where to.
            call_next: Sends it (or calls the next hook). Who does not call it drops the message.

        Raises:
            Exception: Fails the send. What is no `JMSError` is raised as one, with this as its ``__cause__``.
        """
        del message, destination
        call_next()

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Learn that a unit of so many messages ended."""

    def status_changed(self, endpoint: str, status: str) -> None:
        """Learn that an activation is now "Up", "Down", "Connecting" or "Disconnecting"."""


class HookChain:
    """Calls several hooks: the onions from the first inwards, notices in order."""

    def __init__(self, hooks: Sequence[Hooks] = ()) -> None:
        self._hooks = tuple(hooks)

    def deliver(self, endpoint: str, message: Message, handler: Callable[[], object]) -> object:
        """Call the handler inside all hooks."""
        call = handler
        for hook in reversed(self._hooks):
            call = _wrap(hook, endpoint, message, call)
        return call()

    def wrap_send(self, send: Send) -> Send:
        """Give what sends inside all hooks; without any it is the same, and costs the same."""
        if not self._hooks:
            return send
        for hook in reversed(self._hooks):
            send = _wrap_send(hook, send)
        return _as_jms_error(send)

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Tell every hook that a unit ended."""
        for hook in self._hooks:
            _notify(hook.settled, endpoint, outcome, messages)

    def status_changed(self, endpoint: str, status: str) -> None:
        """Tell every hook that an activation's status changed."""
        for hook in self._hooks:
            _notify(hook.status_changed, endpoint, status)


def _wrap(hook: Hooks, endpoint: str, message: Message, call: Callable[[], object]) -> Callable[[], object]:
    return lambda: hook.around_delivery(endpoint, message, call)


def _wrap_send(hook: Hooks, send: Send) -> Send:
    return lambda message, to: hook.around_send(message, to, partial(send, message, to))


def _as_jms_error(send: Send) -> Send:
    def sending(message: Message, to: Destination) -> None:
        try:
            send(message, to)
        except JMSError:
            raise
        except Exception as error:
            raise JMSError(f"A hook around the send to {to} failed: {error!r:.200}") from error

    return sending


def _notify(notice: Callable[..., None], *args: object) -> None:
    try:
        notice(*args)
    except Exception:
        logger.exception("The hook %s failed; nothing else changes.", getattr(notice, "__qualname__", notice))
