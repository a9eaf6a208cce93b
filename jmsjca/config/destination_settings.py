"""What a destination does with messages that fail, expire or belong together."""

from dataclasses import dataclass

from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError

__all__ = ["DestinationSettings"]


@dataclass(frozen=True, slots=True)
class DestinationSettings:
    """Given to `Admin.configure`; the broker keeps them, and they hold for everybody who uses it.

    Args:
        max_deliveries: How often a message is delivered before it goes to the dead-letter destination; None for ever.
        dead_letter: Where it goes then; None: it is deleted.
        expiry: Where expired messages go; None: they are deleted.
        exclusive: True if only the consumer that has been there longest receives; the next takes over when it closes.

    Raises:
        ConfigurationError: ``max_deliveries`` is below 1, there is a dead-letter destination without it, or a
            destination is temporary.
    """

    max_deliveries: int | None = None
    dead_letter: Destination | None = None
    expiry: Destination | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        if self.max_deliveries is not None and self.max_deliveries < 1:
            raise ConfigurationError(
                f"max_deliveries is {self.max_deliveries}, but a message is delivered once or more."
            )
        if self.dead_letter is not None and self.max_deliveries is None:
            raise ConfigurationError(f"The dead-letter destination {self.dead_letter} needs max_deliveries as well.")
        for place in (self.dead_letter, self.expiry):
            if place is not None and place.temporary:
                raise ConfigurationError(f"{place} is temporary: it would be gone when a message is to go there.")
