"""Where messages come from: what all of them from there have in common."""

from typing import NamedTuple

from jmsjca.destinations import Destination
from jmsjca.providers.amqp.addresses import Naming

__all__ = ["Origin"]


class Origin(NamedTuple):
    """What a message does not tell itself."""

    source: Destination | None  #: what it is received from, should it not say where it was sent to
    naming: Naming = "capability"  #: how the broker names destinations, those in the message too
    counts: bool = True  #: whether the broker counts deliveries
