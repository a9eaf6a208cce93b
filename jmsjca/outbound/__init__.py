"""Outbound: connection factories, connections, sessions, producers, consumers and browsers."""

from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session import Session

__all__ = ["Connection", "ConnectionFactory", "MessageConsumer", "MessageProducer", "QueueBrowser", "Session"]
