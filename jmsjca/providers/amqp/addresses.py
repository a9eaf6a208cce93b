"""How destinations are named on the wire."""

from dataclasses import dataclass
from typing import Any, Literal

from proton import symbol

from jmsjca.destinations import Destination, DestinationKind, Queue, Topic
from jmsjca.providers.amqp.constants import CONFIGURATION

__all__ = ["Address", "Naming", "address_of", "name_of"]

Naming = Literal["capability", "exchange", "path", "scheme"]
"""How a broker tells a queue from a topic: by a capability of the terminus, an exchange, a path or a scheme."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address, and the capability that its terminus asks for.

    Args:
        name: The address.
        capability: What the node must be: a queue or a topic; None where the name says it.
        lasting: True if the node that is made, should it not exist, must outlive the broker's restart.
    """

    name: str
    capability: str | None
    lasting: bool = False

    def apply(self, terminus: Any) -> None:
        """Write it into a source or a target of proton."""
        terminus.address = self.name
        if self.capability:
            terminus.capabilities.put_object(symbol(self.capability))
        if self.lasting:
            terminus.durability = CONFIGURATION


def address_of(what: Destination, naming: Naming) -> Address:
    """Name a destination as its broker does."""
    if naming == "path":
        return Address(f"/{what.kind}/{what.name}", None, lasting=isinstance(what, Queue))
    if naming == "scheme":
        return Address(f"{what.kind}://{what.name}", what.kind)
    if naming == "exchange" and isinstance(what, Topic):
        return Address(f"amq.topic/{what.name}", "topic")
    return Address(what.name, what.kind)


def name_of(address: str, kind: DestinationKind, naming: Naming) -> str:
    """The name of the destination that has an address: the other way round. What is no such address is a name."""
    before = {"path": f"/{kind}/", "scheme": f"{kind}://", "exchange": _EXCHANGE[kind], "capability": ""}[naming]
    return address.removeprefix(before)


_EXCHANGE: dict[DestinationKind, str] = {"queue": "", "topic": "amq.topic/"}
