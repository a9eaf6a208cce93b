"""Java's clients of JMS (Qpid JMS for AMQP, ActiveMQ's own for OpenWire) beside ours."""

from jms_java.client import SECONDS, JavaClient
from jms_java.described import describe, told_data, told_value
from jms_java.ours import OurClient, receive
from jms_java.program import JavaError, JavaPeer

__all__ = [
    "SECONDS",
    "JavaClient",
    "JavaError",
    "JavaPeer",
    "OurClient",
    "describe",
    "receive",
    "told_data",
    "told_value",
]
