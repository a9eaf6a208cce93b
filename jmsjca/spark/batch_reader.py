"""The batch source: the messages of queues as a table, without taking them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsjca import spi
from jmsjca.destinations import Destination, destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.reconnection import connect
from jmsjca.spark.body_columns import BodyColumns
from jmsjca.spark.columns import ColumnBuilder, content_key, key_reader
from jmsjca.spark.options import SourceOptions

__all__ = ["JmsBatchReader"]

_CHUNK_ROWS = 1000


class BrowsedPart(InputPartition):
    """One partition of a table: the messages of a queue whose ids have a certain remainder.

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

    With several partitions each one browses the whole queue, and keeps its share of the messages, by their ids: so each
    message that is in the queue throughout is in exactly one partition, whatever other consumers take meanwhile.

    Args:
        options: The options of the source.
        parts: The number of partitions of each queue.
        body: The columns that come out of the bodies; None without them.

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
        assert isinstance(partition, BrowsedPart)  # noqa: S101  # Spark passes the planned partitions
        connection = connect(self._options.settings)
        try:
            yield from self._batches(connection, self._sources[partition.queue], partition)
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
