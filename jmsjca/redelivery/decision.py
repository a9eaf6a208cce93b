"""The decision about a redelivered message, made before the application's handler receives it."""

from dataclasses import dataclass
from threading import Lock

from jmsjca.errors import IllegalStateError
from jmsjca.log_records import get_logger
from jmsjca.redelivery.encounter import Encounter, EncounterCache
from jmsjca.redelivery.policy import Action, Delay, Delete, Deliver, Move, RedeliveryPolicy

__all__ = ["Decision", "RedeliveryHandler"]

logger = get_logger("jmsjca.redelivery")


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one delivery.

    Attributes:
        action: The action.
        count: The number of redeliveries seen so far; 0 on the first delivery.
        new: True for the first known redelivery of the message. The cache may have dropped earlier ones.
    """

    action: Action
    count: int = 0
    new: bool = False


_FIRST = Decision(Deliver())


class RedeliveryHandler:
    """Decides about the messages of one endpoint. Thread-safe. A pickled copy counts independently.

    Args:
        policy: The policy for all messages for which the handler set no other policy.
        capacity: The minimum number of messages for which state is kept.

    Attributes:
        has_encounters: True if state of any message was ever kept. It is read for each message.
    """

    def __init__(self, policy: RedeliveryPolicy, capacity: int = 5000) -> None:
        self.policy = policy
        self._encounters = EncounterCache(capacity)
        self.has_encounters = False
        self._lock = Lock()
        self._warned = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def decide(
        self,
        message_id: str | None,
        *,
        redelivered: bool,
        delivery_count: int | None = None,
        shared: bool = False,
        unproven: int | None = 0,
    ) -> Decision:
        """Count a delivery and return the decision about it. Call this once per delivery.

        A message that was delivered before has the redelivered flag or a count above 1 (JMS 3.1, section 3.5.11). If
        the handler rejected it, it is moved or deleted. If the handler asked for a delay, this replaces the policy's
        delay. Otherwise the policy moves or deletes it only after handlers have received it often enough.

        Args:
            message_id: The id of the message. A message without an id is delivered; the first one is logged.
            redelivered: The redelivered flag of the message.
            delivery_count: The broker's count of deliveries, including this one; None if it does not count.
            shared: True if other messages may have the same id, so that only the broker's count is reliable.
            unproven: The number of redeliveries in the broker's count that no handler may have seen, because the broker
                counts prefetched messages; 0 if it counts hand-overs only; None if its count and flag prove nothing.
        """
        if not redelivered and (delivery_count or 0) <= 1:
            return _FIRST
        if message_id is None:
            self._warn_once()
            return _FIRST
        encounter = self.encounter(message_id)
        new = encounter.is_first_arrival()
        count, waited = encounter.count_arrival(delivery_count, shared=shared)
        proven = count if unproven == 0 else encounter.proven_count(unproven, shared=shared)
        policy = encounter.policy or self.policy
        return Decision(_action(encounter, policy, count, proven, waited=waited), count, new)

    def was_handed_over(self, message_id: str) -> bool:
        """Return True if a handler of this process received the message and did not commit."""
        known = self.find_encounter(message_id)
        return known is not None and known.hand_overs > 0

    def encounter(self, message_id: str | None) -> Encounter:
        """Return the state of a message, which is created if there is no state yet.

        Raises:
            IllegalStateError: The message has no id.
        """
        if message_id is None:
            raise IllegalStateError(
                "This message has no id, so its redeliveries cannot be tracked. Its sender must set an id."
            )
        self.has_encounters = True
        return self._encounters.encounter(message_id)

    def policy_of(self, message_id: str | None) -> RedeliveryPolicy:
        """Return the effective policy of a message."""
        known = self.find_encounter(message_id)
        return (known and known.policy) or self.policy

    def find_encounter(self, message_id: str | None) -> Encounter | None:
        """Return the state of a message, or None."""
        return None if message_id is None else self._encounters.find(message_id)

    def set_handling(self, message_id: str | None, text: str) -> None:
        """Set the redelivery handling of one message, from its next delivery on.

        Indexes count from the first redelivery: an action with an index in the past applies at once.

        Raises:
            InvalidRedeliveryHandlingError: The text cannot be parsed.
            IllegalStateError: The message has no id.
        """
        policy = self.policy.with_text(text)
        self.encounter(message_id).policy = policy

    def _warn_once(self) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            logger.warning(
                "A redelivered message without an id came from %s. Such messages are always redelivered at"
                " once; their sender must set ids.",
                self.policy.source.name,
            )


def _action(encounter: Encounter, policy: RedeliveryPolicy, count: int, proven: int, *, waited: bool) -> Action:
    action = policy.action(count)
    if encounter.rejection is not None:
        action = policy.dead_letter_action
    elif isinstance(action, Delete | Move):
        action = policy.action(proven)
    if isinstance(action, Delete | Move):
        return Deliver() if waited and encounter.unmovable else action
    requested = encounter.take_retry_delay()
    if requested is not None:
        return Delay(round(requested * 1000))
    return Deliver() if waited and isinstance(action, Delay) else action
