"""Broker profiles: the name, the protocol and the capabilities of a broker, and its ways of speaking AMQP 1.0."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidClientIDError, InvalidDestinationError, InvalidOptionError, NotSupportedError
from jmsjca.spi import Admin, Capabilities, Connection

__all__ = [
    "MAX_SENDER_LINKS",
    "AMQPBrokerProfile",
    "AddressStyle",
    "BrokerProfile",
    "CreditStyle",
    "foreign_subscription_error",
    "no_management_error",
]


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """A broker over one protocol.

    Args:
        name: The product name that the broker announces to its clients.
        protocol: The protocol's name.
        release: The release that the contract suite ran against.
        capabilities: The capabilities of a connection to the broker.
    """

    name: str
    protocol: str
    release: str
    capabilities: Capabilities

    def require(self, capability: str, *, requested: bool = True) -> None:
        """Raise an error unless the broker has a requested capability.

        Args:
            capability: The name of the field of `jmsjca.spi.Capabilities`.
            requested: False if the caller does not request the capability; then nothing is checked.

        Raises:
            NotSupportedError: The capability is requested and missing.
        """
        if requested and not getattr(self.capabilities, capability):
            raise NotSupportedError(
                f"{self.name} lacks the capability {capability} over {self.protocol}: do without it, or use a broker"
                " that has it."
            )

    def require_source(
        self, source: Destination | Subscription, client_id: str | None, *, no_local: bool = False
    ) -> None:
        """Raise an error unless a connection may have a consumer of a source.

        Args:
            source: The destination or subscription.
            client_id: The client id of the connection, the owner of durable subscriptions; None without one.
            no_local: True if the consumer excludes the messages of its own connection.

        Raises:
            NotSupportedError: The broker does not support such a consumer, or the subscription is shared and excludes
                messages.
            InvalidDestinationError: The source is a queue, and the consumer excludes messages.
            InvalidClientIDError: The subscription belongs to another client id.
        """
        self.require("no_local", requested=no_local)
        if not isinstance(source, Subscription):
            if no_local and isinstance(source, Queue):
                raise InvalidDestinationError(f"no_local applies to subscribers of topics, not to {source}.")
            return
        if no_local and source.shared:
            raise NotSupportedError("A shared subscription cannot use no_local; use one that is not shared.")
        self.require("durable_no_local", requested=no_local and source.durable)
        self.require("shared", requested=source.shared)
        self.require("durable", requested=source.durable)
        self.require_owner(source, client_id)

    def require_owner(self, subscription: Subscription, client_id: str | None) -> None:
        """Raise an error unless a subscription belongs to a client id. A shared one may belong to all clients.

        Raises:
            InvalidClientIDError: The subscription belongs to another client id.
        """
        if subscription.client_id is None and (subscription.shared or not subscription.durable):
            return
        if not client_id or subscription.client_id not in {None, client_id}:
            raise foreign_subscription_error(subscription, client_id)

    def with_capabilities(self, added: Mapping[str, Any]) -> Self:
        """Return the profile with further capabilities, or other values of them."""
        return replace(self, capabilities=replace(self.capabilities, **added))


def foreign_subscription_error(subscription: Subscription, client_id: str | None) -> InvalidClientIDError:
    """Return the error for a durable subscription that belongs to another client id than the connection's."""
    return InvalidClientIDError(
        f"The durable subscription {subscription.name!r} belongs to the client id {subscription.client_id!r}, and this"
        f" connection has {client_id!r}."
    )


def no_management_error(broker: BrokerProfile) -> InvalidOptionError:
    """Return the error for the option ``management_url`` on a broker that has no known management."""
    return InvalidOptionError(
        f"Option management_url is for ActiveMQ Classic and RabbitMQ, and this is {broker.name}: leave it out."
    )


CreditStyle = Literal["drain", "rabbitmq3", "rabbitmq4"]
"""How a broker that speaks AMQP revokes the credit of a link.

By drain (AMQP 1.0 section 2.6.7). RabbitMQ 3 fails at drain, but answers each change of the credit. RabbitMQ 4 answers
each drain, also without credit, behind what it received before.
"""

AddressStyle = Literal["capability", "encoded", "exchange", "path", "scheme"]
"""How a broker that speaks AMQP distinguishes queues from topics.

By a terminus capability, a percent-encoded path, an exchange, a path, or a URL scheme.
"""

MAX_SENDER_LINKS = 64  #: destinations with a separate link

_ANONYMOUS_RELAY = "ANONYMOUS-RELAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class AMQPBrokerProfile(BrokerProfile):
    """A broker, identified by the product name and version in its open frame.

    Args:
        product: The product name; empty for brokers that were not tested.
        version: The first major version; 0 for all.
        naming: The style of its addresses.
        credit: How it revokes credit.
        counts_deliveries: True if it fills in the delivery count; otherwise it only marks the first delivery.
        duplicate_ids_before_transaction: True if a transaction rolls back because of a message with a duplicate id that
            is already known. Messages with a duplicate id are then sent before the transaction: sending them again has
            no effect.
        translate_selector: Converts a selector to one that the broker decides as JMS says, as far as it can.
        in_use_texts: Texts of its errors for a source that has a consumer already, where the condition is ambiguous.
        other_kind_texts: Texts of its errors for a queue that was requested as a topic, or the other way round.
        offers_relay: True if one link can send messages to all destinations.
        max_sender_links: The number of destinations with a separate link, if the broker offers a relay.
        relay_exclusions: Names of destinations that cannot be reached over that link.
        refuses_links_to_missing: True if a sender link to a temporary destination that does not exist is refused; False
            if the broker creates a queue instead, or its topology checks the destination.
        presettles_in_transaction: True if it ends the link because of a message of a transaction that it rejects,
            settled or not, and ignores all later messages of the link. Then it need not reply to each.
        keeps_sessions: True if the session of a closed link is kept for the next one.
        create_admin: Creates its management, with seconds to wait for each response; None without management over AMQP.
        required_offers: The capability that the open frame must offer for a capability of JMS; without the offer the
            connection does not have it.
        announced: The product and the version in the open frame of a connection.
    """

    product: str
    version: int = 0
    naming: AddressStyle
    credit: CreditStyle = "drain"
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
    create_admin: Callable[[Connection, float], Admin] | None = None
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
