"""The limits of a connection, and the modes that sessions and factories have."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Literal

from jmsjca.arguments import is_number, wrong_argument
from jmsjca.errors import ConfigurationError

__all__ = ["UNITS_PER_HANDLER", "AcknowledgeMode", "FactoryKind", "Limits"]

UNITS_PER_HANDLER = 10
"""The default of a listener's ``max_outstanding``, per handler of ``endpoint_pool_max_size``."""

FactoryKind = Literal["unified", "queue", "topic"]
"""The messaging domains of a factory's connections: both, or one of them."""

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
        ConfigurationError: A limit is not a number, is negative, or is larger than brokers and SQLite can store.
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
            name, value, whole = each.name, getattr(self, each.name), isinstance(each.default, int)
            kind = "a whole number" if whole else "a number"
            if not is_number(value) or (whole and not isinstance(value, int)):
                raise wrong_argument(name, value, f"{kind} from 0 on", ConfigurationError)
            if not value >= 0:  # nor NaN
                raise ConfigurationError(f"{name} is {value}; a limit is not below 0.")
            if value > (most := _LARGEST.get(name, _LARGEST_OTHER)):
                raise wrong_argument(name, value, f"{kind} from 0 to {most}", ConfigurationError)

    @property
    def chunk(self) -> int:
        """The maximum number of messages in one chunk; at least 1."""
        return max(self.prefetch_messages, 1)


class AcknowledgeMode(Enum):
    """The acknowledgement of a session that is not transacted (JMS 3.1, section 6.2.10)."""

    AUTO = "auto"
    """Each message is acknowledged on delivery. It is never redelivered, but lost if the program dies at that time."""
    CLIENT = "client"
    """`Message.acknowledge` acknowledges all messages that the session has received."""
    DUPS_OK = "dups_ok"
    """As AUTO, but the provider may acknowledge late, and redeliver messages after a failure."""
    INDIVIDUAL = "individual"
    """`Message.acknowledge` acknowledges only that message."""
