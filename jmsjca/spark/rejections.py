"""Rows that a job rejects: each is retried through its queue, and in the end moved as a listener moves a message.

The sink decides, with the redelivery handling that listeners have. A stream cannot leave a message on its queue, so a
retry is a new message there, which carries the number of rejections and the id of the first message in its properties.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from jmsjca.destinations import Destination, Queue
from jmsjca.errors import InvalidOptionError, InvalidRedeliveryHandlingError, MessageFormatError, Reject
from jmsjca.messages import DUPLICATE_ID, PREFIX, Int, Long, Message, Properties, PropertyValue
from jmsjca.messages.message import to_datetime
from jmsjca.outbound.producer import DeliveryFields
from jmsjca.redelivery import Delay, Delete, Failure, Move, MoveFacts, RedeliveryPolicy, moved_copy, plain_copy
from jmsjca.redelivery.encounter import encodable
from jmsjca.redelivery.moved_copy import remaining_life
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.rows import REJECTION, Outgoing, RowEncoder, int_or_none

__all__ = ["DEFAULT_HANDLING", "FIRST_ID", "RETRY_COUNT", "dead_letter", "encoder_of_sink"]

DEFAULT_HANDLING = "1:move(queue:dlq.$)"
"""The redelivery handling of rejected rows: the first rejection moves the row."""

RETRY_COUNT = f"{PREFIX}RetryCount"
"""The property of a retry with the number of times that a job has rejected the message."""

FIRST_ID, _FIRST_TIME = f"{PREFIX}OriginalJMSMessageID", f"{PREFIX}OriginalTimestamp"
_NEEDED = ("destination", "properties")
_USED = (
    *("message_id", "correlation_id", "destination", "reply_to", "type", "priority", "timestamp", "expiration"),
    *("properties", "typed_properties", "text", "body", "error"),
)
_NUMBERS = ("JMSXGroupSeq", "JMSXDeliveryCount", RETRY_COUNT, f"{PREFIX}ReplayCount")  # texts in a row that was read
_LONGEST_REASON = 1000
_SHORTEST_LIFE = 0.001  # seconds


def dead_letter(
    rows: DataFrame,
    reason: str | Column,
    redelivery_handling: str | RedeliveryPolicy = DEFAULT_HANDLING,
    *,
    origin: str | None = None,
    error_class: str | Column = f"{Reject.__module__}.{Reject.__qualname__}",
) -> DataFrame:
    """Return the table that retries or dead-letters rejected rows when it is written with ``format("jms")``.

    The n-th rejection of a message takes the action of the redelivery handling for n. A delay, or no action yet, sends
    the message back to its queue, and the stream reads it again. A move sends a copy with the properties that a
    listener's moved copy has, so that ``jmsjca dlq`` lists and replays it. Delete sends nothing.

    Args:
        rows: Rows that were read with ``format("jms")``. They need the columns ``destination``, ``properties`` and
            ``text`` or ``body``; other columns of messages are used, and any others are dropped.
        reason: The reason of the rejection: a text or a column, at most 1,000 characters of each.
        redelivery_handling: The actions, as ``3:1000; 5:move(queue:dlq.$)``; the last one must be a move or delete.
        origin: The queue of rows without a destination. A message that could not be decoded has such a row.
        error_class: The name under which ``jmsjca dlq`` groups the dead letters: a text or a column.

    Raises:
        InvalidOptionError: A column is missing.
        InvalidRedeliveryHandlingError: The redelivery handling is invalid, or retries for ever.
    """
    handling = str(redelivery_handling)
    if not isinstance(RedeliveryPolicy.parse(handling).last_action, Delete | Move):
        raise InvalidRedeliveryHandlingError(
            f"The redelivery handling {handling!r:.200} would retry rejected rows for ever: end it with a move or with"
            f" delete, {handling.strip().rstrip(';') or '3:1000'}; 50:move(queue:dlq.$) for instance."
        )
    body = () if "body" in rows.columns else ("text",)
    if missing := [name for name in (*_NEEDED, *body) if name not in rows.columns]:
        raise InvalidOptionError(
            f"Rejected rows need the column {', '.join(missing)}: keep the columns that were read, beside the columns"
            " that the job has made of them. The copy is made of them, and a retry is counted in a property."
        )
    rejection = f.struct(
        f.lit(handling).alias("handling"),
        _text(reason).alias("reason"),
        _text(error_class).alias("error_class"),
        f.lit(None if origin is None else str(Queue(origin))).cast("string").alias("origin"),
    )
    return rows.select(*(name for name in _USED if name in rows.columns), rejection.alias(REJECTION))


def _text(value: str | Column) -> Column:
    return f.lit(value) if isinstance(value, str) else f.coalesce(value.cast("string"), f.lit(""))


def encoder_of_sink(schema: StructType, options: SinkOptions) -> RowEncoder:
    """Return the encoder of a sink, once it is known that each row has a destination.

    Args:
        schema: The columns of the table.
        options: The options of the sink.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type; or there is no destination,
            or there is one for rejected rows.
    """
    if REJECTION not in schema.names:
        return RowEncoder.of_sink(schema, options)
    if options.destination:
        raise InvalidOptionError(
            "Rejected rows go to their own queue or to that of the redelivery handling: leave out the option"
            f" 'destination', which is {options.destination!r}."
        )
    return RejectedRowEncoder(schema)


class _First(NamedTuple):
    """The history of a message from its properties, if it is a retry."""

    rejections: int
    message_id: str | None
    timestamp: datetime | None


class RejectedRowEncoder(RowEncoder):
    """Makes of each rejected row its retry, its dead letter, or nothing.

    Args:
        schema: The columns of a table of `dead_letter`.

    Raises:
        InvalidOptionError: A column is unknown or missing, or has a wrong type.
    """

    def __init__(self, schema: StructType) -> None:
        super().__init__(schema)
        self._policies: dict[tuple[str, Destination], RedeliveryPolicy] = {}

    def encode(self, row: dict[str, Any]) -> Outgoing | None:
        """Return the message that is sent for a rejected row; None if it is deleted.

        Raises:
            MessageFormatError: The row has no destination and no origin, or a row of a topic would be retried.
        """
        rejection = row[REJECTION]
        origin = self._origin(row, rejection)
        message, first = self._received(row)
        count = first.rejections + 1
        policy = self._policy(rejection["handling"], origin)
        # A retry of an undecodable message would be another message: a bytes message with its encoding.
        match policy.action(count) if row.get("error") is None else policy.last_action:
            case Delete():
                return None
            case Move() as move:
                options: DeliveryFields = {**_priority(row), "time_to_live": 0.0}  # a dead letter never expires
                return Outgoing(_dead(message, origin, count, rejection), move.destination, options)
            case action:
                delay = action.milliseconds / 1000 if isinstance(action, Delay) else 0.0
                options = {**_priority(row), **_life(message), "delivery_delay": delay}
                return Outgoing(_retry(message, count), _retried(origin), options)

    def _origin(self, row: Mapping[str, Any], rejection: Mapping[str, Any]) -> Destination:
        text = row.get("destination") or rejection["origin"]
        if text is None:
            raise MessageFormatError(
                "The destination of a rejected row is null, because its message could not be decoded: name the queue"
                ' that the job reads, dead_letter(…, origin="orders").'
            )
        return self._parse_destination(text)

    def _policy(self, handling: str, origin: Destination) -> RedeliveryPolicy:
        known = self._policies.get((handling, origin))
        if known is None:
            known = RedeliveryPolicy.parse(handling, origin.name, origin.kind)
            self._policies[handling, origin] = known
        return known

    def _received(self, row: dict[str, Any]) -> tuple[Message, _First]:
        """Return the message that a row was read from, as far as the row has it, and what is known if it is a retry."""
        message = self._body(row)
        reply_to = row.get("reply_to")
        message.correlation_id, message.type = row.get("correlation_id"), row.get("type")
        message.reply_to = None if reply_to is None else self._parse_destination(reply_to)
        properties = {name: _number(name, value) for name, value in self._properties(row).items()}
        first = _take_first(properties)
        message.properties = Properties.received(properties)  # names that only other clients can set are kept
        message.message_id = first.message_id or row.get("message_id")
        message.timestamp = first.timestamp or row.get("timestamp")
        expiration = row.get("expiration")
        message.expiration = None if expiration is None else expiration.astimezone(UTC)
        return message, first


def _take_first(properties: dict[str, PropertyValue]) -> _First:
    """Return what a retry carries, and remove it from the properties."""
    count = properties.pop(RETRY_COUNT, None)
    if not isinstance(count, int):
        return _First(0, None, None)
    first_id, sent = properties.pop(FIRST_ID, None), str(properties.pop(_FIRST_TIME, ""))
    moment = to_datetime(int(sent)) if sent.isdecimal() else None
    return _First(count, None if first_id is None else str(first_id), moment)


def _number(name: str, value: Any) -> PropertyValue:
    """Return a property that is a number again, because a row has all properties as texts."""
    number = int_or_none(value) if name in _NUMBERS and str(value).isdecimal() else None
    return value if number is None else number


def _retry(message: Message, count: int) -> Message:
    copy = plain_copy(message)
    copy.properties.pop(DUPLICATE_ID, None)  # a broker that has seen the message would drop the retry
    copy.properties[RETRY_COUNT] = Int(count)
    if message.message_id is not None:
        copy.properties[FIRST_ID] = message.message_id
    if message.timestamp is not None:
        copy.properties[_FIRST_TIME] = Long(round(message.timestamp.timestamp() * 1000))
    return copy


def _retried(origin: Destination) -> Destination:
    if origin.kind == "topic":
        raise MessageFormatError(
            f"A rejected row of {origin} cannot be retried, because all subscribers would receive the retry: begin the"
            " redelivery handling with a move, 1:move(queue:dlq.$) for instance."
        )
    return origin


def _dead(message: Message, origin: Destination, count: int, rejection: Mapping[str, Any]) -> Message:
    reason = encodable(rejection["reason"])[:_LONGEST_REASON]
    failure = Failure(encodable(rejection["error_class"])[:_LONGEST_REASON], reason, "")
    return moved_copy(message, MoveFacts(origin, count, failure=failure))


def _priority(row: Mapping[str, Any]) -> DeliveryFields:
    return {} if row.get("priority") is None else {"priority": row["priority"]}


def _life(message: Message) -> DeliveryFields:
    """Return the remaining time to live of a retry; the shortest one if it is over, as 0 would be unlimited."""
    left = remaining_life(message.expiration)
    return {"time_to_live": max(left, _SHORTEST_LIFE)} if left else {}
