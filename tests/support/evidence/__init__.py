"""The observed evidence for each capability that a broker lacks: one module for each broker and protocol."""

from dataclasses import dataclass
from importlib import import_module

__all__ = ["CapabilityGap", "gaps_of"]

_MODULES = {
    ("AMQP", "Apache ActiveMQ Classic"): "amqp_activemq",
    ("AMQP", "Apache Artemis"): "amqp_artemis",
    ("AMQP", "Apache Qpid Broker-J"): "amqp_qpid",
    ("AMQP", "RabbitMQ"): "amqp_rabbitmq",
    ("AMQP", "RabbitMQ 4"): "amqp_rabbitmq4",
    ("STOMP", "ActiveMQ"): "stomp_activemq",
    ("STOMP", "ActiveMQ-Artemis"): "stomp_artemis",
    ("STOMP", "Eclipse OpenMQ(tm)"): "stomp_openmq",
    ("STOMP", "RabbitMQ"): "stomp_rabbitmq",
    ("STOMP", "RabbitMQ 4"): "stomp_rabbitmq",
}
_JAVA = {"AMQP 1.0 through Qpid JMS", "Core", "OpenWire"}


@dataclass(frozen=True, slots=True)
class CapabilityGap:
    """A capability that a broker lacks over a protocol.

    Args:
        capability: The name of the field of `jmsjca.spi.Capabilities`.
        observed: The broker's response to a request for the capability, frame by frame.
        reference: The passage of the broker's documentation or source that confirms the gap; or a note that neither
            mentions it, as far as we found.
    """

    capability: str
    observed: str
    reference: str


def gaps_of(profile):
    """Return the gaps of a broker over a protocol.

    Args:
        profile: The broker's `BrokerProfile`.
    """
    if profile.protocol in _JAVA:
        return import_module(f"{__name__}.java").GAPS[profile.protocol]
    return import_module(f"{__name__}.{_MODULES[profile.protocol, profile.name]}").GAPS
