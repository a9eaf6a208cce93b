"""The operator's view of a broker over AMQP: for each that has a management address, who speaks to it."""

from typing import Protocol

from jmsjca.destinations import Destination
from jmsjca.providers.amqp.artemis_admin import ADDRESS as ARTEMIS_ADDRESS
from jmsjca.providers.amqp.artemis_admin import ArtemisAdmin
from jmsjca.providers.amqp.qpid_admin import ADDRESS as QPID_ADDRESS
from jmsjca.providers.amqp.qpid_admin import QpidAdmin
from jmsjca.providers.amqp.requests import Asker, Requests
from jmsjca.spi import Admin

__all__ = ["Manager", "manager_of"]


class Manager(Admin, Protocol):
    """Removes queues, besides what `Admin` does."""

    def remove(self, queue: Destination) -> None:
        """Remove a queue with its messages."""
        ...


def manager_of(product: str, asker: Asker, seconds: float) -> Manager | None:
    """Speak to the management of a broker; None if it has none over AMQP.

    Args:
        product: The broker's name for itself.
        asker: The connection.
        seconds: How long to wait for each answer.
    """
    if product == "apache-activemq-artemis":
        return ArtemisAdmin(Requests(asker, ARTEMIS_ADDRESS, seconds))
    if product == "Apache Qpid Broker-J Core":
        return QpidAdmin(Requests(asker, QPID_ADDRESS, seconds))
    return None
