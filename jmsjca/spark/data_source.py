"""The Spark data source "jms"."""

from collections.abc import MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from jmsjca.errors import InvalidOptionError
from jmsjca.spark.atomic_writer import AtomicBatchWriter, AtomicStreamWriter
from jmsjca.spark.batch_reader import JmsBatchReader
from jmsjca.spark.options import SinkOptions, SourceOptions, check_options
from jmsjca.spark.read_schema import missing_columns, plan_columns
from jmsjca.spark.reader import JmsStreamReader
from jmsjca.spark.schema import spark_columns
from jmsjca.spark.writer import JmsBatchWriter, JmsStreamWriter

__all__ = ["JmsDataSource", "register"]


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
        """Return the streaming reader, which consumes the messages.

        Raises:
            InvalidOptionError: See `plan_columns`.
        """
        return JmsStreamReader(*plan_columns(schema, self._source(schema), streaming=True))

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
