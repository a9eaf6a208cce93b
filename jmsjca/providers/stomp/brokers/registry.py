"""The known brokers: found by what they say at login, with their capabilities over STOMP."""

import re

from jmsjca.errors import NotSupportedError
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.stomp.brokers.activemq import ACTIVEMQ, ActiveMQ, RecentActiveMQ
from jmsjca.providers.stomp.brokers.artemis import ARTEMIS, Artemis
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.brokers.openmq import OPENMQ, OpenMQ
from jmsjca.providers.stomp.brokers.rabbitmq import RABBITMQ, RabbitMQ
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "UNKNOWN", "UnknownBroker", "dialect_for"]
UNKNOWN = BrokerProfile(
    "an unknown broker", "STOMP", "", Capabilities(give_back="local", structured=True, shared_between_processes=True)
)

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ, OPENMQ)


class UnknownBroker(ActiveMQ):
    """A broker that nobody tested: trusted with nothing that goes beyond the letter of STOMP."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_before_commit = False
    confirms_in_order = False
    refuses_commit_after_failed_send = False
    needs_abort_after_commit = False


_SETTLES_UP_TO = (6, 3)
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)")
_KNOWN: dict[str, tuple[type[Dialect], BrokerProfile]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
    "Eclipse OpenMQ(tm)": (OpenMQ, OPENMQ),
}


def dialect_for(server: str, version: str, *, java_maps: bool = False) -> Dialect:
    """Choose by the header ``server`` of CONNECTED; one that nobody knows gets the conservative minimum.

    Raises:
        NotSupportedError: Maps shall travel as Java's, and it is not ActiveMQ, the only one that shows them.
    """
    product, _, release = server.partition("/")
    kind, broker = _KNOWN.get(product, (UnknownBroker, UNKNOWN))
    if kind is ActiveMQ and _at_least(release, _SETTLES_UP_TO):
        kind = RecentActiveMQ
    if java_maps and broker is not ACTIVEMQ:
        raise NotSupportedError(
            f"The option java_maps is for ActiveMQ; {broker.name} shows no maps of Java's to STOMP."
        )
    return kind(broker, version, java_maps)


def _at_least(release: str, wanted: tuple[int, int]) -> bool:
    found = _RELEASE.match(release)
    return found is not None and (int(found[1]), int(found[2])) >= wanted
