"""What each broker can do over STOMP, and what it did where it cannot."""

from jmsjca.providers.evidence import Broker
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ", "ARTEMIS", "BROKERS", "RABBITMQ", "UNKNOWN"]

ACTIVEMQ = Broker(
    "ActiveMQ",
    "5.18.3",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        durable=True,
        shared_between_processes=True,
    ),
)
ARTEMIS = Broker(
    "ActiveMQ-Artemis",
    "2.56.0",
    Capabilities(
        transacted_send=True,
        give_back="local",
        selectors=True,
        delivery_delay=True,
        priority=True,
        durable=True,
        shared_between_processes=True,
    ),
)
RABBITMQ = Broker(
    "RabbitMQ",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, durable=True, shared_between_processes=True),
)
UNKNOWN = Broker("an unknown broker", "", Capabilities(give_back="local", shared_between_processes=True))

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ)
