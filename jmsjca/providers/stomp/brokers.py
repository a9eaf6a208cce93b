"""What each broker can do over STOMP."""

from jmsjca.providers.evidence import Broker
from jmsjca.providers.stomp.gaps_activemq import ACTIVEMQ_GAPS
from jmsjca.providers.stomp.gaps_artemis import ARTEMIS_GAPS
from jmsjca.providers.stomp.gaps_openmq import OPENMQ_GAPS
from jmsjca.providers.stomp.gaps_rabbitmq import RABBITMQ_GAPS
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ", "ARTEMIS", "BROKERS", "OPENMQ", "RABBITMQ", "UNKNOWN"]

ACTIVEMQ = Broker(
    "ActiveMQ",
    "STOMP",
    "6.3.1",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        durable=True,
        subscription_lock=True,
        client_ids=True,
        temporary=True,
        no_local=True,
        structured=True,
        shared_between_processes=True,
    ),
    ACTIVEMQ_GAPS,
)
ARTEMIS = Broker(
    "ActiveMQ-Artemis",
    "STOMP",
    "2.56.0",
    Capabilities(
        transacted_send=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        delivery_delay=True,
        priority=True,
        durable=True,
        duplicate_detection=True,
        structured=True,
        shared_between_processes=True,
    ),
    ARTEMIS_GAPS,
)
RABBITMQ = Broker(
    "RabbitMQ",
    "STOMP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, durable=True, structured=True, shared_between_processes=True),
    RABBITMQ_GAPS,
)
OPENMQ = Broker(
    "Eclipse OpenMQ(tm)",
    "STOMP",
    "6.5.1",
    Capabilities(
        transacted_send=True,
        give_back="local",
        priority=True,
        durable=True,
        subscription_lock=True,
        client_ids=True,
        no_local=True,
        durable_no_local=True,
        structured=True,
        shared_between_processes=True,
    ),
    OPENMQ_GAPS,
)
UNKNOWN = Broker(
    "an unknown broker", "STOMP", "", Capabilities(give_back="local", structured=True, shared_between_processes=True)
)

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ, OPENMQ)
