"""The copy of a moved message: like the original, with properties that tell where it was and why it moved."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jmsjca.destinations import JAVA_TYPES, Destination
from jmsjca.messages import DUPLICATE_ID, PREFIX, Int, Long, Message, ObjectMessage, Properties, vendor_names
from jmsjca.messages.vendor_properties import rollback_names
from jmsjca.redelivery.encounter import Failure

__all__ = ["MoveFacts", "moved_copy", "plain_copy", "redirected_copy"]


@dataclass(frozen=True, slots=True)
class MoveFacts:
    """What a moved copy tells beside what the message said.

    Attributes:
        destination: Where the message came from.
        count: For the how-manieth time it was seen redelivered.
        subscription_name: That of the durable subscription; None if there is none.
        client_id: That of the activation; None if there is none.
        context_name: That of the activation; None if there is none.
        rollback_data: What the handler wanted to be remembered.
        failure: What the handler raised last; None if it never did.
    """

    destination: Destination
    count: int
    subscription_name: str | None = None
    client_id: str | None = None
    context_name: str | None = None
    rollback_data: Mapping[str, str] = field(default_factory=dict[str, str])
    failure: Failure | None = None


def moved_copy(message: Message, facts: MoveFacts) -> Message:
    """Make the copy of a message that is moved. The message stays as it is.

    Correlation id, reply-to, type, priority, delivery mode, expiration, body and properties are those of the message.
    The pickle of an object message is passed on unseen. Properties by which brokers control delivery (``JMSX…`` and the
    duplicate id) are told under names that begin with ``_JMSJCA_``: under their own names they would be obeyed again,
    and the copy might be dropped as a duplicate.

    Args:
        message: What was received.
        facts: What to tell beside. Each is told under the manual's name and under the later one.

    Returns:
        A message without id, timestamp and destination, which whoever sends it sets.
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
    """Make the copy of a message that is redirected: as `moved_copy` makes it, but it tells nothing.

    Args:
        message: What was received.
    """
    copy = plain_copy(message)
    _rename_controlling_properties(message, copy.properties)
    return copy


def plain_copy(message: Message) -> Message:
    """Make a copy that is to be sent in the place of a message: with all that its sender set.

    Args:
        message: What was received.
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
    """What there is to tell; what is not known is not told."""
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
