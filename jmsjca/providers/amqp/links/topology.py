"""Queues that a client declares, for brokers that create no node when a link attaches."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from jmsjca.destinations import Destination, DestinationKind, Subscription
from jmsjca.providers.amqp.codec.addresses import Address
from jmsjca.spi import Admin

__all__ = ["DeclaredSource", "Topology"]


class DeclaredSource(NamedTuple):
    """The queue from which a consumer receives."""

    address: Address
    counts_deliveries: bool  #: True if failed deliveries are counted
    redelivers_locally: bool  #: True if the consumer keeps released messages until it is closed
    filters: Mapping[str, Any] = MappingProxyType({})  #: further filters of the source, by their descriptors
    selects: Callable[[bytes], bool] | None = None  #: returns True for messages to receive; None for all


class Topology(Protocol):
    """Declares queues, exchanges and bindings. Every call may wait for the broker."""

    @property
    def admin(self) -> Admin:
        """The administration of the broker."""
        ...

    def ensure_target(self, to: Destination, timeout: float) -> None:
        """Declare a queue, unless it is known to exist. The timeout is for each response.

        Raises:
            InvalidDestinationError: The broker refuses the name.
        """
        ...

    def forget_targets(self) -> None:
        """Forget which queues are known to exist."""
        ...

    def declare_source(self, source: Destination | Subscription) -> DeclaredSource:
        """Declare the queue of a consumer.

        Raises:
            InvalidDestinationError: The broker refuses the name.
            IllegalStateError: The subscription is in use, with other terms or unshared.
        """
        ...

    def unsubscribe(self, subscription: Subscription) -> None:
        """Delete the queue of a durable subscription.

        Raises:
            InvalidDestinationError: There is no such subscription.
            IllegalStateError: It has consumers.
        """
        ...

    def create_temporary(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination, which the broker deletes with the connection."""
        ...

    def delete_temporary(self, what: Destination) -> None:
        """Delete a temporary destination with its messages."""
        ...
