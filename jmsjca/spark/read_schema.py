"""The columns of one read: those of messages, and those that come out of their bodies."""

from dataclasses import replace
from typing import Any

from pyspark.sql import types as t

from jmsjca.arguments import did_you_mean
from jmsjca.errors import InvalidOptionError
from jmsjca.spark.body_columns import BodyColumns, CsvColumns, JsonColumns
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.schema import COLUMNS, pa

__all__ = ["plan_columns"]

_NEEDED = ("body", "error")
_SCALARS: dict[str, Any] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_REMEDIES = {
    "binary": "take a STRING, and unbase64(…) or unhex(…) it",
    "map": "take a STRUCT with the names that you need, or select from_json(text, …)",
    "variant": "select try_parse_json(text)",
}


def plan_columns(
    schema: t.StructType, options: SourceOptions, *, streaming: bool
) -> tuple[SourceOptions, BodyColumns | None]:
    """Return the options with the names of the columns, and what converts bodies to columns.

    A column with the name of one of the `COLUMNS` is that one. Any other is a value of the body.

    Args:
        schema: The columns, given by ``.schema(…)`` or those of the options.
        options: The options of the source.
        streaming: True for a stream, which takes the messages off the queue.

    Returns:
        The body is None if no column comes out of it.

    Raises:
        InvalidOptionError: A column has a type that it cannot have, or the name of a column of messages in another
            spelling, or a message that does not fit would be lost.
    """
    _check_names(schema)
    for field in schema.fields:
        _check_spelling(field.name)
        _check_known(field)
    found = [field for field in schema.fields if field.name not in COLUMNS]
    if not found:
        if options.bodyFormat:
            raise missing_columns(options)
        return replace(options, columns=tuple(schema.names)), None
    missing = [name for name in _NEEDED if name not in schema.names]
    if streaming and missing:
        raise InvalidOptionError(
            "A message with a body that does not fit the columns is a row with its bytes in 'body' and the reason in"
            " 'error'. Without these columns it would be lost, because a stream takes it off the queue: add"
            f" {', '.join(f'{name} {COLUMNS[name].dataType.simpleString().upper()}' for name in missing)} to"
            " .schema(…)."
        )
    return replace(options, columns=tuple(schema.names)), _body_columns(found, options)


def missing_columns(options: SourceOptions) -> InvalidOptionError:
    """Return the error for a format of bodies without columns of bodies."""
    return InvalidOptionError(
        f"bodyFormat={options.bodyFormat} needs the columns that come out of the bodies, beside those of messages:"
        ' .schema("amount INT, region STRING, body BINARY, error STRING").'
    )


def _check_names(schema: t.StructType) -> None:
    lower = [name.lower() for name in schema.names]
    if len(set(lower)) < len(lower):
        twice = next(name for name in schema.names if lower.count(name.lower()) > 1)
        raise InvalidOptionError(f".schema(…) names the column {twice!r} twice.")


def _check_spelling(name: str) -> None:
    """Raise an error for a name of the body that Spark takes for that of a column of messages."""
    if name not in COLUMNS and name.lower() in COLUMNS:
        meant = did_you_mean(name.lower(), {known: known for known in COLUMNS})
        raise InvalidOptionError(
            f"There is no column {name!r} {meant}."
            " Spark's names are the same in upper and lower case. For a value of that name in the body, select"
            " from_json(text, …)."
        )


def _check_known(field: t.StructField) -> None:
    known = COLUMNS.get(field.name)
    if known is not None and known.dataType.simpleString() != field.dataType.simpleString():
        raise InvalidOptionError(
            f"The column {field.name!r} of a message is {known.dataType.simpleString()}, not"
            f" {field.dataType.simpleString()}. For a value of that name in the body, select from_json(text, …)."
        )
    if not field.nullable:
        raise InvalidOptionError(
            f"The column {field.name!r} of a message may be null, for example if the message cannot be decoded: leave"
            " out NOT NULL."
        )


def _body_columns(fields: list[t.StructField], options: SourceOptions) -> BodyColumns:
    if options.bodyFormat == "csv":
        return CsvColumns({field.name: _scalar(field.name, field.dataType) for field in fields}, options.delimiter)
    return JsonColumns({field.name: _arrow(field.name, field.dataType) for field in fields})


def _scalar(name: str, kind: t.DataType) -> Any:
    if isinstance(kind, t.ArrayType | t.StructType):
        raise InvalidOptionError(
            f"The column {name!r} cannot be {kind.simpleString()}: a value of CSV has no parts. Take a STRING of it."
        )
    return _arrow(name, kind)


def _arrow(name: str, kind: t.DataType) -> Any:
    """Return the Arrow type of a column, or of a part of it."""
    if isinstance(kind, t.StructType):
        for field in kind.fields:
            _check_nullable(f"{name}.{field.name}", nullable=field.nullable)
        return pa.struct([(field.name, _arrow(f"{name}.{field.name}", field.dataType)) for field in kind.fields])
    if isinstance(kind, t.ArrayType):
        _check_nullable(f"{name}[]", nullable=kind.containsNull)
        return pa.list_(pa.field("element", _arrow(f"{name}[]", kind.elementType)))
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    name_of_type = kind.simpleString()
    if name_of_type in _SCALARS:
        return _SCALARS[name_of_type]
    remedy = _REMEDIES.get(kind.typeName(), "take a STRING, and convert it")
    raise InvalidOptionError(f"The column {name!r} of the body cannot be {name_of_type}: {remedy}.")


def _check_nullable(name: str, *, nullable: bool) -> None:
    if not nullable:
        raise InvalidOptionError(f"{name!r} may be null, as a body may lack it: leave out NOT NULL.")
