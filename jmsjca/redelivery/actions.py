"""What can be done with a message that comes again."""

from dataclasses import dataclass

from jmsjca.destinations import Destination, DestinationKind, destination

__all__ = ["Action", "Delay", "Delete", "Deliver", "Move"]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the message to the handler at once."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Hand the message to the handler after a time.

    Attributes:
        milliseconds: How long to wait; 0 is not at all.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Acknowledge the message; the handler does not see it."""


@dataclass(frozen=True, slots=True)
class Move:
    """Send a copy of the message elsewhere and acknowledge it; the handler does not see it.

    Attributes:
        kind: "queue" or "topic".
        name: The name of the destination, with what ``$`` stood for.
    """

    kind: DestinationKind
    name: str

    @property
    def destination(self) -> Destination:
        """Where the copy goes."""
        return destination(self.name, self.kind)


Action = Deliver | Delay | Delete | Move
