"""What a delivered message is tied to, and how safely messages are kept."""

from enum import IntEnum
from typing import Protocol

from jmsjca.messages.settlement import Settlement

__all__ = ["DeliveryContext", "DeliveryMode"]


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
