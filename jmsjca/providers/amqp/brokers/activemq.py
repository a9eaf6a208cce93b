"""ActiveMQ Classic over AMQP 1.0: capabilities."""

from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.selectors.rewriting import rewrite
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ"]


ACTIVEMQ = AMQPBrokerProfile(
    "Apache ActiveMQ Classic",
    "AMQP",
    "6.3.1",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        exact_selectors=True,
        browse=True,
        durable=True,
        client_ids=True,
        checks=True,
        subscription_lock=True,
        temporary=True,
        temporary_guarded=True,
        temporary_ends=True,
        no_local=True,
        groups=True,
        groups_apart=True,
        shared_between_processes=True,
        structured=True,
    ),
    product="ActiveMQ",
    naming="scheme",
    translate_selector=rewrite,
    in_use_texts=("Durable consumer is in use", "created by another connection"),
)
