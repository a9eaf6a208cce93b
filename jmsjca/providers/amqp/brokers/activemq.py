"""ActiveMQ Classic over AMQP 1.0: capabilities."""

from dataclasses import replace

from jmsjca.config import Credentials
from jmsjca.providers.amqp.admin import ManagementConnection
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.common.activemq_admin import ActiveMQAdmin, administered
from jmsjca.providers.common.http_management import HTTPManagement
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.selectors.rewriting import rewrite
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ", "with_management"]


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


def with_management(
    broker: AMQPBrokerProfile, options: NetworkOptions, credentials: Credentials | None
) -> AMQPBrokerProfile:
    """Return the profile of a broker with its management at the option ``management_url``.

    Raises:
        InvalidOptionError: The broker is not ActiveMQ Classic, or the option is no URL of HTTP.
        JMSSecurityError: The password would be sent without TLS.
    """
    management = HTTPManagement(options, credentials)
    profile = administered(broker, is_activemq=broker.product == ACTIVEMQ.product)

    def create(connection: ManagementConnection, timeout: float) -> ActiveMQAdmin:
        """Administer the broker of a connection."""
        del timeout
        return ActiveMQAdmin(management, connection)

    return replace(profile, create_admin=create)
