"""RabbitMQ: with the AMQP 1.0 plug-in of 3.x, and from 4.0 on by itself, with queues that the client declares."""

from dataclasses import replace

from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.rabbitmq_management import ManagementNode
from jmsjca.providers.amqp.brokers.rabbitmq_stream import StreamOptions
from jmsjca.providers.amqp.brokers.rabbitmq_topology import QueueType, RabbitMQTopology
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.spi import Capabilities

__all__ = ["RABBITMQ", "RABBITMQ4", "rabbitmq4"]

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
)


def rabbitmq4(queue_type: QueueType, streams: StreamOptions) -> AMQPBrokerProfile:
    """Return the profile of RabbitMQ 4 for a connection.

    Args:
        queue_type: The type of the queues that it declares.
        streams: The options for consumers of streams.
    """
    capabilities = RABBITMQ4.capabilities
    if queue_type == "classic":  # such queues keep priorities, and count no failures
        capabilities = replace(capabilities, give_back="local", delivery_count=False, priority=True)

    def create_topology(engine: Engine, timeout: float) -> RabbitMQTopology:
        """Create what declares queues, with seconds to wait for each response."""
        return RabbitMQTopology(ManagementNode(engine, timeout), queue_type, streams)

    return replace(RABBITMQ4, capabilities=capabilities, create_topology=create_topology)
