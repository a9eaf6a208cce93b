"""The conversion of rows to messages."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, Self, cast

from pyspark.sql.types import DataType, MapType, StructType, VariantVal

from jmsjca.arguments import did_you_mean
from jmsjca.destinations import Destination, destination
from jmsjca.errors import InvalidOptionError, MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Double,
    Float,
    Int,
    Long,
    Message,
    Properties,
    PropertyValue,
    Short,
    TextMessage,
)
from jmsjca.messages.properties import check_name
from jmsjca.outbound.producer import DeliveryFields
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.schema import COLUMNS
from jmsjca.spark.variants import decode_object, is_null

__all__ = ["REJECTION", "Outgoing", "RowEncoder", "RowIds", "int_or_none"]

REJECTION = "_rejection"
"""The column of the rows of `jmsjca.spark.dead_letter`: why a row was rejected, and what to do."""

_TYPES: dict[str, Callable[[Any], PropertyValue]] = {
    "string": str,
    "boolean": bool,
    "tinyint": partial(int.__new__, Byte),  # without the check of the range, which Spark's type has
    "smallint": partial(int.__new__, Short),
    "int": partial(int.__new__, Int),
    "bigint": partial(int.__new__, Long),
    "float": Float,
    "double": Double,
}
_VOID = "void"  # the type of nulls, of an empty map for instance: such a property is left out
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_NUMBERS = _INTEGERS | {"float", "double"}
_COLUMN_TYPES = {
    "text": {"string"},
    "body": {"string", "binary"},
    "destination": {"string"},
    "correlation_id": {"string"},
    "reply_to": {"string"},
    "type": {"string"},
    "priority": _INTEGERS,
    "delivery_mode": {"string"} | _INTEGERS,
    "time_to_live": _NUMBERS,
    "delivery_delay": _NUMBERS,
    "group_id": {"string"},
    "group_sequence": _INTEGERS,
    "duplicate_id": {"string"} | _INTEGERS,
    "typed_properties": {"variant"},
}
_KNOWN = {"properties", *_COLUMN_TYPES}
_INTERNAL = {REJECTION}
_IGNORED = set(COLUMNS) - _KNOWN  # so that rows that were read can be written unchanged
_SEQUENCE = "JMSXGroupSeq"
_GROUP = {"JMSXGroupID": "group_id", _SEQUENCE: "group_sequence"}
_PLACES = {"_epoch", "_partition", "_seq"}
_MAX_IDS = 1_000_000  # ids take about 150 MB then, and no broker recognises so many


class Outgoing(NamedTuple):
    """The message of a row, with its destination and options."""

    message: Message
    destination: Destination
    options: DeliveryFields


class RowEncoder:
    """Converts rows to messages: rows out of Arrow, and dicts of a `Row` with its nested ones.

    The body is the column ``text`` (string) or ``body`` (string or binary); ``properties`` is a map, or a struct with
    typed fields, and ``typed_properties`` takes its place where it is not null; ``duplicate_id`` identifies a row that
    is written again.

    Args:
        schema: The columns of the table.
        target: The destination of rows that name none; None if each row must name one.
        kind: "queue" or "topic", for rows that name a destination without its kind.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type.
    """

    def __init__(self, schema: StructType, target: Destination | None = None, kind: str = "queue") -> None:
        self._types = {field.name: field.dataType.simpleString() for field in schema.fields}
        _check_columns(self._types)
        properties = schema["properties"].dataType if "properties" in self._types else None
        self._property_types = {} if properties is None else _property_types(properties)
        self._has_struct = isinstance(properties, StructType)
        self._are_checked = self._has_struct and all(map(_is_plain_name, self._property_types))
        self._groups = [name for name, column in _GROUP.items() if column in self._types]
        self._headers = [name for name in ("correlation_id", "type") if name in self._types]
        self._options = [name for name in DeliveryFields.__annotations__ if name in self._types]
        self._target = target
        self._kind = kind
        self._destinations: dict[str, Destination] = {}

    @classmethod
    def of_sink(cls, schema: StructType, options: SinkOptions) -> Self:
        """Return the encoder of a sink, once it is known that each row has a destination.

        Args:
            schema: The columns of the table.
            options: The options of the sink.

        Raises:
            InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type. Neither the column nor
                the option ``destination`` exists; or both do, and the column is perhaps the destination that the rows
                were read from.
        """
        target = options.target if options.destination else None
        places = ", ".join(sorted(_PLACES & set(schema.names)))
        if target is None and "destination" not in schema.names:
            raise InvalidOptionError("Messages need a destination: set the option 'destination', or add such a column.")
        if target is not None and "destination" in schema.names and places:
            raise InvalidOptionError(
                f"The column 'destination' would override the option 'destination', {target}, and the table was"
                f" read from a jms source: drop the column, or drop {places}."
            )
        return cls(schema, target, options.destinationType)

    def encode(self, row: dict[str, Any]) -> Outgoing | None:
        """Return what is sent for a row; None if nothing is.

        Raises:
            JMSError: A value of the row does not fit.
        """
        return Outgoing(self.message(row)[0], self.destination(row), self.send_options(row))

    def message(self, row: dict[str, Any]) -> tuple[Message, int]:
        """Return the message of a row, and its priority."""
        message = self._body(row)
        for header in self._headers:
            setattr(message, header, row.get(header))
        reply_to = row.get("reply_to")
        if reply_to is not None:
            message.reply_to = self._parse_destination(reply_to)
        message.properties = self._properties(row)
        for name in self._groups:
            if row.get(_GROUP[name]) is not None:
                message.properties[name] = row[_GROUP[name]]
        priority = row.get("priority")
        return message, 4 if priority is None else priority

    def destination(self, row: dict[str, Any]) -> Destination:
        """Return the destination of a row: the one in its column, or else the destination of the sink.

        Raises:
            MessageFormatError: There is neither, or the column does not name a destination.
        """
        text = row.get("destination")
        if text is not None:
            named = text.startswith(("queue:", "topic:"))
            return self._parse_destination(text if named else f"{self._kind}:{text}")
        if self._target is None:
            raise MessageFormatError("The destination of a row is null, and the sink has no option 'destination'.")
        return self._target

    def send_options(self, row: dict[str, Any]) -> DeliveryFields:
        """Return the options of a send that a row sets."""
        given = {name: row[name] for name in self._options if row.get(name) is not None}
        return cast("DeliveryFields", given)  # the producer checks the values

    def duplicate_id(self, row: dict[str, Any]) -> str:
        """Return the id that the column ``duplicate_id`` gives a row; empty if it gives none."""
        given = row.get("duplicate_id")
        return "" if given is None else str(given)

    def _body(self, row: dict[str, Any]) -> Message:
        text, body = row.get("text"), row.get("body")
        if text is not None or "body" not in self._types or (body is None and "text" in self._types):
            return TextMessage(text)
        return TextMessage(body) if self._types.get("body") == "string" else BytesMessage(body)

    def _properties(self, row: Mapping[str, Any]) -> Properties:
        typed = _object_of(row.get("typed_properties"))
        if typed is not None:
            return _as_received(typed)
        if self._are_checked:
            return self._of_struct(row.get("properties") or {})
        found = {n: self._typed_value(n, value) for n, value in _pairs(row.get("properties")) if value is not None}
        return Properties(found) if self._has_struct else _as_received(found)  # the names of a struct are of the job

    def _of_struct(self, values: Mapping[str, Any]) -> Properties:
        """Return the properties of a struct. Its names were checked once, and the types of its fields fit."""
        types = self._property_types
        properties = Properties.received({n: types[n](v) for n, v in values.items() if v is not None})
        properties.read_only = False
        return properties

    def _parse_destination(self, text: str) -> Destination:
        """Return a destination from "queue:orders"; tables name few destinations in many rows."""
        known = self._destinations.get(text)
        if known is None:
            kind, colon, name = text.partition(":")
            if not colon:
                raise MessageFormatError(f"reply_to must read 'queue:NAME' or 'topic:NAME', not {text!r}.")
            known = self._destinations[text] = destination(name, kind)
        return known

    def _typed_value(self, name: str, value: Any) -> PropertyValue:
        return self._property_types.get(name, self._property_types.get("", str))(value)


class RowIds:
    """Makes an id of the content of a row, and of the number of equal rows before it.

    An id that is made of the position would lose rows: Spark does not promise the order of the rows of a repeated task,
    and the broker would drop a new row at the position of a row that it has already.

    Args:
        prefix: The job and the partition. Equal rows of two partitions are two rows.
        bound: The number of different rows that get the same id in each attempt. Rows beyond it get a random id.
    """

    def __init__(self, prefix: str, bound: int = _MAX_IDS) -> None:
        self._prefix = prefix
        self._bound = bound
        self._seen: dict[bytes, int] = {}

    def take(self, row: Mapping[str, Any]) -> str:
        """Return the id of the next row."""
        digest = blake2b(repr(row).encode("utf-8", "backslashreplace"), digest_size=16).digest()
        before = self._seen.get(digest, 0)
        if not before and len(self._seen) >= self._bound:
            return f"{self._prefix}/{uuid.uuid4().hex}"
        self._seen[digest] = before + 1
        return f"{self._prefix}/{digest.hex()}/{before}"


def _pairs(properties: Any) -> Iterable[tuple[str, Any]]:
    """Return the names and values of a struct or a map. Arrow has a map as pairs, and a `Row` has it as a dict."""
    if isinstance(properties, Mapping):
        return cast("Mapping[str, Any]", properties).items()
    return properties or ()


def _object_of(variant: Any) -> dict[str, Any] | None:
    """Return the named values of a VARIANT, which Arrow returns as a dict; None for null and for a JSON null."""
    if isinstance(variant, VariantVal):
        variant = {"value": variant.value, "metadata": variant.metadata}
    return None if variant is None or is_null(variant["value"]) else decode_object(**variant)


def _as_received(values: Mapping[str, Any]) -> Properties:
    """Return properties as they were read: their names need not be identifiers.

    Those of the provider are left out, and so is a number of a group that other clients have set to something else.
    """
    found = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    if found.get(_SEQUENCE) is not None:
        number = int_or_none(found.pop(_SEQUENCE))
        if number is not None:
            found[_SEQUENCE] = number
    return Properties(Properties.received(found))


def int_or_none(value: object) -> Int | None:
    """Return a number, or the number in a text, as one of 32 bits; None for any other value."""
    try:
        return Int(str(value))
    except MessageFormatError:
        return None


def _check_columns(types: Mapping[str, str]) -> None:
    unknown = sorted(set(types) - _KNOWN - _IGNORED - _INTERNAL)
    if unknown:
        nearest = did_you_mean(unknown[0].lower() if len(unknown) == 1 else "", {name: name for name in sorted(_KNOWN)})
        raise InvalidOptionError(
            f"The jms data source has no column {', '.join(unknown)} to write {nearest}: rename it, put it into"
            " 'properties', or drop it."
        )
    for name, kind in types.items():
        if name in _COLUMN_TYPES and kind not in _COLUMN_TYPES[name] | {_VOID}:
            raise InvalidOptionError(
                f"The column {name!r} must be {' or '.join(sorted(_COLUMN_TYPES[name]))}, not {kind}; cast it."
            )
    if not {"text", "body"} & set(types):
        raise InvalidOptionError("A message needs a body: a column 'text' (string) or 'body' (string or binary).")


def _property_types(kind: DataType) -> dict[str, Callable[[Any], PropertyValue]]:
    """Return the type of each property by name; the empty name has the type of all values of a map."""
    if isinstance(kind, MapType):
        return {"": _property_type("each value of 'properties'", kind.valueType)}
    if isinstance(kind, StructType):
        return {field.name: _property_type(f"'properties.{field.name}'", field.dataType) for field in kind.fields}
    if kind.simpleString() == _VOID:
        return {}
    raise InvalidOptionError(f"The column 'properties' must be a map or a struct, not {kind.simpleString()}.")


def _is_plain_name(name: str) -> bool:
    """Return whether a job can set a property of any type by this name. Other names are judged with their values."""
    try:
        check_name(name)
    except MessageFormatError:
        return False
    return name not in _GROUP


def _property_type(name: str, kind: DataType) -> Callable[[Any], PropertyValue]:
    found = kind.simpleString()
    if found not in _TYPES and found != _VOID:
        *others, last = _TYPES
        raise InvalidOptionError(
            f"{name} is {found}, which no property has: cast it to {', '.join(others)} or {last}; or to_json(…) a value"
            " with parts."
        )
    return _TYPES.get(found, str)
