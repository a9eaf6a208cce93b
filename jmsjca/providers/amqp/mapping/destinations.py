"""Destinations: an address, and an annotation that tells whether it is a queue or a topic, and temporary."""

from collections.abc import Mapping
from typing import Any

from jmsjca.destinations import Destination, DestinationKind, destination
from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.addresses import Naming, name_of
from jmsjca.providers.amqp.mapping.origin import Origin

__all__ = ["REPLY_TO", "TO", "kind_number", "received_destination"]

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
