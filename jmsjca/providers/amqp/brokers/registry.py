"""The known brokers by the product names of their open frames."""

from collections.abc import Collection

from jmsjca.providers.amqp.brokers.activemq import ACTIVEMQ
from jmsjca.providers.amqp.brokers.artemis import ARTEMIS
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.qpid import QPID
from jmsjca.providers.amqp.brokers.rabbitmq import RABBITMQ
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "profile_for"]

BROKERS = (ARTEMIS, ACTIVEMQ, QPID, RABBITMQ)
_UNKNOWN_CAPABILITIES = Capabilities(give_back="local", client_ids=True, structured=True, shared_between_processes=True)
_UNKNOWN = AMQPBrokerProfile(
    "any other",
    "AMQP",
    "",
    _UNKNOWN_CAPABILITIES,
    product="",
    naming="capability",
    required_offers={"client_ids": "sole-connection-for-container"},
)


def profile_for(product: str, offered: Collection[str]) -> AMQPBrokerProfile:
    """Return the profile for the broker that sent an open frame.

    An untested broker has only the capabilities that it offers and that are defined exactly. Whether it supports
    transactions is probed later. `DELAYED_DELIVERY` does not count: ActiveMQ offers it, but delivers immediately unless
    it is configured to delay.

    Args:
        product: The product name.
        offered: The capabilities that the broker offers.
    """
    found = next((broker for broker in BROKERS if broker.product == product), _UNKNOWN)
    return found.negotiated(offered)
