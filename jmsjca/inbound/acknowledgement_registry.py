"""Held messages by message id: for acknowledging a message without having it at hand."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol

from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.messages import Outcome, Settlement

__all__ = ["HeldMessage", "HeldMessages"]

_ACTIONS = {"jbxcommit": False, "jbxrollback": True}
_REMEMBERED = 1000


class HeldMessage(Protocol):
    """A message that waits for its acknowledgement, as far as the registry knows it."""

    @property
    def message_id(self) -> str | None:
        """Which message it is."""
        ...

    @property
    def acknowledged(self) -> bool:
        """True once somebody acknowledged it."""
        ...

    def acknowledge(self) -> Settlement:
        """Acknowledge it; never blocks."""
        ...

    def set_rollback_only(self) -> None:
        """Let its unit end in a rollback."""
        ...


class HeldMessages:
    """The settlement registry of one endpoint (as the acknowledge activity of Jitterbit's connector has it).

    It remembers how at least the last thousand ended, so that who comes late learns what happened.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, HeldMessage] = {}
        self._ended: dict[str, Outcome] = {}
        self._ended_before: dict[str, Outcome] = {}  # a generation earlier

    def note(self, context: HeldMessage) -> None:
        """Let a message be known. Of two with one id it is the later."""
        if context.message_id is not None:
            with self._lock:
                self._held[context.message_id] = context

    def forget(self, contexts: Sequence[HeldMessage], outcome: Outcome | None) -> None:
        """Let the messages of a unit be unknown: it is settled."""
        with self._lock:
            held = self._held
            ended = [it.message_id for it in contexts if it.message_id is not None and held.get(it.message_id) is it]
            for message_id in ended:
                del held[message_id]
            self._remember(ended, outcome or Outcome.LOST)

    def settle(self, message_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or let its unit roll back. Does not wait.

        Args:
            message_id: Which message.
            action: "JBXCommit" or "JBXRollback", in upper or lower case.

        Raises:
            ConfigurationError: The action is another one.
            IllegalStateError: No such message is held: it never was, or its unit is settled, or it is acknowledged.
        """
        roll_back = _ACTIONS.get(action.lower())
        if roll_back is None:
            raise ConfigurationError(f"The action is 'JBXCommit' or 'JBXRollback', not {action[:50]!r}.")
        context = self._find(message_id)
        if roll_back:
            context.set_rollback_only()
        return context.acknowledge()

    def _find(self, message_id: str) -> HeldMessage:
        with self._lock:
            context = self._held.get(message_id)
            ended = self._ended.get(message_id) or self._ended_before.get(message_id)
        if context is not None and not context.acknowledged:
            return context
        if context is not None:
            raise IllegalStateError(f"The message {message_id[:100]!r} is acknowledged already.")
        if ended is not None:
            raise IllegalStateError(f"The message {message_id[:100]!r} is settled already: {ended.value}.")
        raise IllegalStateError(
            f"No message {message_id[:100]!r} is held here. Only messages that were delivered with held acknowledgement"
            " and are not settled can be."
        )

    def _remember(self, message_ids: Iterable[str], outcome: Outcome) -> None:
        self._ended.update(dict.fromkeys(message_ids, outcome))
        if len(self._ended) >= _REMEMBERED:
            self._ended_before, self._ended = self._ended, {}
