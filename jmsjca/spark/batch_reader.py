"""The batch source: looks at a queue without taking anything."""

import itertools
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsjca.links import connect
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.rows import message_row, to_batch
from jmsjca.spark.schema import ARROW_SCHEMA

__all__ = ["JmsBatchReader"]

_ROWS = 1000


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
            messages = itertools.chain.from_iterable(connection.browse(self._options.target))
            numbered = enumerate(messages)
            while rows := [
                message_row(message) | {"_epoch": 0, "_partition": 0, "_seq": position}
                for position, message in itertools.islice(numbered, _ROWS)
            ]:
                yield to_batch(rows, ARROW_SCHEMA)
        finally:
            connection.close()
