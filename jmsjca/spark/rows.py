"""Messages as Arrow rows."""

from collections.abc import Iterable
from typing import Any

from jmsjca import spi
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, convert
from jmsjca.spark.arrow import pa
from jmsjca.spark.schema import STAGED_SCHEMA
from jmsjca.spark.staging import Part

__all__ = ["delivery_row", "key_of", "message_row", "to_batch"]


def to_batch(rows: Iterable[dict[str, Any]], schema: Any = STAGED_SCHEMA) -> Any:
    """Make one Arrow batch of rows; a column that a row lacks is null."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def delivery_row(delivery: spi.Delivery, part: Part, position: int, key: str | None) -> dict[str, Any]:
    """The row of a delivery. One that cannot be decoded gives its raw bytes and the reason.

    A map, stream or object message gives its body as it came. A broker that does not count deliveries leaves
    ``delivery_count`` null.
    """
    place = {"_epoch": part.epoch, "_partition": part.number, "_seq": position, "_key": key}
    delivered = {"delivery_count": delivery.count, "redelivered": delivery.redelivered}
    try:
        row = message_row(delivery.message)
        if isinstance(delivery.message, MapMessage | StreamMessage | ObjectMessage):
            row["body"] = delivery.raw
        return row | delivered | place
    except MessageFormatError as error:
        return {"body": delivery.raw, "error": str(error)} | delivered | place


def message_row(message: Message) -> dict[str, Any]:
    """The row of a message, without its place."""
    return {
        "message_id": message.message_id,
        "correlation_id": message.correlation_id,
        "destination": str(message.destination) if message.destination else None,
        "reply_to": str(message.reply_to) if message.reply_to else None,
        "type": message.type,
        "priority": message.priority,
        "timestamp": message.timestamp,
        "expiration": message.expiration,
        "properties": [(name, convert(value, "string")) for name, value in message.properties.items()],
        "text": message.body if isinstance(message, TextMessage) else None,
        "body": message.body if isinstance(message, BytesMessage) else None,
    }


def key_of(delivery: spi.Delivery, dedup_key: str) -> str | None:
    """The key by which a message is recognised when it comes again; None if it has none."""
    if dedup_key == "none":
        return None
    try:
        message = delivery.message
    except MessageFormatError:
        return None
    if dedup_key == "JMSMessageID":
        return message.message_id
    if dedup_key == "JMSCorrelationID":
        return message.correlation_id
    return message.get_string_property(dedup_key.removeprefix("property:"))
