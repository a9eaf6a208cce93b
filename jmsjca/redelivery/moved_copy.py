"""The copy of a moved message: like the original, plus properties with its origin and the reason of the move."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jmsjca.destinations import JAVA_TYPES, Destination
from jmsjca.messages.message import Message
from jmsjca.messages.object_message import ObjectMessage
from jmsjca.messages.properties import DUPLICATE_ID, Properties
from jmsjca.messages.value_types import Int, Long
from jmsjca.messages.vendor_properties import PREFIX, rollback_names, vendor_names
from jmsjca.redelivery.encounter import Failure

__all__ = ["MoveFacts", "moved_copy", "plain_copy", "redirected_copy"]


@dataclass(frozen=True, slots=True)
class MoveFacts:
    """The facts that a moved copy records in addition to the original message.

    Attributes:
        destination: The destination that the message was received from.
        count: The number of redeliveries seen.
        subscription_name: The name of the durable subscription, if any.
        client_id: The client id of the activation, if any.
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

    Correlation id, reply-to, type, priority, delivery mode, expiration, body and properties are those of the message.
    The pickle of an object message is copied without loading it. Properties that control the delivery by brokers
    (``JMSX…`` and the duplicate id) are renamed to begin with ``_JMSJCA_``: under their own names they would take
    effect again, and the copy might be dropped as a duplicate.

    Args:
        message: The received message.
        facts: The facts to record. Each is set under the manual's name and under the later one.

    Returns:
        A message without id, timestamp and destination, which the send sets.
    """
    copy = redirected_copy(message)
    for name, value in _move_properties(message, facts):
        for spelling in vendor_names(name):
            copy.properties[spelling] = value
    for key, text in facts.rollback_data.items():
        for spelling in rollback_names(key):
            copy.properties[spelling] = text
    return copy


def redirected_copy(message: Message) -> Message:
    """Return the copy of a message for its redirection: like `moved_copy`, but without recorded facts.

    Args:
        message: The received message.
    """
    copy = plain_copy(message)
    _rename_controlling_properties(message, copy.properties)
    return copy


def plain_copy(message: Message) -> Message:
    """Return a copy with everything that the sender of a message set.

    Args:
        message: The received message.
    """
    copy = _with_body(message)
    copy.correlation_id, copy.reply_to, copy.type = message.correlation_id, message.reply_to, message.type
    copy.priority, copy.delivery_mode, copy.expiration = message.priority, message.delivery_mode, message.expiration
    copy.properties = Properties(message.properties)
    return copy


def _with_body(message: Message) -> Message:
    if isinstance(message, ObjectMessage):
        return ObjectMessage.from_pickled(message.pickled)
    return type(message)(message.body)


def _rename_controlling_properties(message: Message, properties: Properties) -> None:
    for name in message.get_property_names():
        if name.startswith("JMSX") or name == DUPLICATE_ID:
            properties.pop(name, None)
            properties[PREFIX + name] = message.get_object_property(name)


def _move_properties(message: Message, facts: MoveFacts) -> Iterator[tuple[str, object]]:
    """Yield the recorded properties; unknown facts are left out."""
    sent = message.timestamp
    optional = {
        "OriginalTimestamp": None if sent is None else Long(round(sent.timestamp() * 1000)),
        "OriginalJMSMessageID": message.message_id,
        "OriginalJMSCorrelationID": (message.correlation_id or "").strip() and message.correlation_id,
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
