"""The brokers that the provider knows, by the product names of their open frames."""

from collections.abc import Collection

from jmsjca.providers.amqp.activemq import ACTIVEMQ
from jmsjca.providers.amqp.artemis import ARTEMIS
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.qpid import QPID
from jmsjca.providers.amqp.rabbitmq import RABBITMQ
from jmsjca.providers.evidence import Broker
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "broker_of"]

_KNOWN = (ARTEMIS, ACTIVEMQ, QPID, RABBITMQ)
_LITTLE = Capabilities(give_back="local", client_ids=True, structured=True, shared_between_processes=True)
_UNKNOWN = AMQPBroker(
    "",
    "capability",
    Broker("any other", "AMQP", "", _LITTLE),
    offers={"client_ids": "sole-connection-for-container"},
)

BROKERS = tuple(broker.data for broker in _KNOWN)


def broker_of(product: str, offered: Collection[str]) -> AMQPBroker:
    """Find a broker by its open frame; one that nobody tested is trusted with nothing but what is offered, and exact.

    Whether that one has transactions it is asked for later.

    `DELAYED_DELIVERY` is not: ActiveMQ offers it, and delivers at once unless it is configured to wait.

    Args:
        product: Its product name.
        offered: The capabilities that it offers.
    """
    found = next((broker for broker in _KNOWN if broker.product == product), _UNKNOWN)
    return found.settled(offered)
