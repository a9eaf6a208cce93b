"""RabbitMQ: with the AMQP 1.0 plug-in of 3.x, and from 4.0 on by itself, with queues that the client declares."""

from collections.abc import Callable
from dataclasses import replace

from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.rabbitmq_management import ManagementNode
from jmsjca.providers.amqp.brokers.rabbitmq_topology import QueueType, RabbitMQTopology
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.topology import Topology
from jmsjca.spi import Capabilities

__all__ = ["RABBITMQ", "RABBITMQ4", "RABBITMQ4_CLASSIC"]

_PRODUCT = "RabbitMQ"


RABBITMQ = AMQPBrokerProfile(
    "RabbitMQ",
    "AMQP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, checks=True, shared_between_processes=True, structured=True),
    product=_PRODUCT,
    naming="path",
    supports_drain=False,
    counts_deliveries=False,
)


def _declaring(queue_type: QueueType) -> Callable[[Engine, float], Topology]:
    return lambda engine, timeout: RabbitMQTopology(ManagementNode(engine, timeout), queue_type)


RABBITMQ4 = AMQPBrokerProfile(
    "RabbitMQ 4",
    "AMQP",
    "4.0.5",
    Capabilities(
        give_back="uncounted",
        exact_credit=True,
        delivery_count=True,
        counts_lost=True,
        durable=True,
        shared=True,
        subscription_lock=True,
        subscription_kinds=True,
        temporary=True,
        temporary_guarded=True,
        temporary_ends=True,
        checks=True,
        admin=True,
        creates_queues=True,
        counts_consumers=True,
        shared_between_processes=True,
        structured=True,
    ),
    product=_PRODUCT,
    version=4,
    naming="encoded",
    max_sender_links=0,
    answers_drain=True,
    keeps_sessions=True,
    create_topology=_declaring("quorum"),
)

# Classic queues keep priorities, and count no failures.
RABBITMQ4_CLASSIC = replace(
    RABBITMQ4,
    capabilities=replace(RABBITMQ4.capabilities, give_back="local", delivery_count=False, priority=True),
    create_topology=_declaring("classic"),
)
