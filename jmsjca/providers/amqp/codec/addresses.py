"""Addresses and destinations: names on the wire for each broker, and the annotations for queues and topics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from proton import Array, symbol

from jmsjca.config.connection_url import check_text
from jmsjca.destinations import Destination, DestinationKind, Queue, Topic, destination
from jmsjca.errors import InvalidDestinationError, MessageFormatError
from jmsjca.providers.amqp.engine.proton_ffi import CONFIGURATION, SYMBOL_ARRAY
from jmsjca.providers.brokers.profile import AddressStyle
from jmsjca.providers.common.codec import ReadingHabit

__all__ = [
    "DESTINATION_TYPE",
    "REPLY_TO_TYPE",
    "Address",
    "ReceiveContext",
    "SubscriptionQueue",
    "address_of",
    "destination_name",
    "destination_type_of",
    "encoded_name",
    "received_destination",
    "source_address_of",
]

_TEMPORARY_SCHEMES = ("temp-queue://", "temp-topic://")  # the schemes of ActiveMQ


@dataclass(frozen=True, slots=True)
class Address:
    """An address, and the capability that its terminus requests.

    Args:
        name: The address.
        capability: The required kind of node, a queue or a topic; None where the name implies the kind.
        durable: True if a node that the broker creates for this address must survive a restart of the broker.
        suffix: Appended to the address in a terminus, but not in messages.
        ascii_only: True if the broker corrupts other characters, or closes the connection because of them.
        prefix: The part of the address that marks the kind and does not belong to the destination's name.
        decoded: The destination's name, if the address contains it in another form.
        forbidden: Matches syntax that the broker would interpret instead of using the name literally; None for none.
    """

    name: str
    capability: str | None
    durable: bool = False
    suffix: str = ""
    ascii_only: bool = False
    prefix: str = ""
    decoded: str | None = None
    forbidden: re.Pattern[str] | None = None

    def check(self) -> None:
        """Reject an unusable name before it is sent to the broker.

        Raises:
            InvalidDestinationError: The name would arrive changed, or the broker would not understand it.
        """
        name = self.name.removeprefix(self.prefix) if self.decoded is None else self.decoded
        check_text(name, f"The name {name!a:.200}", InvalidDestinationError)
        if found := self.forbidden and self.forbidden.search(name):
            raise InvalidDestinationError(
                f"The name {self.name!a:.200} contains {found[0]!a}: over AMQP this broker would interpret options,"
                " lists, wildcards or a queue of an address in it, and use other destinations; choose another name."
            )
        if self.ascii_only and not self.name.isascii():
            raise InvalidDestinationError(
                f"The name {self.name!a:.200} is not ASCII: over AMQP this broker changes the name, or closes the"
                " connection; choose another name."
            )

    def apply(self, terminus: Any, more: Sequence[str] = ()) -> None:
        """Set the address, capabilities and durability of a terminus.

        Args:
            terminus: A source or target of proton.
            more: Additional capabilities to request.
        """
        terminus.address = self.name + self.suffix
        if wanted := [symbol(name) for name in (self.capability, *more) if name]:
            terminus.capabilities.put_object(Array(*SYMBOL_ARRAY, *wanted))
        if self.durable:
            terminus.durability = CONFIGURATION


@dataclass(frozen=True, slots=True)
class SubscriptionQueue(Queue):
    """The queue of a subscription on Artemis: its name begins with the address, and ``::``."""


def source_address_of(what: Destination, naming: AddressStyle) -> Address:
    """Return the address of a consumer's source: words of a topic's name may be wildcards of the broker."""
    found = address_of(what, naming)
    if isinstance(what, SubscriptionQueue):
        return replace(found, forbidden=None)
    return replace(found, forbidden=_FORBIDDEN_IN_PATTERNS[naming]) if isinstance(what, Topic) else found


def address_of(what: Destination, naming: AddressStyle) -> Address:
    """Return the address of a destination; a temporary destination has the name that the broker gave it."""
    if naming == "encoded":
        return _encoded_address(what)
    if what.temporary or what.name.startswith(_TEMPORARY_SCHEMES):
        exchange = naming == "exchange" and isinstance(what, Topic)  # without the slash the address would be a queue
        return Address(what.name, f"temporary-{what.kind}", suffix="/" if exchange else "")
    before, special = _PREFIXES[naming][what.kind], _FORBIDDEN[naming][what.kind]
    name = before + what.name
    if naming == "path":
        return Address(name, None, isinstance(what, Queue), ascii_only=True, prefix=before, forbidden=special)
    return Address(name, what.kind, prefix=before, forbidden=special)


def _encoded_address(what: Destination) -> Address:
    before = _TEMPORARY_PREFIXES[what.kind] if what.temporary else _PREFIXES["encoded"][what.kind]
    special = _FORBIDDEN["encoded"][what.kind]
    return Address(before + encoded_name(what.name), None, prefix=before, decoded=what.name, forbidden=special)


def destination_name(address: str, kind: DestinationKind, naming: AddressStyle) -> str:
    """Return the name of the destination at an address, the inverse of `address_of`."""
    name = address.removeprefix(_PREFIXES[naming][kind])
    if naming != "encoded":
        return name
    if name != address:
        return unquote(name)
    return name.removeprefix(_DECLARED if kind == "queue" else "").removeprefix(_PREFIXES["path"][kind])


def encoded_name(name: str) -> str:
    """Return a name as a segment of a percent-encoded path; `Address.check` rejects names that are not Unicode."""
    return quote(name, safe="", errors="surrogatepass")


_PREFIXES: dict[AddressStyle, dict[DestinationKind, str]] = {
    "path": {"queue": "/queue/", "topic": "/topic/"},
    "encoded": {"queue": "/queues/", "topic": "/exchanges/amq.topic/"},
    "scheme": {"queue": "queue://", "topic": "topic://"},
    "exchange": {"queue": "", "topic": "amq.topic/"},
    "capability": {"queue": "", "topic": ""},
}

_REPLY_OF_STOMP = re.compile("/queue//(queue|topic)/.")  # RabbitMQ 3 takes the reply destination of STOMP for a name
_DECLARED = "/amq"  # before "/queue/" for STOMP clients of RabbitMQ: a queue that exists
_TEMPORARY_PREFIXES: dict[DestinationKind, str] = {"queue": "/queues/", "topic": "/exchanges/"}  # of encoded paths

_WILDCARD = r"(?:\A|(?<=\.))[{}](?=\.|\Z)"  # a whole word that is a wildcard
_BINDING_WILDCARD = re.compile(_WILDCARD.format("*#"))  # the wildcards in a binding of an exchange
_DOT_SEGMENT = re.compile(r"\A\.{1,2}\Z")  # the path of a request would lose it
_ARTEMIS_SYNTAX = re.compile(r"\?|::|" + _WILDCARD.format("*#"))
_ACTIVEMQ_SYNTAX = re.compile(r"[?,]|" + _WILDCARD.format("*>"))
_FORBIDDEN: dict[AddressStyle, dict[DestinationKind, re.Pattern[str] | None]] = {
    "path": {"queue": None, "topic": _BINDING_WILDCARD},
    "encoded": {"queue": _DOT_SEGMENT, "topic": _BINDING_WILDCARD},
    "scheme": {"queue": _ACTIVEMQ_SYNTAX, "topic": _ACTIVEMQ_SYNTAX},
    "exchange": {"queue": None, "topic": _BINDING_WILDCARD},
    "capability": {"queue": _ARTEMIS_SYNTAX, "topic": _ARTEMIS_SYNTAX},
}
_FORBIDDEN_IN_PATTERNS: dict[AddressStyle, re.Pattern[str] | None] = {
    "path": None,
    "encoded": None,
    "scheme": re.compile("[?,]"),
    "exchange": None,
    "capability": re.compile(r"\?|::"),
}


@dataclass(slots=True)
class ReceiveContext:
    """How a consumer's messages were received: the facts that their bytes do not contain.

    Args:
        source: The source of the consumer, for messages without an address.
        naming: The broker's address style, also for addresses in the message.
        counts_deliveries: True if the broker fills in the delivery count.
        habit: How the application reads the messages.
    """

    source: Destination | None
    naming: AddressStyle = "capability"
    counts_deliveries: bool = True
    habit: ReadingHabit = field(default_factory=ReadingHabit)


DESTINATION_TYPE, REPLY_TO_TYPE = "x-opt-jms-dest", "x-opt-jms-reply-to"

_DestinationType = tuple[DestinationKind, bool]  # queue or topic; whether temporary
_QUEUE: _DestinationType = ("queue", False)
_DESTINATION_TYPES: list[_DestinationType] = [_QUEUE, ("topic", False), ("queue", True), ("topic", True)]
_TYPE_NUMBERS = {kind: number for number, kind in enumerate(_DESTINATION_TYPES)}
_LEGACY_ANNOTATIONS = {
    DESTINATION_TYPE: "x-opt-to-type",
    REPLY_TO_TYPE: "x-opt-reply-type",
}  # of the first Java clients


def destination_type_of(of: Destination) -> int:
    """Return the number that annotations use for the kind of a destination."""
    return _TYPE_NUMBERS[of.kind, of.temporary]


def received_destination(
    address: Any, annotations: Mapping[Any, Any], annotation: str, context: ReceiveContext
) -> Destination | None:
    """Return the destination that a received message names.

    Args:
        address: The address in the message.
        annotations: The message annotations.
        annotation: The annotation with the destination type: `DESTINATION_TYPE` or `REPLY_TO_TYPE`.
        context: How the message was received. If nothing else shows the kind, it is the kind of the source.

    Returns:
        The destination; None if there is no address.

    Raises:
        MessageFormatError: The address is not a string.
    """
    if not address:
        return None
    if not isinstance(address, str):
        raise MessageFormatError(f"an address is a string, not {type(address).__name__}")
    naming = context.naming
    kind = _from_type_number(annotations.get(annotation)) or _from_legacy_words(
        annotations.get(_LEGACY_ANNOTATIONS[annotation])
    )
    if kind is None:
        if naming == "path" and _REPLY_OF_STOMP.match(address):
            address = address.removeprefix(_PREFIXES["path"]["queue"])
        kind = _from_prefix(address, naming) or _kind_of_source(context.source)
    make = _cached_destination if len(address) <= _MAX_CACHED_CHARACTERS else _destination_at
    return make(str(address), kind, naming)


def _destination_at(address: str, kind: _DestinationType, naming: AddressStyle) -> Destination:
    of, temporary = kind
    name = _temporary_name(address, of, naming) if temporary else destination_name(address, of, naming)
    return destination(name, of, temporary=temporary)


_cached_destination = lru_cache(256)(_destination_at)  # messages name few
_MAX_CACHED_CHARACTERS = 128


def _temporary_name(address: str, kind: DestinationKind, naming: AddressStyle) -> str:
    return unquote(address.removeprefix(_TEMPORARY_PREFIXES[kind])) if naming == "encoded" else str(address)


def _from_type_number(number: Any) -> _DestinationType | None:
    return _DESTINATION_TYPES[number] if isinstance(number, int) and 0 <= number < len(_DESTINATION_TYPES) else None


def _from_legacy_words(words: Any) -> _DestinationType | None:
    """Parse the annotation of the first Java clients: words separated by commas."""
    told = set(words.split(",")) if isinstance(words, str) else set[str]()
    return next(((kind, "temporary" in told) for kind in ("queue", "topic") if kind in told), None)


def _from_prefix(address: str, naming: AddressStyle) -> _DestinationType | None:
    """Infer the kind from the prefix of some brokers' addresses; clients without JMS send no annotations."""
    return next(
        (kind for kind in _DESTINATION_TYPES[:2] if destination_name(address, kind[0], naming) != address), None
    )


def _kind_of_source(source: Destination | None) -> _DestinationType:
    if source is None:
        return _QUEUE
    kind = (source.kind, source.temporary)
    return kind if kind in _DESTINATION_TYPES else _QUEUE
