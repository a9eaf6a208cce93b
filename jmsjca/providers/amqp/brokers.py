"""The brokers that the provider knows, by the product names of their open frames."""

from jmsjca.providers.amqp.activemq import ACTIVEMQ
from jmsjca.providers.amqp.artemis import ARTEMIS
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.qpid import QPID
from jmsjca.providers.amqp.rabbitmq import RABBITMQ
from jmsjca.providers.evidence import Broker
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "broker_of"]

_KNOWN = (ARTEMIS, ACTIVEMQ, QPID, RABBITMQ)
_UNKNOWN = AMQPBroker(
    "",
    "capability",
    Broker("any other", "AMQP", "", Capabilities(give_back="local", shared_between_processes=True, structured=True)),
)

BROKERS = tuple(broker.data for broker in _KNOWN)


def broker_of(product: str) -> AMQPBroker:
    """Find a broker by the product name of its open frame; one that nobody tested is trusted with nothing."""
    return next((broker for broker in _KNOWN if broker.product == product), _UNKNOWN)
