"""RabbitMQ with its AMQP 1.0 plug-in: capabilities."""

from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.spi import Capabilities

__all__ = ["RABBITMQ"]


RABBITMQ = AMQPBrokerProfile(
    "RabbitMQ",
    "AMQP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, checks=True, shared_between_processes=True, structured=True),
    product="RabbitMQ",
    naming="path",
    supports_drain=False,
    counts_deliveries=False,
)
