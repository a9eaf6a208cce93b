"""Limits, acknowledge modes, clocks, credentials and destination settings."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal, Protocol

from jmsjca.arguments import check_flag, is_number, wrong_argument
from jmsjca.destinations import Destination, check_destination
from jmsjca.errors import ConfigurationError

__all__ = [
    "MAX_INT",
    "SYSTEM_CLOCK",
    "UNITS_PER_HANDLER",
    "AcknowledgeMode",
    "Clock",
    "Credentials",
    "Deadline",
    "DestinationSettings",
    "FactoryKind",
    "Limits",
    "SystemClock",
]

UNITS_PER_HANDLER = 10
"""The default of ``max_outstanding`` of a listener, for each handler of ``endpoint_pool_max_size``."""

MAX_INT = 2**31 - 1
"""Java's largest int: the largest number of handlers, messages and open units of a listener, and of deliveries."""

FactoryKind = Literal["unified", "queue", "topic"]
"""The messaging domains of a connection factory's connections: both, or one."""

_LARGEST: Mapping[str, float] = {
    "prefetch_messages": 2**31 - 1,  # the credit of AMQP clients
    "lock_timeout": (2**31 - 1) // 1000,  # SQLite counts milliseconds
    "acknowledgement_timeout": math.inf,
}
_LARGEST_OTHER = 2**63 - 1  # SQLite's largest integer


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one connection. All are finite by default.

    Args:
        prefetch_messages: The number of messages that a consumer prefetches, at most 2147483647. The default is small,
            so that competing consumers share a queue fairly; 0 disables prefetching.
        prefetch_bytes: The maximum size of the bodies in one chunk, in bytes. A larger message is delivered alone.
        message_bytes: The maximum size of a message that is sent, or received from a broker on the network, in bytes.
        sends_in_flight: The maximum number of incomplete asynchronous sends of a session; at least 1.
        lock_timeout: Seconds to wait while another process writes to the same store, at most 2147483 (24 days).
        duplicate_history: The number of message ids kept per destination for the detection of duplicates.
        acknowledgement_timeout: The maximum acknowledgement timeout that a message can request under held
            acknowledgement, in seconds.

    Raises:
        ConfigurationError: A limit is no number, below zero, or larger than brokers and SQLite can store.
    """

    prefetch_messages: int = 10
    prefetch_bytes: int = 16 * 1024 * 1024
    message_bytes: int = 100 * 1024 * 1024
    sends_in_flight: int = 256
    lock_timeout: float = 30.0
    duplicate_history: int = 100_000
    acknowledgement_timeout: float = 86_400.0

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_limit(each.name, getattr(self, each.name), whole=isinstance(each.default, int))

    @property
    def chunk(self) -> int:
        """The maximum number of messages in one chunk; at least 1."""
        return max(self.prefetch_messages, 1)


def _check_limit(name: str, value: Any, *, whole: bool) -> None:
    kind = "a whole number" if whole else "a number"
    if not is_number(value) or (whole and not isinstance(value, int)):
        raise wrong_argument(name, value, f"{kind} from 0 on", ConfigurationError)
    if not value >= 0:  # nor NaN
        raise ConfigurationError(f"{name} is {value}; a limit is not below 0.")
    if value > (most := _LARGEST.get(name, _LARGEST_OTHER)):
        raise wrong_argument(name, value, f"{kind} from 0 to {most}", ConfigurationError)


class AcknowledgeMode(Enum):
    """The acknowledgement of a session that is not transacted (JMS 3.1, section 6.2.10)."""

    AUTO = "auto"
    """Each message is acknowledged on delivery: never delivered twice, but lost if the program dies meanwhile."""
    CLIENT = "client"
    """`Message.acknowledge` acknowledges all messages that the session has received."""
    DUPS_OK = "dups_ok"
    """As AUTO, but the provider may acknowledge late, and redeliver messages after a failure."""
    INDIVIDUAL = "individual"
    """`Message.acknowledge` acknowledges only that message."""


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Return the seconds since the epoch, for timestamps and expiry."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock, for timeouts."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    # Without a frame of their own: listeners ask several times for each message.
    now = staticmethod(time.time)
    """Return the seconds since the epoch."""

    monotonic = staticmethod(time.monotonic)
    """Return the seconds of a monotonic clock."""


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
    """A user name and its password. A password without a user name is ignored.

    Args:
        user_name: The user name.
        password: The password; never part of `repr`.
    """

    user_name: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DestinationSettings:
    """The settings of a destination, for `Admin.configure`. The broker stores them; they apply to all its clients.

    Args:
        max_deliveries: The number of deliveries before a message is dead-lettered, at most 2147483647; None means no
            maximum.
        dead_letter: The dead-letter destination; None deletes the message.
        expiry: The destination of expired messages; None deletes them.
        exclusive: True to deliver only to the oldest consumer; when it closes, the next oldest takes over.

    Raises:
        ConfigurationError: ``max_deliveries`` is below 1 or too large, there is a dead-letter destination without it,
            or a destination is temporary.
        InvalidDestinationError: A destination is no `Destination`.
    """

    max_deliveries: int | None = None
    dead_letter: Destination | None = None
    expiry: Destination | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        check_flag("exclusive", self.exclusive)
        if self.max_deliveries is not None and (not is_number(self.max_deliveries) or self.max_deliveries % 1):
            raise wrong_argument("max_deliveries", self.max_deliveries, "a whole number or None", ConfigurationError)
        if self.max_deliveries is not None and self.max_deliveries < 1:
            raise ConfigurationError(
                f"max_deliveries is {self.max_deliveries}, but a message is delivered once or more."
            )
        if self.max_deliveries is not None and self.max_deliveries > MAX_INT:
            wanted = f"from 1 to {MAX_INT}, or None for no maximum"
            raise wrong_argument("max_deliveries", self.max_deliveries, wanted, ConfigurationError)
        if self.dead_letter is not None and self.max_deliveries is None:
            raise ConfigurationError(f"The dead-letter destination {self.dead_letter} needs max_deliveries as well.")
        for place in (each for each in (self.dead_letter, self.expiry) if each is not None):
            check_destination(place)
            if place.temporary:
                raise ConfigurationError(f"{place} is temporary: it would be gone when a message is to go there.")
