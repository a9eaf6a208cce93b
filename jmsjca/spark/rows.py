"""The conversion of messages to Arrow rows, and of rows to messages."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql.types import DataType, MapType, StructType

from jmsjca import spi
from jmsjca.destinations import destination
from jmsjca.errors import InvalidOptionError, MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    convert,
)
from jmsjca.spark.schema import SCHEMA, STAGED_SCHEMA, pa
from jmsjca.spark.staging import EpochPartition

__all__ = ["UNSTORABLE", "RowEncoder", "delivery_row", "key_of", "message_row", "storable_row", "to_batch"]

UNSTORABLE = (ArithmeticError, TypeError, ValueError)
"""The errors of Arrow for a value that its columns do not hold."""


def to_batch(rows: Iterable[dict[str, Any]], schema: Any = STAGED_SCHEMA) -> Any:
    """Return an Arrow batch of rows; missing columns are null."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def delivery_row(delivery: spi.Delivery, part: EpochPartition, position: int, key: str | None) -> dict[str, Any]:
    """Return the row of a delivery; if it cannot be decoded, with its raw bytes and the error.

    The body of a map, stream or object message is its raw bytes. ``delivery_count`` is null if the broker does not
    count deliveries.
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


def storable_row(row: dict[str, Any], delivery: spi.Delivery) -> dict[str, Any]:
    """Return a row, or, if one of its values does not fit its column, one with the raw bytes and the error."""
    try:
        to_batch([row])
    except UNSTORABLE as error:
        kept = {name: row[name] for name in ("delivery_count", "redelivered", "_epoch", "_partition", "_seq", "_key")}
        return {"body": delivery.raw, "error": f"The message does not fit the columns: {error!r:.200}"} | kept
    return row


def message_row(message: Message) -> dict[str, Any]:
    """Return the row of a message, without epoch, partition and position."""
    return {
        "message_id": message.message_id,
        "correlation_id": message.correlation_id,
        "destination": str(message.destination) if message.destination else None,
        "reply_to": str(message.reply_to) if message.reply_to else None,
        "type": message.type,
        "priority": message.priority,
        "timestamp": message.timestamp,
        "expiration": message.expiration,
        "properties": [(name, _property_text(value)) for name, value in message.properties.items()],
        "text": message.body if isinstance(message, TextMessage) else None,
        "body": message.body if isinstance(message, BytesMessage) else None,
    }


def _property_text(value: Any) -> Any:
    """Return the text of a property; bytes, which only other AMQP clients send, as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else convert(value, "string")


def key_of(delivery: spi.Delivery, dedup_key: str) -> str | None:
    """Return the key that identifies redeliveries of a message; None if it has no key."""
    if dedup_key == "none":
        return None
    try:
        key = _key_of(delivery.message, dedup_key)
    except MessageFormatError:
        return None
    return key and key.encode("utf-8", "backslashreplace").decode()  # Arrow holds no half of a surrogate pair


def _key_of(message: Message, dedup_key: str) -> str | None:
    if dedup_key == "JMSMessageID":
        return message.message_id
    if dedup_key == "JMSCorrelationID":
        return message.correlation_id
    return message.get_string_property(dedup_key.removeprefix("property:"))


_TYPES: dict[str, Callable[[Any], object]] = {
    "string": str,
    "boolean": bool,
    "tinyint": Byte,
    "smallint": Short,
    "int": Int,
    "bigint": Long,
    "float": Float,
    "double": Double,
}
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_COLUMN_TYPES = {
    "text": {"string"},
    "body": {"string", "binary"},
    "correlation_id": {"string"},
    "reply_to": {"string"},
    "type": {"string"},
    "priority": _INTEGERS,
    "duplicate_id": {"string"} | _INTEGERS,
}
_KNOWN = {"properties", *_COLUMN_TYPES}
_IGNORED = {field.name for field in SCHEMA.fields} - _KNOWN  # so that rows that were read can be written unchanged


class RowEncoder:
    """Converts rows to messages.

    The body is the column ``text`` (string) or ``body`` (string or binary); ``properties`` is a map, or a struct with
    typed fields; ``duplicate_id`` identifies a row that is written again.

    Args:
        schema: The columns of the table.

    Raises:
        InvalidOptionError: A column is unknown or has a wrong type.
    """

    def __init__(self, schema: StructType) -> None:
        self._types = {field.name: field.dataType.simpleString() for field in schema.fields}
        _check_columns(self._types)
        self._property_types = _property_types(schema["properties"].dataType) if "properties" in self._types else {}

    def message(self, row: dict[str, Any]) -> tuple[Message, int]:
        """Return the message of a row, and its priority."""
        message = self._body(row)
        message.correlation_id = row.get("correlation_id")
        message.type = row.get("type")
        message.reply_to = _reply_to(row.get("reply_to"))
        for name, value in self._properties(row.get("properties")):
            message.properties[name] = value
        priority = row.get("priority")
        return message, 4 if priority is None else priority

    def duplicate_id(self, row: dict[str, Any], otherwise: str) -> str:
        """Return the id that identifies the row when it is written again."""
        given = row.get("duplicate_id")
        return otherwise if given in (None, "") else str(given)

    def _body(self, row: dict[str, Any]) -> Message:
        text, body = row.get("text"), row.get("body")
        if text is not None or "body" not in self._types:
            return TextMessage(text)
        return TextMessage(body) if self._types.get("body") == "string" else BytesMessage(body)

    def _properties(self, values: Mapping[str, Any] | list[tuple[str, Any]] | None) -> list[tuple[str, object]]:
        pairs = values.items() if isinstance(values, Mapping) else values or []
        return [(name, self._typed_value(name, value)) for name, value in pairs if value is not None]

    def _typed_value(self, name: str, value: Any) -> object:
        return self._property_types.get(name, self._property_types.get("", str))(value)


def _check_columns(types: Mapping[str, str]) -> None:
    unknown = set(types) - _KNOWN - _IGNORED
    if unknown:
        raise InvalidOptionError(
            f"The jms data source has no column {', '.join(sorted(unknown))} to write; "
            f"put it into 'properties', or drop it. There are {', '.join(sorted(_KNOWN))}."
        )
    for name, kind in types.items():
        if name in _COLUMN_TYPES and kind not in _COLUMN_TYPES[name] | {"void"}:
            raise InvalidOptionError(
                f"The column {name!r} must be {' or '.join(sorted(_COLUMN_TYPES[name]))}, not {kind}; cast it."
            )
    if not {"text", "body"} & set(types):
        raise InvalidOptionError("A message needs a body: a column 'text' (string) or 'body' (string or binary).")


def _property_types(kind: DataType) -> dict[str, Callable[[Any], object]]:
    """Return the type of each property by name; the empty name has the type of all values of a map."""
    if isinstance(kind, MapType):
        return {"": _property_type("properties", kind.valueType)}
    if isinstance(kind, StructType):
        return {field.name: _property_type(f"properties.{field.name}", field.dataType) for field in kind.fields}
    raise InvalidOptionError(f"The column 'properties' must be a map or a struct, not {kind.simpleString()}.")


def _property_type(name: str, kind: DataType) -> Callable[[Any], object]:
    try:
        return _TYPES[kind.simpleString()]
    except KeyError:
        raise InvalidOptionError(f"{name} is {kind.simpleString()}, which cannot be a property; cast it.") from None


def _reply_to(text: str | None) -> Any:
    if text is None:
        return None
    kind, colon, name = text.partition(":")
    if not colon:
        raise MessageFormatError(f"reply_to must read 'queue:NAME' or 'topic:NAME', not {text!r}.")
    return destination(name, kind)
