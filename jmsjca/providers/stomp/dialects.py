"""Which broker is it, and how is it talked to?"""

from jmsjca.providers.evidence import Broker
from jmsjca.providers.stomp.activemq import ActiveMQ
from jmsjca.providers.stomp.artemis import Artemis
from jmsjca.providers.stomp.brokers import ACTIVEMQ, ARTEMIS, RABBITMQ, UNKNOWN
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.rabbitmq import RabbitMQ

__all__ = ["Unknown", "choose_dialect"]


class Unknown(ActiveMQ):
    """A broker that nobody tested: trusted with nothing that goes beyond the letter of STOMP."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_before_commit = False
    hoards_acknowledgements = False


_KNOWN: dict[str, tuple[type[Dialect], Broker]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
}


def choose_dialect(server: str, version: str) -> Dialect:
    """Choose by the header ``server`` of CONNECTED; one that nobody knows gets the conservative minimum."""
    product = server.partition("/")[0]
    kind, broker = _KNOWN.get(product, (Unknown, UNKNOWN))
    return kind(broker, version)
