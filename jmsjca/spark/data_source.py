"""The Spark data source "jms": its entry point, its columns, and the batch source."""

import itertools
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, cast
from zlib import crc32

from pyspark.sql import SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from jmsjca import spi
from jmsjca.arguments import did_you_mean
from jmsjca.destinations import Destination, destination
from jmsjca.errors import InvalidDestinationError, InvalidOptionError, JMSError
from jmsjca.reconnection import connect
from jmsjca.spark.body_columns import BodyColumns, CsvColumns, JsonColumns
from jmsjca.spark.columns import ColumnBuilder, content_key, key_reader
from jmsjca.spark.exactly_once import AtomicBatchWriter, AtomicStreamWriter
from jmsjca.spark.options import SinkOptions, SourceOptions, check_options
from jmsjca.spark.reader import JmsStreamReader
from jmsjca.spark.schema import COLUMNS, pa, spark_columns
from jmsjca.spark.writer import JmsBatchWriter, JmsStreamWriter

__all__ = ["JmsBatchReader", "JmsDataSource", "plan_columns", "register"]

_CHUNK_ROWS = 1000


def register(spark: SparkSession) -> None:
    """Register ``format("jms")`` with a Spark session. Idempotent."""
    spark.dataSource.register(JmsDataSource)


class JmsDataSource(DataSource):
    """Reads queues and writes queues and topics.

    Args:
        options: See `jmsjca.spark.options`: `SourceOptions` for a reader, `SinkOptions` for a writer.

    Raises:
        InvalidOptionError: An option is unknown, missing, or has an invalid value.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)
        check_options(options)  # Spark asks for a reader or a writer later

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(…)``."""
        return "jms"

    def schema(self) -> StructType:
        """Return the columns of the messages that are read, if ``.schema(…)`` names none.

        Raises:
            InvalidOptionError: The option ``bodyFormat`` needs columns.
        """
        options = SourceOptions.parse(self._given)
        if options.bodyFormat:
            raise missing_columns(options)
        return spark_columns(options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader, which browses the queue and consumes nothing.

        Raises:
            InvalidOptionError: See `plan_columns`.
        """
        options, body = plan_columns(schema, self._source(schema), streaming=False)
        return JmsBatchReader(options, options.partitions if self._has("partitions") else 1, body)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the streaming reader, which consumes the messages. If it is refused, its first call raises the error.

        The error that a query shows for an exception raised here ends with an UnboundLocalError of Spark.
        """
        try:
            return JmsStreamReader(*plan_columns(schema, self._source(schema), streaming=True))
        except JMSError as error:
            return _RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the batch writer.

        Raises:
            InvalidOptionError: Mode "overwrite": a queue is not emptied as a side effect.
        """
        if overwrite:
            raise InvalidOptionError('Messages are added, not overwritten: use .mode("append").')
        options = self._sink(streaming=False)
        return (AtomicBatchWriter if options.exactly_once else JmsBatchWriter)(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the streaming writer. In output mode "complete" each batch sends the whole result."""
        del overwrite
        options = self._sink(streaming=True)
        return (AtomicStreamWriter if options.exactly_once else JmsStreamWriter)(options, schema)

    def _source(self, schema: StructType) -> SourceOptions:
        options = SourceOptions.parse(self._given)
        if self._has("columns") and schema != self.schema():
            raise InvalidOptionError("Name the columns in .schema(…), and leave out the option 'columns'.")
        return options

    def _sink(self, *, streaming: bool) -> SinkOptions:
        options = SinkOptions.parse(self._given)
        options.check_batches(streaming=streaming)
        return options

    def _has(self, option: str) -> bool:
        return any(name.lower() == option for name in self._given)


class _RefusedReader(DataSourceStreamReader):
    """The reader of a stream that has wrong options or columns: every call raises the error."""

    def __init__(self, error: JMSError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        """Raise the error."""
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Raise the error."""
        del start, limit
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raise the error."""
        del start, end
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raise the error."""
        del partition
        raise self._error


class BrowsedPart(InputPartition):
    """One partition of a table: it has the messages of a queue that have a certain remainder of their ids.

    Args:
        number: The number of the partition in the table.
        queue: The name of the queue; empty for the only one.
        part: The remainder.
        parts: The divisor: the number of partitions of the queue.
    """

    def __init__(self, number: int, queue: str, part: int, parts: int) -> None:
        super().__init__(number)
        self.number = number
        self.queue = queue
        self.part = part
        self.parts = parts


class JmsBatchReader(DataSourceReader):
    """Browses queues in order. Each action on the table browses again.

    If a queue has several partitions, each partition browses the whole queue and keeps its share of the messages. The
    message id decides which share a message is in. So a message that stays in the queue during the action is in exactly
    one partition, even if other consumers receive messages during the action.

    Args:
        options: The options of the source.
        parts: The number of partitions of each queue.
        body: The columns that are decoded from the bodies; None if there are no such columns.

    Raises:
        InvalidOptionError: The destination is missing.
        InvalidDestinationError: The destination is a topic, which keeps no messages.
    """

    def __init__(self, options: SourceOptions, parts: int = 1, body: BodyColumns | None = None) -> None:
        if options.destinationType != "queue":
            raise InvalidDestinationError(f"{options.target} cannot be browsed: only a queue keeps its messages.")
        self._sources = {name: destination(name or options.target.name, "queue") for name in options.sources}
        self._options = options
        self._parts = parts
        self._body = body
        self._id_of = key_reader("JMSMessageID")

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions of all queues."""
        shares = itertools.product(self._sources, range(self._parts))
        return [BrowsedPart(number, queue, part, self._parts) for number, (queue, part) in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the messages of a partition as Arrow batches, on an executor. ``_seq`` is the place in the queue."""
        planned = cast("BrowsedPart", partition)  # Spark passes what `partitions` returned
        connection = connect(self._options.settings)
        try:
            yield from self._batches(connection, self._sources[planned.queue], planned)
        finally:
            connection.close()

    def _batches(self, connection: spi.Connection, source: Destination, partition: BrowsedPart) -> Iterator[Any]:
        chunks = connection.browse(source, selector=self._options.selector)
        mine = self._share(enumerate(itertools.chain.from_iterable(chunks)), partition)
        while chunk := list(itertools.islice(mine, _CHUNK_ROWS)):
            columns = ColumnBuilder(self._options.columns, None, self._body, source)
            columns.extend(delivery for _, delivery in chunk)
            yield from columns.staged(0, partition.number, set(), [place for place, _ in chunk]).table.to_batches()

    def _share(
        self, browsed: Iterator[tuple[int, spi.Delivery]], partition: BrowsedPart
    ) -> Iterator[tuple[int, spi.Delivery]]:
        if partition.parts == 1:
            return browsed
        return (found for found in browsed if self._digest(found[1]) % partition.parts == partition.part)

    def _digest(self, delivery: spi.Delivery) -> int:
        """Return a number that is the same whenever and wherever the message is browsed."""
        key = self._id_of and self._id_of(delivery)
        return crc32((key or content_key(delivery)).encode())


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
    """Return the options with the names of the columns, and the converter of bodies to columns.

    A column that is named like one of the `COLUMNS` has that value. Any other column is a value of the body.

    Args:
        schema: The columns, given by ``.schema(…)`` or by the options.
        options: The options of the source.
        streaming: True for a stream, which takes the messages off the queue.

    Returns:
        The options and the converter; the converter is None if no column is decoded from the body.

    Raises:
        InvalidOptionError: A column has a type that is not possible for it; or its name differs only in spelling from
            one of the `COLUMNS`; or a message that does not fit the columns would be lost.
    """
    _check_columns(schema)
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


def _check_columns(schema: t.StructType) -> None:
    """Raise an error for a column that Spark confuses with another one, or that has the type of another one."""
    lower = [name.lower() for name in schema.names]
    for name in schema.names:
        if lower.count(name.lower()) > 1:
            raise InvalidOptionError(f".schema(…) names the column {name!r} twice.")
    for field in schema.fields:
        name, kind, known = field.name, field.dataType.simpleString(), COLUMNS.get(field.name)
        if known is None and name.lower() in COLUMNS:
            meant = did_you_mean(name.lower(), {known: known for known in COLUMNS})
            raise InvalidOptionError(
                f"There is no column {name!r} {meant}."
                " Spark's names are the same in upper and lower case. For a value of that name in the body, select"
                " from_json(text, …)."
            )
        if known is not None and known.dataType.simpleString() != kind:
            raise InvalidOptionError(
                f"The column {name!r} of a message is {known.dataType.simpleString()}, not {kind}. For a value of that"
                " name in the body, select from_json(text, …)."
            )
        if not field.nullable:
            raise InvalidOptionError(
                f"The column {name!r} of a message may be null, for example if the message cannot be decoded: leave"
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
