"""The copy of a moved message: equals the original, plus properties with its origin and the reason of the move."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jmsjca.destinations import JAVA_TYPES, Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.delivery import PREFIX, rollback_names, vendor_names
from jmsjca.messages.message import MAX_SECONDS, Message
from jmsjca.messages.object_message import ObjectMessage, plain_data_of
from jmsjca.messages.properties import DUPLICATE_ID, Int, Long, Properties
from jmsjca.redelivery.encounter import Failure, encodable

__all__ = [
    "ORIGINAL_EXPIRATION",
    "MoveFacts",
    "moved_copy",
    "plain_copy",
    "raw_copy",
    "redirected_copy",
    "remaining_life",
]

ORIGINAL_EXPIRATION = "OriginalExpiration"
"""The property (without its prefix) with the message's expiration before the move, in milliseconds since 1970."""

# Java's AMQP client controls the encoding of a message by these properties. Other senders may use them differently.
_TIME_TO_LIVE, _TYPED_ENCODING = "JMS_AMQP_TTL", "JMS_AMQP_TYPED_ENCODING"


@dataclass(frozen=True, slots=True)
class MoveFacts:
    """The facts that a moved copy records in addition to the original message.

    Attributes:
        destination: The destination that the message was received from.
        count: The number of redeliveries seen.
        subscription_name: The name of the durable subscription, if any.
        client_id: The client id of the activation spec, if any.
        context_name: The context name of the activation, if any.
        rollback_data: The user rollback data that the handler set.
        failure: The failure of the handler's last attempt; None if it never failed.
    """

    destination: Destination
    count: int
    subscription_name: str | None = None
    client_id: str | None = None
    context_name: str | None = None
    rollback_data: Mapping[str, str] = field(default_factory=dict[str, str])
    failure: Failure | None = None


def moved_copy(message: Message, facts: MoveFacts) -> Message:
    """Return the copy of a message for its move. The message is not changed.

    The copy has the correlation id, reply-to, type, priority, delivery mode, body and properties of the message. It
    does not expire; the property ``OriginalExpiration`` records the expiration of the message. The pickle of an object
    message is copied without loading it. Properties that control the delivery by brokers (``JMSX…`` and the duplicate
    id) get the prefix ``_JMSJCA_``: under their own names they would take effect again, and the broker might drop the
    copy as a duplicate.

    Args:
        message: The received message.
        facts: The facts to record. Each is set under the manual's name and under the later one.

    Returns:
        A message without id, timestamp and destination, which the send sets.
    """
    return _with_facts(redirected_copy(message), message, facts)


def redirected_copy(message: Message) -> Message:
    """Return the copy of a message for its redirection: like `moved_copy`, but without facts.

    Unlike in `moved_copy`, the expiration and the properties that control the delivery have only the later name.

    Args:
        message: The received message.
    """
    copy = plain_copy(message)
    _rename_controlling_properties(message, copy.properties)
    if copy.expiration is not None:
        copy.properties[PREFIX + ORIGINAL_EXPIRATION] = _milliseconds(copy.expiration)
        copy.expiration = None
    return copy


def raw_copy(body: bytes, message: Message | None, facts: MoveFacts) -> Message:
    """Return a bytes message for the move of a message that cannot be copied. It has the facts and no other property.

    Args:
        body: The bytes of the message.
        message: The received message, to record its ids and times as far as they can be decoded; None if the message
            cannot be decoded at all.
        facts: The facts to record, as in `moved_copy`.
    """
    return _with_facts(BytesMessage(body), message or Message(), facts)


