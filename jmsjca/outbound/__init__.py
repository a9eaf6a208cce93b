"""Outbound: connection factories, connections, pools, sessions, producers, consumers, browsers, senders, requestors."""

from jmsjca.outbound.asynchronous_sends import CompletionListener
from jmsjca.outbound.connection import Connection, ConnectionMetaData
from jmsjca.outbound.consumer import MessageConsumer, QueueBrowser
from jmsjca.outbound.context import JMSContext
from jmsjca.outbound.factory import ConnectionFactory, QueueConnectionFactory, TopicConnectionFactory
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.outbound.producer import JMSProducer, MessageProducer
from jmsjca.outbound.requestor import Requestor
from jmsjca.outbound.sender import Publisher, Sender
from jmsjca.outbound.session import Session

__all__ = [
    "CompletionListener",
    "Connection",
    "ConnectionFactory",
    "ConnectionMetaData",
    "ConnectionPool",
    "JMSContext",
    "JMSProducer",
    "MessageConsumer",
    "MessageProducer",
    "Publisher",
    "QueueBrowser",
    "QueueConnectionFactory",
    "Requestor",
    "Sender",
    "Session",
    "TopicConnectionFactory",
]
