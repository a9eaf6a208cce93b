"""How destinations are named on the wire."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from proton import Array, symbol

from jmsjca.config.texts import check_text
from jmsjca.destinations import Destination, DestinationKind, Queue, Topic
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp.constants import CONFIGURATION, SYMBOLS

__all__ = ["Address", "Naming", "address_of", "name_of"]

_TEMPORARY = ("temp-queue://", "temp-topic://")  # the schemes of ActiveMQ

Naming = Literal["capability", "exchange", "path", "scheme"]
"""How a broker tells a queue from a topic: by a capability of the terminus, an exchange, a path or a scheme."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address, and the capability that its terminus asks for.

    Args:
        name: The address.
        capability: What the node must be: a queue or a topic; None where the name says it.
        lasting: True if the node that is made, should it not exist, must outlive the broker's restart.
        suffix: What follows the address in a terminus, and not in messages.
        ascii_only: True if the broker would take other letters for others, or end the connection over them.
        before: What of it tells the kind, and is no part of the destination's name.
        special: Into what the broker reads something, instead of taking that name literally; None for nothing.
    """

    name: str
    capability: str | None
    lasting: bool = False
    suffix: str = ""
    ascii_only: bool = False
    before: str = ""
    special: re.Pattern[str] | None = None

    def check(self) -> None:
        """Refuse a name that cannot be written, before anything is asked for.

        Raises:
            InvalidDestinationError: It would arrive as another one, or the broker would not understand it.
        """
        check_text(self.name, f"The name {self.name!a:.200}", InvalidDestinationError)
        if found := self.special and self.special.search(self.name.removeprefix(self.before)):
            raise InvalidDestinationError(
                f"The name {self.name!a:.200} holds {found[0]!a}: over AMQP this broker reads options, lists, wildcards"
                " or a queue of an address into it, and would mean others; choose another name."
            )
        if self.ascii_only and not self.name.isascii():
            raise InvalidDestinationError(
                f"The name {self.name!a:.200} is not ASCII: over AMQP this broker makes another name of it, or ends the"
                " connection."
            )

    def apply(self, terminus: Any, more: Sequence[str] = ()) -> None:
        """Write it into a source or a target of proton.

        Args:
            terminus: The source or target.
            more: Further capabilities to ask for.
        """
        terminus.address = self.name + self.suffix
        if wanted := [symbol(name) for name in (self.capability, *more) if name]:
            terminus.capabilities.put_object(Array(*SYMBOLS, *wanted))
        if self.lasting:
            terminus.durability = CONFIGURATION


def address_of(what: Destination, naming: Naming) -> Address:
    """Name a destination as its broker does; a temporary one has the name that the broker gave it."""
    if what.temporary or what.name.startswith(_TEMPORARY):
        exchange = naming == "exchange" and isinstance(what, Topic)  # without the slash it would be a queue
        return Address(what.name, f"temporary-{what.kind}", suffix="/" if exchange else "")
    before, special = _BEFORE[naming][what.kind], _SPECIAL[naming][what.kind]
    name = before + what.name
    if naming == "path":
        return Address(name, None, isinstance(what, Queue), ascii_only=True, before=before, special=special)
    return Address(name, what.kind, before=before, special=special)


def name_of(address: str, kind: DestinationKind, naming: Naming) -> str:
    """The name of the destination that has an address: the other way round. What is no such address is a name."""
    return address.removeprefix(_BEFORE[naming][kind])


_BEFORE: dict[Naming, dict[DestinationKind, str]] = {
    "path": {"queue": "/queue/", "topic": "/topic/"},
    "scheme": {"queue": "queue://", "topic": "topic://"},
    "exchange": {"queue": "", "topic": "amq.topic/"},
    "capability": {"queue": "", "topic": ""},
}

_WORD = r"(?:\A|(?<=\.))[{}](?=\.|\Z)"  # one that is a wildcard
_BINDING = re.compile(_WORD.format("*#"))  # of what is bound to an exchange
_ARTEMIS = re.compile(r"\?|::|" + _WORD.format("*#"))
_ACTIVEMQ = re.compile(r"[?,]|" + _WORD.format("*>"))
_SPECIAL: dict[Naming, dict[DestinationKind, re.Pattern[str] | None]] = {
    "path": {"queue": None, "topic": _BINDING},
    "scheme": {"queue": _ACTIVEMQ, "topic": _ACTIVEMQ},
    "exchange": {"queue": None, "topic": _BINDING},
    "capability": {"queue": _ARTEMIS, "topic": _ARTEMIS},
}
