"""Outbound: connection factories, connections, sessions, contexts, producers, consumers, browsers and requestors."""

from jmsjca.outbound.asynchronous_sends import CompletionListener
from jmsjca.outbound.browser import QueueBrowser
from jmsjca.outbound.connection import Connection, ConnectionMetaData
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.context import JMSContext
from jmsjca.outbound.factory import ConnectionFactory, QueueConnectionFactory, TopicConnectionFactory
from jmsjca.outbound.producer import JMSProducer, MessageProducer
from jmsjca.outbound.requestor import Requestor
from jmsjca.outbound.session import Session

__all__ = [
    "CompletionListener",
    "Connection",
    "ConnectionFactory",
    "ConnectionMetaData",
    "JMSContext",
    "JMSProducer",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "QueueConnectionFactory",
    "Requestor",
    "Session",
    "TopicConnectionFactory",
]
