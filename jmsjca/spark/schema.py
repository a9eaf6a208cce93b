"""The columns of messages, for Spark and for Arrow."""

from collections.abc import Sequence
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
)

__all__ = ["ARROW_SCHEMA", "SCHEMA", "arrow_columns", "ipc", "pa", "spark_columns"]

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
        StructField("text", StringType()),  # of a text message
        StructField("body", BinaryType()),  # of a bytes message; the raw bytes of a message that cannot be decoded
        StructField("error", StringType()),  # the reason why the message cannot be decoded
        StructField("_epoch", LongType()),
        StructField("_partition", IntegerType()),
        StructField("_seq", LongType()),  # order of arrival within epoch and partition
    ]
)
"""The columns of ``spark.read.format("jms")`` and ``spark.readStream.format("jms")``: one row per message."""

_ARROW: dict[str, Any] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}

ARROW_SCHEMA: Any = pa.schema([(field.name, _ARROW[field.dataType.simpleString()]) for field in SCHEMA.fields])
"""`SCHEMA` in the Arrow types that Spark expects."""


def spark_columns(names: Sequence[str]) -> StructType:
    """Return some of the columns of `SCHEMA`, in the order of their names."""
    return StructType([SCHEMA[name] for name in names])


def arrow_columns(names: Sequence[str]) -> Any:
    """Return some of the columns of `ARROW_SCHEMA`, in the order of their names."""
    return pa.schema([ARROW_SCHEMA.field(name) for name in names])
