"""The conversion of rows to messages."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import DataType, MapType, StructType

from jmsjca.destinations import destination
from jmsjca.errors import InvalidOptionError, MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Double,
    Float,
    Int,
    Long,
    Message,
    Short,
    TextMessage,
)
from jmsjca.spark.schema import SCHEMA

__all__ = ["RowEncoder"]

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
