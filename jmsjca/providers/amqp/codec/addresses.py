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
    "DESTINATION_TYPE",
    "REPLY_TO_TYPE",
    "Address",
    "AddressStyle",
    "ReceiveContext",
    "address_of",
    "destination_name",
    "destination_type_of",
    "received_destination",
]

_TEMPORARY_SCHEMES = ("temp-queue://", "temp-topic://")  # the schemes of ActiveMQ

AddressStyle = Literal["capability", "exchange", "path", "scheme"]
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
    durable: bool = False
    suffix: str = ""
    ascii_only: bool = False
    prefix: str = ""
    forbidden: re.Pattern[str] | None = None

    def check(self) -> None:
        """Refuse a name that cannot be written, before anything is asked for.

        Raises:
            InvalidDestinationError: It would arrive as another one, or the broker would not understand it.
        """
        check_text(self.name, f"The name {self.name!a:.200}", InvalidDestinationError)
        if found := self.forbidden and self.forbidden.search(self.name.removeprefix(self.prefix)):
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
        if self.durable:
            terminus.durability = CONFIGURATION


def address_of(what: Destination, naming: AddressStyle) -> Address:
    """Name a destination as its broker does; a temporary one has the name that the broker gave it."""
    if what.temporary or what.name.startswith(_TEMPORARY_SCHEMES):
        exchange = naming == "exchange" and isinstance(what, Topic)  # without the slash it would be a queue
        return Address(what.name, f"temporary-{what.kind}", suffix="/" if exchange else "")
    before, special = _PREFIXES[naming][what.kind], _FORBIDDEN[naming][what.kind]
    name = before + what.name
    if naming == "path":
        return Address(name, None, isinstance(what, Queue), ascii_only=True, prefix=before, forbidden=special)
    return Address(name, what.kind, prefix=before, forbidden=special)


def destination_name(address: str, kind: DestinationKind, naming: AddressStyle) -> str:
    """The name of the destination that has an address: the other way round. What is no such address is a name."""
    return address.removeprefix(_PREFIXES[naming][kind])


_PREFIXES: dict[AddressStyle, dict[DestinationKind, str]] = {
    "path": {"queue": "/queue/", "topic": "/topic/"},
    "scheme": {"queue": "queue://", "topic": "topic://"},
    "exchange": {"queue": "", "topic": "amq.topic/"},
    "capability": {"queue": "", "topic": ""},
}

_WILDCARD = r"(?:\A|(?<=\.))[{}](?=\.|\Z)"  # one that is a wildcard
_BINDING_WILDCARD = re.compile(_WILDCARD.format("*#"))  # of what is bound to an exchange
_ARTEMIS_SYNTAX = re.compile(r"\?|::|" + _WILDCARD.format("*#"))
_ACTIVEMQ_SYNTAX = re.compile(r"[?,]|" + _WILDCARD.format("*>"))
_FORBIDDEN: dict[AddressStyle, dict[DestinationKind, re.Pattern[str] | None]] = {
    "path": {"queue": None, "topic": _BINDING_WILDCARD},
    "scheme": {"queue": _ACTIVEMQ_SYNTAX, "topic": _ACTIVEMQ_SYNTAX},
    "exchange": {"queue": None, "topic": _BINDING_WILDCARD},
    "capability": {"queue": _ARTEMIS_SYNTAX, "topic": _ARTEMIS_SYNTAX},
}


class ReceiveContext(NamedTuple):
    """What a message does not tell itself."""

    source: Destination | None  #: what it is received from, should it not say where it was sent to
    naming: AddressStyle = "capability"  #: how the broker names destinations, those in the message too
    counts_deliveries: bool = True  #: whether the broker counts deliveries


DESTINATION_TYPE, REPLY_TO_TYPE = "x-opt-jms-dest", "x-opt-jms-reply-to"

_DestinationType = tuple[DestinationKind, bool]  # queue or topic; whether temporary
_QUEUE: _DestinationType = ("queue", False)
_DESTINATION_TYPES: list[_DestinationType] = [_QUEUE, ("topic", False), ("queue", True), ("topic", True)]
_TYPE_NUMBERS = {kind: number for number, kind in enumerate(_DESTINATION_TYPES)}
_LEGACY_ANNOTATIONS = {
    DESTINATION_TYPE: "x-opt-to-type",
    REPLY_TO_TYPE: "x-opt-reply-type",
}  # what Java's first clients wrote


def destination_type_of(of: Destination) -> int:
    """The number of a kind of destination in annotations."""
    return _TYPE_NUMBERS[of.kind, of.temporary]


def received_destination(
    address: Any, annotations: Mapping[Any, Any], annotation: str, origin: ReceiveContext
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
        _from_type_number(annotations.get(annotation))
        or _from_legacy_words(annotations.get(_LEGACY_ANNOTATIONS[annotation]))
        or _from_prefix(address, naming)
        or _kind_of_source(source)
    )
    name = str(address) if temporary else destination_name(str(address), kind, naming)
    if source is not None and not source.temporary and (name, kind, temporary) == (source.name, source.kind, False):
        return source  # as most of them do
    return destination(name, kind, temporary=temporary)


def _from_type_number(number: Any) -> _DestinationType | None:
    return _DESTINATION_TYPES[number] if isinstance(number, int) and 0 <= number < len(_DESTINATION_TYPES) else None


def _from_legacy_words(words: Any) -> _DestinationType | None:
    """As Java's first clients wrote it: words between commas."""
    told = set(words.split(",")) if isinstance(words, str) else set[str]()
    return next(((kind, "temporary" in told) for kind in ("queue", "topic") if kind in told), None)


def _from_prefix(address: str, naming: AddressStyle) -> _DestinationType | None:
    """By what some brokers put before names; programs without JMS annotate nothing."""
    return next(
        (kind for kind in _DESTINATION_TYPES[:2] if destination_name(address, kind[0], naming) != address), None
    )


def _kind_of_source(source: Destination | None) -> _DestinationType:
    if source is None:
        return _QUEUE
    kind = (source.kind, source.temporary)
    return kind if kind in _DESTINATION_TYPES else _QUEUE
