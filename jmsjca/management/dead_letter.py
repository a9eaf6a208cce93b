"""A dead letter: the copy of a failed message, the record of its origin and failure, and its way back."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from jmsjca.destinations import JAVA_TYPES, Destination, Queue, destination
from jmsjca.errors import JMSError
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import MANUAL_PREFIX, PREFIX, rollback_key, vendor_names
from jmsjca.messages.message import Message, to_datetime
from jmsjca.messages.properties import GROUP_ID, Int
from jmsjca.outbound.connection import Connection
from jmsjca.redelivery.moved_copy import ORIGINAL_EXPIRATION, plain_copy
from jmsjca.spi import RecordsOrigins

__all__ = ["REPLAY_COUNT", "DeadLetterRecord", "distinct_facts", "original_expiration", "replay_copy", "with_origins"]

logger = get_logger("jmsjca.management")

REPLAY_COUNT = f"{PREFIX}ReplayCount"
"""The property that counts the replays of a message; a copy that is moved again keeps it."""

_KINDS = {java: kind for kind, java in JAVA_TYPES.items()}
_FACTS = (
    *("RedeliveryCount", "OriginalDestinationName", "OriginalDestinationType", "OriginalTimestamp"),
    ORIGINAL_EXPIRATION,
    *("OriginalJMSMessageID", "OriginalJMSCorrelationID", "SubscriberName", "OriginalClientID", "ContextName"),
    *("ExceptionClass", "ExceptionMessage", "ExceptionStackTrace"),
)
_FACT_NAMES = frozenset(name for fact in _FACTS for name in vendor_names(fact))
_STACK_TRACES = vendor_names("ExceptionStackTrace")
# Properties of messages that brokers dead-letter themselves: the embedded broker and Artemis, then ActiveMQ.
_BROKER_ADDRESS, _BROKER_ROUTING, _BROKER_EXPIRY = "_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_ROUTING_TYPE", "_AMQ_ACTUAL_EXPIRY"
_BROKER_CAUSE, _EXPIRED = "dlqDeliveryFailureCause", "Message Expired"  # the second is a part of the first's value
_BROKER_FACTS = frozenset(
    {
        *(_BROKER_ADDRESS, _BROKER_ROUTING, _BROKER_EXPIRY, _BROKER_CAUSE),
        *("_AMQ_ORIG_QUEUE", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ORIG_MESSAGE_ID_STR"),
    }
)
# The delivery count and the duplicate id are not restored: the broker would drop a message with a known duplicate id.
_RESTORED = (GROUP_ID, "JMSXGroupSeq")
_RENAMED = f"{PREFIX}JMSX"


@dataclass(frozen=True, slots=True)
class DeadLetterRecord:
    """The origin and the failure of a moved message, as its copy records them.

    Attributes:
        message_id: Id of the copy in the dead-letter queue.
        origin: Destination that the message came from; None if not recorded.
        reason: Class of the last exception; "expired", "delivered too often" or "moved by the broker" if the broker
            itself dead-lettered the message; None if not recorded.
        error: Text of the last exception.
        stack_trace: Stack trace of the last exception.
        redeliveries: Number of redeliveries before the move; None if not recorded.
        replays: Number of earlier replays. Above 0, the message has failed again after a replay.
        moved: Time of the move, timezone-aware.
        expiration: Expiration of the message, if it had a time to live; timezone-aware.
        original_id: Id of the message before the move.
        user_data: The user rollback data that the handler set.
    """

    message_id: str | None
    origin: Destination | None
    reason: str | None = None
    error: str | None = None
    stack_trace: str | None = None
    redeliveries: int | None = None
    replays: int = 0
    moved: datetime | None = None
    expiration: datetime | None = None
    original_id: str | None = None
    user_data: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, message: Message, queue: str | None = None) -> "DeadLetterRecord":
        """Return the record of a message from a dead-letter queue.

        Args:
            message: The message.
            queue: Name of the queue; None if not known. A message that names another destination came from there:
                Broker-J, and ActiveMQ for messages sent over AMQP, dead-letter a message unchanged.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """
        return cls(
            message_id=message.message_id,
            origin=_origin(message) or _other_destination(message, queue),
            reason=_fact(message, "ExceptionClass") or _broker_reason(message, queue),
            error=_fact(message, "ExceptionMessage") or _broker_cause(message),
            stack_trace=_fact(message, "ExceptionStackTrace"),
            redeliveries=_fact(message, "RedeliveryCount"),
            replays=_replays(message),
            moved=message.timestamp,
            expiration=original_expiration(message),
            original_id=_fact(message, "OriginalJMSMessageID"),
            user_data=_user_data(message),
        )


def with_origins(records: Sequence[DeadLetterRecord], queue: str, connection: Connection) -> Sequence[DeadLetterRecord]:
    """Add the origins that only the broker's management knows to the records of one queue.

    Args:
        records: The records.
        queue: Name of the queue.
        connection: A connection to the broker.
    """
    unknown = [each.message_id for each in records if each.origin is None and each.message_id]
    if not (unknown and connection.capabilities.admin):
        return records
    origins: Mapping[str, Destination] = {}
    try:
        admin: object = connection.admin
        if isinstance(admin, RecordsOrigins):
            origins = admin.origins(Queue(queue), unknown)
    except JMSError as error:
        logger.warning("The management of the broker does not show where messages in %s came from: %s", queue, error)
    return [replace(each, origin=each.origin or origins.get(each.message_id or "")) for each in records]


def distinct_facts(properties: Mapping[str, Any], *, traces: bool) -> Iterator[tuple[str, Any]]:
    """Yield the properties of a message, each fact of a dead letter once.

    A moved copy has each fact under both vendor names, for the programs that read the one or the other.

    Args:
        properties: The properties.
        traces: True to yield the stack trace also.
    """
    for name, value in properties.items():
        twin = PREFIX + name.removeprefix(MANUAL_PREFIX)
        is_second = name.startswith(MANUAL_PREFIX) and properties.get(twin) == value
        if not is_second and (traces or name not in _STACK_TRACES):
            yield name, value


def original_expiration(message: Message) -> datetime | None:
    """Return the expiration of a message, or of the original of a dead letter; None if it does not expire."""
    recorded = _fact(message, ORIGINAL_EXPIRATION), message.properties.get(_BROKER_EXPIRY)
    return next((found for value in recorded if (found := _moment(value))), message.expiration)


def replay_copy(message: Message) -> Message:
    """Return the copy of a dead letter to replay: the message as it was sent originally, with its replays counted.

    The record of the failure is removed, and the message group is restored. The duplicate id stays renamed, because the
    broker would drop a second message with this id. The send sets the expiration from `original_expiration`.

    Args:
        message: The dead letter; it is not changed.
    """
    copy, original = plain_copy(message), message.properties
    for name in original:
        if name in _FACT_NAMES | _BROKER_FACTS or name.startswith(_RENAMED) or rollback_key(name) is not None:
            copy.properties.pop(name, None)
    for name in _RESTORED:
        if (value := original.get(PREFIX + name)) is not None:
            copy.properties[name] = value
    copy.properties[REPLAY_COUNT] = Int(_replays(message) + 1)
    return copy


def _fact(message: Message, name: str) -> Any:
    found = (message.properties.get(spelling) for spelling in vendor_names(name))
    return next((value for value in found if value is not None), None)


def _moment(value: object) -> datetime | None:
    """Convert recorded milliseconds to a time; None if not recorded. Copies sent over STOMP record text."""
    with suppress(ValueError, TypeError):
        return to_datetime(int(value))  # type: ignore[call-overload]  # other clients may have set anything
    return None


def _origin(message: Message) -> Destination | None:
    name, kind = _fact(message, "OriginalDestinationName"), _KINDS.get(_fact(message, "OriginalDestinationType"))
    if isinstance(name, str) and name and kind:
        return destination(name, kind)
    name, routing = (message.properties.get(each) for each in (_BROKER_ADDRESS, _BROKER_ROUTING))
    if isinstance(name, str) and name and routing in (0, 1):
        return destination(name, "queue" if routing else "topic")
    return None


def _other_destination(message: Message, queue: str | None) -> Destination | None:
    """Return the destination in the message, if it is not the queue that the message waits in."""
    sent_to = message.destination
    elsewhere = queue is not None and sent_to is not None and not sent_to.temporary and sent_to != Queue(queue)
    return sent_to if elsewhere else None


def _broker_reason(message: Message, queue: str | None) -> str | None:
    """Return why the broker itself dead-lettered a message; None if the message does not record that."""
    if message.properties.get(_BROKER_EXPIRY) is not None or _EXPIRED in (_broker_cause(message) or ""):
        return "expired"
    if any(message.properties.get(each) is not None for each in (_BROKER_ADDRESS, _BROKER_CAUSE)):
        return "delivered too often"
    return "moved by the broker" if _other_destination(message, queue) and not _origin(message) else None


def _broker_cause(message: Message) -> str | None:
    cause = message.properties.get(_BROKER_CAUSE)
    return None if cause is None else str(cause)


def _replays(message: Message) -> int:
    count = message.properties.get(REPLAY_COUNT)
    return count if isinstance(count, int) else 0


def _user_data(message: Message) -> dict[str, str]:
    keys = {name: rollback_key(name) for name in message.properties}
    return {key: str(message.properties[name]) for name, key in keys.items() if key is not None}
