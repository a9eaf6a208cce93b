"""The points where metrics, tracing and interceptors attach.

Subclass `Hooks`, override what you need, hand it to the `ResourceAdapter`. `around_delivery` is an onion: it sees the
message before and after the handler, and an exception that it raises counts as the handler's. The notices
(`status_changed`, `settled`) come after the fact; an exception in one is logged and changes nothing.
"""

import logging
from collections.abc import Callable, Sequence

from jmsjca.messages import Message, Outcome

__all__ = ["HookChain", "Hooks"]

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

    def settled(self, endpoint: str, outcome: Outcome, messages: int) -> None:
        """Learn that a unit of so many messages ended."""

    def status_changed(self, endpoint: str, status: str) -> None:
        """Learn that an activation is now "Up", "Down", "Connecting" or "Disconnecting"."""


class HookChain:
    """Calls several hooks: `around_delivery` from the first inwards, notices in order."""

    def __init__(self, hooks: Sequence[Hooks] = ()) -> None:
        self._hooks = tuple(hooks)

    def deliver(self, endpoint: str, message: Message, handler: Callable[[], object]) -> object:
        """Call the handler inside all hooks."""
        call = handler
        for hook in reversed(self._hooks):
            call = _wrap(hook, endpoint, message, call)
        return call()

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


def _notify(notice: Callable[..., None], *args: object) -> None:
    try:
        notice(*args)
    except Exception:
        logger.exception("The hook %s failed; nothing else changes.", getattr(notice, "__qualname__", notice))
