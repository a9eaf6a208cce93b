"""The brokers that speak AMQP 1.0, and what each can do."""

from dataclasses import dataclass, replace

from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.evidence import Broker
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "AMQPBroker", "broker_of"]

_FULL = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="uncounted",
    exact_credit=True,
    delivery_count=True,
    selectors=True,
    browse=True,
    durable=True,
    shared_between_processes=True,
)


@dataclass(frozen=True, slots=True)
class AMQPBroker:
    """A broker, by the product name in its open frame.

    Args:
        product: The name.
        naming: How it names destinations.
        data: What it can do.
        drains: True if it understands drain.
        counts: True if it fills in how often a message was delivered before; else it marks the first delivery.
    """

    product: str
    naming: Naming
    data: Broker
    drains: bool = True
    counts: bool = True


_ARTEMIS = AMQPBroker("apache-activemq-artemis", "capability", Broker("Apache Artemis", "2.56.0", _FULL))
_ACTIVEMQ = AMQPBroker(
    "ActiveMQ",
    "scheme",
    Broker("Apache ActiveMQ Classic", "6.2.0", replace(_FULL, give_back="local", delivery_count=False)),
)
_QPID = AMQPBroker("Apache Qpid Broker-J Core", "exchange", Broker("Apache Qpid Broker-J", "10.1.0", _FULL))
_RABBITMQ = AMQPBroker(
    "RabbitMQ",
    "path",
    Broker("RabbitMQ", "3.10.8", Capabilities(give_back="local", shared_between_processes=True)),
    drains=False,
    counts=False,
)
_UNKNOWN = AMQPBroker("", "capability", Broker("any other", "", Capabilities(shared_between_processes=True)))

_KNOWN = (_ARTEMIS, _ACTIVEMQ, _QPID, _RABBITMQ)

BROKERS = tuple(broker.data for broker in _KNOWN)


def broker_of(product: str) -> AMQPBroker:
    """Find a broker by the product name of its open frame; one that nobody tested is trusted with nothing."""
    return next((broker for broker in _KNOWN if broker.product == product), _UNKNOWN)
