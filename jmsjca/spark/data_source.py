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
from jmsjca.spark.options import SparkOptions, check_role
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
        options: See `jmsjca.spark.options.SparkOptions`.

    Raises:
        InvalidOptionError: An option is unknown, missing, or has an invalid value.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)
        self._parsed = SparkOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(…)``."""
        return "jms"

    def schema(self) -> StructType:
        """Return the columns of the messages that are read, if ``.schema(…)`` names none.

        Raises:
            InvalidOptionError: The option ``bodyFormat`` needs columns.
        """
        if self._parsed.bodyFormat:
            raise missing_columns(self._parsed)
        return spark_columns(self._parsed.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader, which browses the queue and consumes nothing.

        Raises:
            InvalidOptionError: See `plan_columns`.
        """
        self._check_source(schema)
        options, body = plan_columns(schema, self._parsed, streaming=False)
        return JmsBatchReader(options, self._parsed.partitions if self._has("partitions") else 1, body)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the streaming reader, which consumes the messages.

        Raises:
            InvalidOptionError: See `plan_columns`.
        """
        self._check_source(schema)
        return JmsStreamReader(*plan_columns(schema, self._parsed, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the batch writer.

        Raises:
            InvalidOptionError: Mode "overwrite": a queue is not emptied as a side effect.
        """
        if overwrite:
            raise InvalidOptionError('Messages are added, not overwritten: use .mode("append").')
        check_role(self._given, sink=True)
        self._parsed.check_sink(streaming=False)
        if self._parsed.guarantee == "exactly-once":
            return AtomicBatchWriter(self._parsed, schema)
        return JmsBatchWriter(self._parsed, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the streaming writer. In output mode "complete" each batch sends the whole result."""
        del overwrite
        check_role(self._given, sink=True)
        self._parsed.check_sink(streaming=True)
        exactly_once = self._parsed.guarantee == "exactly-once"
        return AtomicStreamWriter(self._parsed, schema) if exactly_once else JmsStreamWriter(self._parsed, schema)

    def _check_source(self, schema: StructType) -> None:
        check_role(self._given, sink=False)
        if self._has("columns") and schema != self.schema():
            raise InvalidOptionError("Name the columns in .schema(…), and leave out the option 'columns'.")

    def _has(self, option: str) -> bool:
        return any(name.lower() == option for name in self._given)
