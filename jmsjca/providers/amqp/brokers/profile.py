"""The profile of a broker that speaks AMQP 1.0, and the queues that a client declares on it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from jmsjca.destinations import Destination, DestinationKind, Subscription
from jmsjca.providers.amqp.admin import ManagementConnection
from jmsjca.providers.amqp.codec.addresses import Address, AddressStyle
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.spi import Admin

__all__ = ["MAX_SENDER_LINKS", "AMQPBrokerProfile", "DeclaredSource", "Topology"]


class DeclaredSource(NamedTuple):
    """The queue from which a consumer receives."""

    address: Address
    counts_deliveries: bool  #: True if failed deliveries are counted
    redelivers_locally: bool  #: True if the consumer keeps released messages until it is closed
    drops_returned: bool = False  #: True if the broker drops a message that was returned some times
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


MAX_SENDER_LINKS = 64  #: destinations with a link of their own

_ANONYMOUS_RELAY = "ANONYMOUS-RELAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class AMQPBrokerProfile(BrokerProfile):
    """A broker, identified by the product name and version in its open frame.

    Args:
        product: The product name; empty for brokers that were not tested.
        version: The first major version; 0 for all.
        naming: The style of its addresses.
        supports_drain: True if the broker implements drain.
        answers_drain: True if it answers each drain, also without credit, behind what it received before.
        counts_deliveries: True if it fills in the delivery count; otherwise it only marks the first delivery.
        duplicate_ids_before_transaction: True if a transaction rolls back because of a message with a duplicate id that
            is already known. Messages with a duplicate id are then sent before the transaction: sending them again has
            no effect.
        translate_selector: Converts a selector to one that the broker decides as JMS says, as far as it can.
        in_use_texts: Texts of its errors for a source that has a consumer already, where the condition is ambiguous.
        other_kind_texts: Texts of its errors for a queue that was requested as a topic, or the other way round.
        offers_relay: True if one link can send messages to all destinations.
        max_sender_links: The number of destinations with a link of their own, where the broker offers a relay.
        relay_exclusions: Names of destinations that cannot be reached over that link.
        refuses_links_to_missing: True if a sender link to a temporary destination that does not exist is refused; False
            if the broker creates a queue instead, or its topology checks the destination.
        presettles_in_transaction: True if it ends the link because of a message of a transaction that it rejects,
            settled or not, and ignores all later messages of the link. Then it need not reply to each.
        keeps_sessions: True if the session of a closed link is kept for the next one.
        create_topology: Creates what declares queues, with seconds to wait for each response; None if the broker
            creates them when links attach.
        create_admin: Creates its management, with seconds to wait for each response; None without management over AMQP.
        extend_admin: Adds to the management of the topology what another protocol offers; None for nothing.
        required_offers: The capability that the open frame must offer for a capability of JMS; without the offer the
            connection does not have it.
        announced: The product and the version in the open frame of a connection.
    """

    product: str
    version: int = 0
    naming: AddressStyle
    supports_drain: bool = True
    answers_drain: bool = False
    counts_deliveries: bool = True
    duplicate_ids_before_transaction: bool = False
    translate_selector: Callable[[str], str] = str
    in_use_texts: tuple[str, ...] = ()
    other_kind_texts: tuple[str, ...] = ()
    offers_relay: bool = False
    max_sender_links: int = MAX_SENDER_LINKS
    relay_exclusions: tuple[str, ...] = ()
    refuses_links_to_missing: bool = True
    presettles_in_transaction: bool = False
    keeps_sessions: bool = False
    create_topology: Callable[[Engine, float], Topology] | None = None
    create_admin: Callable[[ManagementConnection, float], Admin] | None = None
    extend_admin: Callable[[Admin], None] | None = None
    required_offers: Mapping[str, str] = field(default_factory=dict[str, str])
    announced: str = field(default="", compare=False)

    def negotiated(self, offered: Collection[str]) -> "AMQPBrokerProfile":
        """Return the profile for a connection: without the capabilities that this release of the broker does not offer.

        Args:
            offered: The capabilities in the broker's open frame.
        """
        missing: dict[str, Any] = {
            capability: False for capability, needed in self.required_offers.items() if needed not in offered
        }
        capabilities = replace(self.capabilities, **missing)
        offers_relay = _ANONYMOUS_RELAY in offered
        own_links = self.max_sender_links if offers_relay else MAX_SENDER_LINKS
        return replace(self, capabilities=capabilities, offers_relay=offers_relay, max_sender_links=own_links)

    def with_transactions(self) -> "AMQPBrokerProfile":
        """Return the profile with transactions."""
        capabilities = replace(self.capabilities, transacted_receive=True, transacted_send=True, atomic=True)
        return replace(self, capabilities=capabilities)

    def can_relay_to(self, to: Destination) -> bool:
        """Return True if the link to all destinations reaches this one."""
        return self.offers_relay and to.name not in self.relay_exclusions
