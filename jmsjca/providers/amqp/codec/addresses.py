"""Addresses and destinations: names on the wire, by broker, and the annotations that tell queues from topics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from proton import Array, symbol

from jmsjca.config.text import check_text
from jmsjca.destinations import Destination, DestinationKind, Queue, Topic, destination
from jmsjca.errors import InvalidDestinationError, MessageFormatError
from jmsjca.providers.amqp.engine.proton_ffi import CONFIGURATION, SYMBOL_ARRAY

__all__ = [
    "REPLY_TO",
    "TO",
    "Address",
    "Naming",
    "Origin",
    "address_of",
    "kind_number",
    "name_of",
    "received_destination",
]

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
            terminus.capabilities.put_object(Array(*SYMBOL_ARRAY, *wanted))
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


class Origin(NamedTuple):
    """What a message does not tell itself."""

    source: Destination | None  #: what it is received from, should it not say where it was sent to
    naming: Naming = "capability"  #: how the broker names destinations, those in the message too
    counts: bool = True  #: whether the broker counts deliveries


TO, REPLY_TO = "x-opt-jms-dest", "x-opt-jms-reply-to"

_Kind = tuple[DestinationKind, bool]  # queue or topic; whether temporary
_QUEUE: _Kind = ("queue", False)
_KINDS: list[_Kind] = [_QUEUE, ("topic", False), ("queue", True), ("topic", True)]
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_LEGACY = {TO: "x-opt-to-type", REPLY_TO: "x-opt-reply-type"}  # what Java's first clients wrote


def kind_number(of: Destination) -> int:
    """The number of a kind of destination in annotations."""
    return _NUMBERS[of.kind, of.temporary]


def received_destination(
    address: Any, annotations: Mapping[Any, Any], annotation: str, origin: Origin
) -> Destination | None:
    """The destination that a received message names.

    Args:
        address: Its address.
        annotations: Those of the message.
        annotation: The one that tells its kind: `TO` or `REPLY_TO`.
        origin: What the message was received from, which is of the same kind if nothing else is told.

    Returns:
        The destination; None if there is no address.

    Raises:
        MessageFormatError: The address is no text.
    """
    if not address:
        return None
    if not isinstance(address, str):
        raise MessageFormatError(f"an address is a text, not {type(address).__name__}")
    source, naming = origin.source, origin.naming
    kind, temporary = (
        _told(annotations.get(annotation))
        or _told_before(annotations.get(_LEGACY[annotation]))
        or _told_by_address(address, naming)
        or _kind_of(source)
    )
    name = str(address) if temporary else name_of(str(address), kind, naming)
    if source is not None and not source.temporary and (name, kind, temporary) == (source.name, source.kind, False):
        return source  # as most of them do
    return destination(name, kind, temporary=temporary)


def _told(number: Any) -> _Kind | None:
    return _KINDS[number] if isinstance(number, int) and 0 <= number < len(_KINDS) else None


def _told_before(words: Any) -> _Kind | None:
    """As Java's first clients wrote it: words between commas."""
    told = set(words.split(",")) if isinstance(words, str) else set[str]()
    return next(((kind, "temporary" in told) for kind in ("queue", "topic") if kind in told), None)


def _told_by_address(address: str, naming: Naming) -> _Kind | None:
    """By what some brokers put before names; programs without JMS annotate nothing."""
    return next((kind for kind in _KINDS[:2] if name_of(address, kind[0], naming) != address), None)


def _kind_of(source: Destination | None) -> _Kind:
    if source is None:
        return _QUEUE
    kind = (source.kind, source.temporary)
    return kind if kind in _KINDS else _QUEUE
