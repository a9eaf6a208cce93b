"""Decides what to do with a message before the handler sees it."""

import logging
from dataclasses import dataclass
from threading import Lock

from jmsjca.errors import IllegalStateError
from jmsjca.redelivery.encounter import Encounter, EncounterCache
from jmsjca.redelivery.policy import Action, Delay, Deliver, RedeliveryPolicy

__all__ = ["Decision", "RedeliveryHandler"]

logger = logging.getLogger("jmsjca.redelivery")


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one delivery.

    Attributes:
        action: What to do.
        count: For the how-manieth time the message is seen redelivered; 0 the first time.
        new: True if it is seen redelivered for the first time, as far as is remembered.
    """

    action: Action
    count: int = 0
    new: bool = False


_FIRST = Decision(Deliver())


class RedeliveryHandler:
    """Decides for the messages of one endpoint; for any number of threads.

    Args:
        policy: What to do with messages for which the application's handler wants nothing else.
        capacity: How many messages are remembered at least.
    """

    def __init__(self, policy: RedeliveryPolicy, capacity: int = 5000) -> None:
        self.policy = policy
        self._encounters = EncounterCache(capacity)
        self._lock = Lock()
        self._warned = False

    def decide(self, message_id: str | None, *, redelivered: bool, delivery_count: int | None = None) -> Decision:
        """Count a delivery, and say what to do with it. To be called once for each delivery.

        A message that was delivered before has the redelivered flag or a count above 1 (JMS 3.1, section 3.5.11).

        Args:
            message_id: Which message it is; without an id it is delivered, with a warning for the first such.
            redelivered: Whether its redelivered flag is set.
            delivery_count: The broker's count of deliveries, this one included; None if it does not count.
        """
        if not redelivered and (delivery_count or 0) <= 1:
            return _FIRST
        if message_id is None:
            self._warn_once()
            return _FIRST
        encounter = self.encounter(message_id)
        new = encounter.is_first_arrival()
        count, waited = encounter.count_arrival(delivery_count)
        action = (encounter.policy or self.policy).action(count)
        return Decision(Deliver() if waited and isinstance(action, Delay) else action, count, new)

    def encounter(self, message_id: str | None) -> Encounter:
        """Give what is remembered of a message, from now on if it was nothing.

        Raises:
            IllegalStateError: The message has no id.
        """
        if message_id is None:
            raise IllegalStateError(
                "This message has no id, so nothing can be remembered of it; let its sender set one."
            )
        return self._encounters.encounter(message_id)

    def policy_of(self, message_id: str | None) -> RedeliveryPolicy:
        """Give what holds for a message."""
        known = self.find_encounter(message_id)
        return (known and known.policy) or self.policy

    def find_encounter(self, message_id: str | None) -> Encounter | None:
        """Give what is remembered of a message; None if nothing is."""
        return None if message_id is None else self._encounters.find(message_id)

    def set_handling(self, message_id: str | None, text: str) -> None:
        """Let another redelivery handling hold for one message, from its next delivery on.

        Its actions count from the first encounter on: an index that is past already is in force then.

        Raises:
            InvalidRedeliveryHandlingError: It is not valid.
            IllegalStateError: The message has no id.
        """
        policy = self.policy.with_text(text)
        self.encounter(message_id).policy = policy

    def _warn_once(self) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            logger.warning(
                "A redelivered message without an id came from %s. Such messages are delivered at once, however often"
                " they come; let their sender set ids.",
                self.policy.source.name,
            )
