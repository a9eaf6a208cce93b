"""Brokers over AMQP 1.0 that are managed over HTTP: ActiveMQ Classic and RabbitMQ."""

from collections.abc import Callable
from dataclasses import replace

from jmsjca.config import Credentials
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp.admin import ManagementConnection
from jmsjca.providers.amqp.brokers.activemq import ACTIVEMQ
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.rabbitmq import RABBITMQ, RABBITMQ4
from jmsjca.providers.amqp.brokers.rabbitmq_admin import RabbitMQAdmin, queue_name
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.common.activemq_admin import JOLOKIA, ActiveMQAdmin
from jmsjca.providers.common.broker_profile import administered
from jmsjca.providers.common.http_management import HTTPManagement
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.providers.common.rabbitmq_http_admin import MANAGED, RabbitMQHTTPAdmin
from jmsjca.spi import Admin

__all__ = ["with_management"]


def with_management(
    broker: AMQPBrokerProfile, options: NetworkOptions, credentials: Credentials | None
) -> AMQPBrokerProfile:
    """Return the profile of a broker with its management at the option ``management_url``.

    Raises:
        InvalidOptionError: The broker is another one, or the option is no URL of HTTP.
        JMSSecurityError: The password would be sent without TLS.
    """
    management = HTTPManagement(options, credentials)
    if broker.product == ACTIVEMQ.product:
        return replace(administered(broker, JOLOKIA), create_admin=_jolokia(management))
    if broker.product != RABBITMQ.product:
        return administered(broker, None)
    if broker.version < RABBITMQ4.version:
        return replace(administered(broker, MANAGED), create_admin=_api(management))
    # RabbitMQ 4.0 counts no messages that AMQP 1.0 clients send and receive.
    return replace(administered(broker, {**MANAGED, "counts_traffic": False}), extend_admin=_extension(management))


def _jolokia(management: HTTPManagement) -> Callable[[ManagementConnection, float], Admin]:
    def create(connection: ManagementConnection, timeout: float) -> Admin:
        """Return the administration of a connection."""
        del timeout
        return ActiveMQAdmin(management, connection)

    return create


def _api(management: HTTPManagement) -> Callable[[ManagementConnection, float], Admin]:
    def create(connection: ManagementConnection, timeout: float) -> Admin:
        """Return the administration of a connection."""
        del connection, timeout
        return RabbitMQHTTPAdmin(management, _plugin_queue)

    return create


def _extension(management: HTTPManagement) -> Callable[[Admin], Admin]:
    api = RabbitMQHTTPAdmin(management, queue_name)

    def extend(admin: Admin) -> Admin:
        """Add what only the API over HTTP lists and counts."""
        return admin.extended(api) if isinstance(admin, RabbitMQAdmin) else admin

    return extend


def _plugin_queue(source: Destination | Subscription) -> str:
    """Return the name of the queue that the plug-in for AMQP 1.0 declares."""
    if not isinstance(source, Queue):
        raise InvalidDestinationError(f"{source} stores no messages itself, and RabbitMQ 3 has no subscriptions here.")
    address_of(source, RABBITMQ.naming).check()
    return source.name
