"""The profile of a broker that speaks AMQP 1.0."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.providers.amqp.codec.addresses import AddressStyle
from jmsjca.providers.common.broker_profile import BrokerProfile

__all__ = ["AMQPBrokerProfile"]

_ANONYMOUS_RELAY = "ANONYMOUS-RELAY"


@dataclass(frozen=True, slots=True)
class AMQPBrokerProfile:
    """A broker, by the product name in its open frame.

    Args:
        product: The name; none for those that nobody tested.
        naming: How it names destinations.
        data: What it can do.
        drains: True if it understands drain.
        counts: True if it fills in how often a message was delivered before; else it marks the first delivery.
        ids_first: True if a transaction rolls back for a message whose duplicate id is known. Then messages with such
            an id are sent before the transaction: sending them again is harmless.
        filter_of: Writes a selector as the broker wants it.
        offers: What its open frame must offer for a capability; without it the connection does without.
        in_use: What it says if something has a consumer already, where no condition tells.
        other_kind: What it says if a queue is asked for and it has a topic, or the other way round.
        relays: True if it takes messages for all destinations over one link.
        unrelayed: Names that cannot be reached so.
        settled_sends: True if it ends the link over a message of a transaction that it does not take, settled or not,
            and answers nothing that comes behind it there: then it need not answer each.
    """

    product: str
    naming: AddressStyle
    data: BrokerProfile
    supports_drain: bool = True
    counts_deliveries: bool = True
    duplicate_ids_before_transaction: bool = False
    translate_selector: Callable[[str], str] = str
    in_use_texts: tuple[str, ...] = ()
    other_kind_texts: tuple[str, ...] = ()
    offers_relay: bool = False
    relay_exclusions: tuple[str, ...] = ()
    presettles_in_transaction: bool = False
    required_offers: Mapping[str, str] = field(default_factory=dict[str, str])

    def negotiated(self, offered: Collection[str]) -> "AMQPBrokerProfile":
        """Leave out what this broker, or this release of it, does not offer, and see whether it offers a relay.

        Args:
            offered: The capabilities that its open frame offers.
        """
        missing: dict[str, Any] = {
            capability: False for capability, needed in self.required_offers.items() if needed not in offered
        }
        capabilities = replace(self.data.capabilities, **missing)
        data = replace(self.data, capabilities=capabilities)
        return replace(self, data=data, offers_relay=_ANONYMOUS_RELAY in offered)

    def with_transactions(self) -> "AMQPBrokerProfile":
        """The same with transactions."""
        capabilities = replace(self.data.capabilities, transacted_receive=True, transacted_send=True, atomic=True)
        return replace(self, data=replace(self.data, capabilities=capabilities))

    def can_relay_to(self, to: Destination) -> bool:
        """True if a message gets there over the link to all destinations."""
        return self.offers_relay and to.name not in self.relay_exclusions
