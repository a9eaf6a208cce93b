"""Limits, acknowledge modes, clocks, credentials and destination settings."""

import time
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Protocol

from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError

__all__ = [
    "SYSTEM_CLOCK",
    "AcknowledgeMode",
    "Clock",
    "Credentials",
    "Deadline",
    "DestinationSettings",
    "Limits",
    "SystemClock",
]


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


class AcknowledgeMode(Enum):
    """The acknowledgement of a session that is not transacted (JMS 3.1, section 6.2.10)."""

    AUTO = "auto"
    """Each message is acknowledged as it is handed over: never twice, but lost if the program dies with it."""
    CLIENT = "client"
    """`Message.acknowledge` acknowledges everything that the session has received."""
    DUPS_OK = "dups_ok"
    """As AUTO; the provider may acknowledge late, and repeat messages after a failure."""
    INDIVIDUAL = "individual"
    """`Message.acknowledge` acknowledges that one message."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since the epoch: for timestamps and expiry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: for waiting."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()


SYSTEM_CLOCK: Clock = SystemClock()


class Deadline:
    """The end of a timeout that several waits share.

    Args:
        seconds: Timeout in seconds, from now; None never ends.
        clock: Source of the time.
    """

    __slots__ = ("_clock", "_end")

    def __init__(self, seconds: float | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock.monotonic() + seconds

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, 0 once it has passed; None waits forever."""
        return None if self._end is None else max(self._end - self._clock.monotonic(), 0.0)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A pair that travels together: a password without its user name is ignored.

    Args:
        user_name: Who connects.
        password: Their password; left out of every text form.
    """

    user_name: str
    password: str | None = field(default=None, repr=False)


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
