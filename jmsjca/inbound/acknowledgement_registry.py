"""Registry of held messages by message id: acknowledges a message without a reference to it."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol

from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.messages.settlement import Outcome, Settlement

__all__ = ["AcknowledgementRegistry", "HeldMessage"]

_ACTIONS = {"jbxcommit": False, "jbxrollback": True}
_REMEMBERED = 1000


class HeldMessage(Protocol):
    """A message that waits for its acknowledgement, as the registry uses it."""

    @property
    def message_id(self) -> str | None:
        """The message id; None if the message has none."""
        ...

    @property
    def acknowledged(self) -> bool:
        """True once the message is acknowledged."""
        ...

    def acknowledge(self) -> Settlement:
        """Acknowledge the message; never blocks."""
        ...

    def set_rollback_only(self) -> None:
        """Mark the unit of the message for rollback."""
        ...


class AcknowledgementRegistry:
    """The held messages of one endpoint by message id, as the acknowledge activity of Jitterbit's connector uses them.

    It remembers the outcome of at least the last 1,000 messages, so that the error for a late acknowledgement can name
    it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, HeldMessage] = {}
        self._ended: dict[str, Outcome] = {}
        self._ended_before: dict[str, Outcome] = {}  # the previous generation

    def register(self, context: HeldMessage) -> None:
        """Register a held message. A later message with the same id replaces the earlier one."""
        if context.message_id is not None:
            with self._lock:
                self._held[context.message_id] = context

    def unregister(self, contexts: Sequence[HeldMessage], outcome: Outcome | None) -> None:
        """Remove the messages of a settled unit, and remember its outcome."""
        with self._lock:
            held = self._held
            ended = [it.message_id for it in contexts if it.message_id is not None and held.get(it.message_id) is it]
            for message_id in ended:
                del held[message_id]
            self._remember(ended, outcome or Outcome.LOST)

    def is_held(self, message_id: str) -> bool:
        """Return True while a message with this id waits for its acknowledgement, or for the others of its unit."""
        return message_id in self._held

    def settle(self, message_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or mark its unit for rollback first. Never blocks.

        Args:
            message_id: The id of the held message.
            action: "JBXCommit" or "JBXRollback"; upper and lower case do not matter.

        Returns:
            The settlement of the message's unit.

        Raises:
            ConfigurationError: The action is neither of the two.
            IllegalStateError: No such message is held: it never was, its unit is settled, or it is acknowledged
                already.
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
            f"No message {message_id[:100]!r} is held. Only messages that were delivered with hold_until_ack and"
            " are not settled yet are."
        )

    def _remember(self, message_ids: Iterable[str], outcome: Outcome) -> None:
        self._ended.update(dict.fromkeys(message_ids, outcome))
        if len(self._ended) >= _REMEMBERED:
            self._ended_before, self._ended = self._ended, {}
