"""The brokers by name, and the pairs of a broker and a protocol."""

from brokers.activemq import ActiveMQ
from brokers.artemis import Artemis
from brokers.handshake import LOGINS
from brokers.openmq import OpenMQ
from brokers.qpid import Qpid
from brokers.rabbitmq import RabbitMQ

BROKERS = {broker.name: broker for broker in (Artemis, ActiveMQ, Qpid, RabbitMQ, OpenMQ)}
PAIRS = tuple(f"{name}-{protocol}" for name in BROKERS for protocol in LOGINS if protocol in BROKERS[name].usual_ports)
