"""The known brokers by the product names and versions of their open frames."""

import re
from collections.abc import Collection
from dataclasses import replace

from jmsjca.errors import NotSupportedError
from jmsjca.providers.amqp.brokers.activemq import ACTIVEMQ
from jmsjca.providers.amqp.brokers.artemis import ARTEMIS
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.qpid import QPID
from jmsjca.providers.amqp.brokers.rabbitmq import RABBITMQ, RABBITMQ4, rabbitmq4
from jmsjca.providers.amqp.brokers.rabbitmq_stream import StreamOptions
from jmsjca.providers.amqp.brokers.rabbitmq_topology import QueueType
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "profile_for"]

BROKERS = (ARTEMIS, ACTIVEMQ, QPID, RABBITMQ, RABBITMQ4)
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


def profile_for(
    product: str,
    version: str,
    offered: Collection[str],
    *,
    queue_type: QueueType = "quorum",
    streams: StreamOptions = StreamOptions(),  # noqa: B008  # immutable
) -> AMQPBrokerProfile:
    """Return the profile for the broker that sent an open frame.

    An untested broker has only the capabilities that it offers and that are defined exactly. Whether it supports
    transactions is probed later. `DELAYED_DELIVERY` does not count: ActiveMQ offers it, but delivers immediately unless
    it is configured to delay.

    Args:
        product: The product name.
        version: The version; empty if the broker sent none.
        offered: The capabilities that the broker offers.
        queue_type: The type of queues that are declared on RabbitMQ 4.
        streams: The options for consumers of streams of RabbitMQ 4.

    Raises:
        NotSupportedError: An option for streams is set, and the broker is another one.
    """
    of_product = (broker for broker in BROKERS if broker.product == product and broker.version <= _major(version))
    found = max(of_product, key=lambda broker: broker.version, default=_UNKNOWN)
    if found is RABBITMQ4:
        found = rabbitmq4(queue_type, streams)
    elif streams:
        raise NotSupportedError(
            f"The options stream_offset and stream_filter are for RabbitMQ 4; the broker is {product} {version}."
        )
    return replace(found.negotiated(offered), announced=f"{product} {version}".strip())


def _major(version: str) -> int:
    """Return the major version; 0 if it is not known."""
    found = re.match(r"\d{1,4}", version)
    return int(found[0]) if found else 0
