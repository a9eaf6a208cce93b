"""What a delivered message is tied to, and how safely messages are kept."""

from enum import IntEnum
from typing import Protocol

from jmsjca.errors import IllegalStateError
from jmsjca.messages.settlement import Settlement

__all__ = ["Delivered", "DeliveryContext", "DeliveryMode"]


class DeliveryMode(IntEnum):
    """Whether a message must survive the broker's restart (JMS 3.1, section 3.4.2)."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class DeliveryContext(Protocol):
    """What a delivered message reaches through its one internal slot: the unit that it belongs to."""

    def acknowledge(self) -> Settlement:
        """Acknowledge the message."""
        ...

    def set_rollback_only(self) -> None:
        """Make the unit roll back."""
        ...


class Delivered:
    """What a message can do to the unit that delivered it."""

    __slots__ = ("_context",)

    delivery_count: int
    _context: DeliveryContext | None

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before: 0 the first time."""
        return max(self.delivery_count - 1, 0)

    def acknowledge(self) -> Settlement:
        """Acknowledge a received message; never blocks in a listener.

        Under `AcknowledgeMode.CLIENT` it acknowledges all that the session received, under `INDIVIDUAL` this message.
        In a listener without held acknowledgement it changes nothing: the handler's return acknowledges.

        Returns:
            The settlement of the unit that the message belongs to.

        Raises:
            IllegalStateError: The message was not received.
        """
        return self._delivered().acknowledge()

    def set_rollback_only(self) -> None:
        """Make the unit of this delivery roll back although the handler returns normally.

        Raises:
            IllegalStateError: The message was not received, or its unit is settled.
        """
        self._delivered().set_rollback_only()

    def bind(self, context: DeliveryContext) -> None:
        """Tie a delivered message to its unit. For whoever delivers it."""
        self._context = context

    def _delivered(self) -> DeliveryContext:
        if self._context is None:
            raise IllegalStateError("This message was not delivered by a session or a listener, so it has no unit.")
        return self._context
