"""Which broker is it, and how is it talked to?"""

import re

from jmsjca.errors import NotSupportedError
from jmsjca.providers.evidence import Broker
from jmsjca.providers.stomp.activemq import ActiveMQ, RecentActiveMQ
from jmsjca.providers.stomp.artemis import Artemis
from jmsjca.providers.stomp.brokers import ACTIVEMQ, ARTEMIS, OPENMQ, RABBITMQ, UNKNOWN
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.openmq import OpenMQ
from jmsjca.providers.stomp.rabbitmq import RabbitMQ

__all__ = ["Unknown", "choose_dialect"]


class Unknown(ActiveMQ):
    """A broker that nobody tested: trusted with nothing that goes beyond the letter of STOMP."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_before_commit = False
    confirms_in_order = False
    refuses_commits = False
    hoards_acknowledgements = False


_SETTLES_UP_TO = (6, 3)
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)")
_KNOWN: dict[str, tuple[type[Dialect], Broker]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
    "Eclipse OpenMQ(tm)": (OpenMQ, OPENMQ),
}


def choose_dialect(server: str, version: str, *, java_maps: bool = False) -> Dialect:
    """Choose by the header ``server`` of CONNECTED; one that nobody knows gets the conservative minimum.

    Raises:
        NotSupportedError: Maps shall travel as Java's, and it is not ActiveMQ, the only one that shows them.
    """
    product, _, release = server.partition("/")
    kind, broker = _KNOWN.get(product, (Unknown, UNKNOWN))
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
