"""The batch source: looks at a queue without taking anything."""

import itertools
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsjca.links import connect
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.rows import delivery_row, to_batch
from jmsjca.spark.schema import ARROW_SCHEMA
from jmsjca.spark.staging import Part

__all__ = ["JmsBatchReader"]

_ROWS = 1000
_PART = Part(0, 0)


class JmsBatchReader(DataSourceReader):
    """Browses the queue, in order, in one partition. Two actions on the same table look twice.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Browse, on an executor."""
        del partition
        connection = connect(self._options.settings)
        try:
            numbered = enumerate(itertools.chain.from_iterable(connection.browse(self._options.target)))
            while rows := [
                delivery_row(delivery, _PART, position, None)
                for position, delivery in itertools.islice(numbered, _ROWS)
            ]:
                yield to_batch(rows, ARROW_SCHEMA)
        finally:
            connection.close()
