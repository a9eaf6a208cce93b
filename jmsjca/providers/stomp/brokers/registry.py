"""The known brokers, recognised by the header ``server`` of their login response."""

import re

from jmsjca.errors import NotSupportedError
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.stomp.brokers.activemq import ACTIVEMQ, ActiveMQ, RecentActiveMQ
from jmsjca.providers.stomp.brokers.artemis import ARTEMIS, Artemis
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.brokers.openmq import OPENMQ, OpenMQ
from jmsjca.providers.stomp.brokers.rabbitmq import RABBITMQ, RABBITMQ4, RabbitMQ
from jmsjca.spi import Capabilities

__all__ = ["BROKERS", "UNKNOWN", "UnknownBroker", "dialect_for"]
UNKNOWN = BrokerProfile(
    "an unknown broker", "STOMP", "", Capabilities(give_back="local", structured=True, shared_between_processes=True)
)

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ, RABBITMQ4, OPENMQ)


class UnknownBroker(ActiveMQ):
    """An untested broker: only the semantics that the STOMP specification guarantees are assumed."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_before_commit = False
    confirms_in_order = False
    refuses_commit_after_failed_send = False
    needs_abort_after_commit = False
    encode = Dialect.encode
    is_header_property = Dialect.is_header_property
    is_header_value = Dialect.is_header_value


_SETTLES_UP_TO = (6, 3)
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)")
_KNOWN: dict[str, tuple[type[Dialect], BrokerProfile]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
    "Eclipse OpenMQ(tm)": (OpenMQ, OPENMQ),
}


def dialect_for(server: str, version: str, *, java_maps: bool = False) -> Dialect:
    """Return the dialect for the header ``server`` of CONNECTED; an unknown broker gets the conservative minimum.

    Raises:
        NotSupportedError: `java_maps` is set, and the broker is not ActiveMQ, the only one that supports it.
    """
    product, _, release = server.partition("/")
    kind, broker = _KNOWN.get(product, (UnknownBroker, UNKNOWN))
    if kind is ActiveMQ and _at_least(release, _SETTLES_UP_TO):
        kind = RecentActiveMQ
    if broker is RABBITMQ and _at_least(release, (4, 0)):
        broker = RABBITMQ4
    if java_maps and broker is not ACTIVEMQ:
        raise NotSupportedError(
            f"The option java_maps is for ActiveMQ; {broker.name} does not convert Java maps for STOMP."
        )
    return kind(broker, version, java_maps, server)


def _at_least(release: str, wanted: tuple[int, int]) -> bool:
    found = _RELEASE.match(release)
    return found is not None and (int(found[1]), int(found[2])) >= wanted
