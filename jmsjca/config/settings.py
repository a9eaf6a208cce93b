"""The bounds that keep memory and disk finite."""

from dataclasses import dataclass, fields

from jmsjca.errors import ConfigurationError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection. Every one is finite by default.

    Args:
        prefetch_messages: How many messages a consumer takes ahead of their use. Small, so that competing consumers
            share a queue fairly; 0 takes each when it is asked for.
        prefetch_bytes: How many bytes of bodies one chunk holds at most (one message always passes).
        message_bytes: The largest message that is sent, or taken from a broker on the network.
        lock_timeout: Seconds to wait for another process that writes the same store.
        duplicate_history: How many ids are remembered per destination to recognise a message that is sent again.
        acknowledgement_timeout: The longest time, in seconds, for which a message can ask to wait for its
            acknowledgement where acknowledgement is held.

    Raises:
        ConfigurationError: One is below zero.
    """

    prefetch_messages: int = 10
    prefetch_bytes: int = 16 * 1024 * 1024
    message_bytes: int = 100 * 1024 * 1024
    lock_timeout: float = 30.0
    duplicate_history: int = 100_000
    acknowledgement_timeout: float = 86_400.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise ConfigurationError(f"{each.name} is {getattr(self, each.name)}; a limit is not below 0.")

    @property
    def chunk(self) -> int:
        """How many messages are received together at most: one at least."""
        return max(self.prefetch_messages, 1)
