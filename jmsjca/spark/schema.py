"""The columns of messages, for Spark and for Arrow."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

__all__ = ["ARROW_SCHEMA", "COLUMNS", "SCHEMA", "VARIANT", "arrow_columns", "ipc", "pa", "spark_columns"]

pa: Any = import_module("pyarrow")
ipc: Any = import_module("pyarrow.ipc")

SCHEMA = StructType(
    [
        StructField("message_id", StringType()),
        StructField("correlation_id", StringType()),
        StructField("destination", StringType()),  # as "queue:orders"
        StructField("reply_to", StringType()),
        StructField("type", StringType()),
        StructField("priority", IntegerType()),
        StructField("timestamp", TimestampType()),
        StructField("expiration", TimestampType()),
        StructField("redelivered", BooleanType()),
        StructField("delivery_count", IntegerType()),
        StructField("properties", MapType(StringType(), StringType())),  # converted by the table of JMS
        StructField("text", StringType()),  # of a text message; JSON of a map, stream or plain-data object message
        StructField("body", BinaryType()),  # of a bytes message; the raw bytes of a message of another type
        StructField("error", StringType()),  # the reason why the message cannot be decoded, or its body does not fit
        StructField("_epoch", LongType()),
        StructField("_partition", IntegerType()),
        StructField("_seq", LongType()),  # order of arrival within epoch and partition
    ]
)
"""The columns of ``spark.read.format("jms")`` and ``spark.readStream.format("jms")``: one row per message."""

COLUMNS = {field.name: field for field in (*SCHEMA.fields, StructField("typed_properties", VariantType()))}
"""All columns of messages by name: those of `SCHEMA`, and those that are read only where they are named."""

VARIANT: Any = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
"""The Arrow type that Spark takes for a VARIANT."""

_ARROW: dict[str, Any] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "variant": VARIANT,
}


def spark_columns(names: Sequence[str]) -> StructType:
    """Return some of the `COLUMNS`, in the order of their names."""
    return StructType([COLUMNS[name] for name in names])


def arrow_columns(names: Sequence[str], others: Mapping[str, Any] | None = None) -> Any:
    """Return some of the `COLUMNS` in Arrow, in the order of their names.

    Args:
        names: The names.
        others: The Arrow types of further columns by name; None without them.
    """
    types = {name: _ARROW[field.dataType.simpleString()] for name, field in COLUMNS.items()} | dict(others or {})
    return pa.schema([(name, types[name]) for name in names])


ARROW_SCHEMA: Any = arrow_columns(SCHEMA.names)
"""`SCHEMA` in the Arrow types that Spark expects."""