def plain_copy(message: Message) -> Message:
    """Return a copy with everything that the sender of a message set.

    Properties by which Java's AMQP client controls the encoding get the prefix ``_JMSJCA_``: ``JMS_AMQP_TTL``, and
    ``JMS_AMQP_TYPED_ENCODING`` unless the body is plain data.

    Args:
        message: The received message.
    """
    copy = _with_body(message)
    copy.correlation_id, copy.reply_to, copy.type = message.correlation_id, message.reply_to, message.type
    copy.priority, copy.delivery_mode, copy.expiration = message.priority, message.delivery_mode, message.expiration
    copy.properties = Properties(message.properties)
    _rename(copy.properties, _TIME_TO_LIVE, copy.properties.get(_TIME_TO_LIVE))
    if not _is_plain_data(message):
        _rename(copy.properties, _TYPED_ENCODING, copy.properties.get(_TYPED_ENCODING))
    return copy


def remaining_life(expiration: datetime | None) -> float:
    """Return the seconds until a message expires: 0 if it never expires, negative if it has.

    An expiration beyond the longest time to live of a send, which other clients may set, is reduced to that time.

    Args:
        expiration: The expiration of the message; None for never.
    """
    if expiration is None:
        return 0.0
    return min((expiration - datetime.now(UTC)).total_seconds(), MAX_SECONDS) or -1.0


def _with_body(message: Message) -> Message:
    if isinstance(message, ObjectMessage):
        plain = plain_data_of(message)
        return ObjectMessage.from_pickled(message.pickled) if plain is None else ObjectMessage.from_data(plain.value)
    return type(message)(message.body)


def _is_plain_data(message: Message) -> bool:
    """Return True for an object message without a pickle: its body is plain data or empty."""
    return isinstance(message, ObjectMessage) and (plain_data_of(message) is not None or message.pickled is None)


def _rename_controlling_properties(message: Message, properties: Properties) -> None:
    for name in message.get_property_names():
        if name.startswith("JMSX") or name == DUPLICATE_ID:
            _rename(properties, name, message.get_object_property(name))


def _rename(properties: Properties, name: str, value: Any) -> None:
    properties.pop(name, None)
    if value is not None:
        with suppress(MessageFormatError):  # only other clients can send this name or value
            properties[PREFIX + name] = value


def _with_facts(copy: Message, message: Message, facts: MoveFacts) -> Message:
    properties = copy.properties
    for name, value in _move_properties(message, facts):
        encoded = encodable(value) if isinstance(value, str) else value
        for spelling in vendor_names(name):
            properties[spelling] = encoded
    for key, text in facts.rollback_data.items():
        for spelling in rollback_names(key):
            properties[spelling] = encodable(text)
    return copy


def _milliseconds(moment: datetime | None) -> Long | None:
    return None if moment is None else Long(round(moment.timestamp() * 1000))


def _readable(message: Message, header: str) -> Any:
    """Return a header; None if it cannot be decoded."""
    with suppress(MessageFormatError):
        return getattr(message, header)
    return None


def _move_properties(message: Message, facts: MoveFacts) -> Iterator[tuple[str, object]]:
    """Yield the properties to record. Unknown facts are left out."""
    correlation_id = _readable(message, "correlation_id")
    optional = {
        "OriginalTimestamp": _milliseconds(_readable(message, "timestamp")),
        ORIGINAL_EXPIRATION: _milliseconds(_readable(message, "expiration")),
        "OriginalJMSMessageID": _readable(message, "message_id"),
        "OriginalJMSCorrelationID": (correlation_id or "").strip() and correlation_id,
        "SubscriberName": facts.subscription_name,
        "OriginalClientID": facts.client_id,
        "ContextName": facts.context_name,
        "ExceptionClass": facts.failure and facts.failure.error_class,
        "ExceptionMessage": facts.failure and facts.failure.message,
        "ExceptionStackTrace": facts.failure and facts.failure.stack_trace,
    }
    yield "RedeliveryCount", Int(facts.count)
    yield "OriginalDestinationName", facts.destination.name
    yield "OriginalDestinationType", JAVA_TYPES[facts.destination.kind]
    yield from ((name, value) for name, value in optional.items() if value not in (None, ""))
