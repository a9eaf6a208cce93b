"""Reads one partition: receive, stage, settle, decide, hand over; and the same again when Spark asks again.

The order of the steps is what makes it right:

- staged before settled: a crash between them repeats messages, and never loses one;
- a message that comes again is recognised by the keys of what is staged but not confirmed, settled and dropped;
- staged exclusively: of two attempts at a partition one defines it, the other gives its messages back;
- decided after staging: if a broker handed one message to two partitions, exactly one of them keeps it.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from jmsjca import spi
from jmsjca.errors import JMSError
from jmsjca.reconnection import connect
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.rows import delivery_row, key_of, to_batch
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import RECEIVED, EpochPartition, Staging, StaleEpochError, resolve_duplicates

__all__ = ["JmsPartition", "PartitionReader"]


class JmsPartition(InputPartition):
    """One consumer's share of an epoch.

    Args:
        gen: The generation.
        part: The epoch, and the number within it.
        quota: How many messages it may take.
    """

    def __init__(self, gen: str, part: EpochPartition, quota: int) -> None:
        super().__init__(part.number)
        self.gen = gen
        self.part = part
        self.quota = quota


class PartitionReader:
    """One attempt at one partition.

    Args:
        options: The options of the source.
        partition: What to read.
    """

    def __init__(self, options: SparkOptions, partition: JmsPartition) -> None:
        self._options = options
        self._part = partition.part
        self._quota = partition.quota
        self._staging = Staging(options.staging(), partition.gen)

    def read(self) -> Iterator[Any]:
        """Give the partition's rows as Arrow batches: the same whenever it is asked.

        Raises:
            StaleEpochError: The batch was committed long ago.
            JMSError: The broker failed before anything was taken.
        """
        if not self._staging.is_published(self._part):
            self._staging.check_live(self._part)
            self._claim()
            self._receive_and_stage()
        foreign = resolve_duplicates(self._staging, self._part)
        yield from _without(self._staging.rows(self._part), foreign)

    def _claim(self) -> None:
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        if query:
            self._staging.claim(query)

    def _receive_and_stage(self) -> None:
        connection = connect(self._options.settings)
        try:
            # With exact credit, what is not received here is there for the other partitions; without, the broker sends
            # up to the quota ahead, and has the rest back when the connection closes.
            window = 0 if connection.capabilities.exact_credit else self._quota
            consumer = connection.consumer(self._options.target, order=spi.Order.PREFIX, window=window)
            self._stage_and_settle(connection, consumer, self._receive(consumer))
        finally:
            connection.close()

    def _receive(self, consumer: spi.Consumer) -> list[spi.Delivery]:
        received: list[spi.Delivery] = []
        end = time.monotonic() + self._options.batchTimeout
        while len(received) < self._quota and time.monotonic() < end:
            chunk = consumer.receive(self._quota - len(received), self._options.receiveIdleTimeout)
            if not chunk:
                break
            received += chunk
        received += consumer.drain()
        if surplus := received[self._quota :]:
            consumer.release(surplus)
        return received[: self._quota]

    def _stage_and_settle(
        self, connection: spi.Connection, consumer: spi.Consumer, received: Sequence[spi.Delivery]
    ) -> None:
        if self._stage(consumer, received):
            self._settle(connection, received)

    def _stage(self, consumer: spi.Consumer, received: Sequence[spi.Delivery]) -> bool:
        """Publish what was received. False if another attempt was first; then it is given back."""
        try:
            published = self._staging.publish(self._part, self._batch(received))
            if published:
                self._recheck_live()
        except BaseException:
            consumer.release(received)
            raise
        if not published:
            consumer.release(received)
        return published

    def _recheck_live(self) -> None:
        try:
            self._staging.check_live(self._part)
        except StaleEpochError:
            self._staging.withdraw(self._part)
            raise

    def _batch(self, received: Sequence[spi.Delivery]) -> Any:
        known = self._staging.keys_in_doubt()
        rows: list[dict[str, Any]] = []
        for delivery in received:
            key = key_of(delivery, self._options.dedupKey)
            if key is None or key not in known:
                rows.append(delivery_row(delivery, self._part, len(rows), key))
            if key is not None:
                known.add(key)
        return to_batch(rows).replace_schema_metadata({RECEIVED: str(len(received))})

    def _settle(self, connection: spi.Connection, received: Sequence[spi.Delivery]) -> None:
        """Settle all, the duplicates too. If that fails the messages come again, and are recognised."""
        unit = connection.unit(atomic=False)  # it sends nothing
        unit.take(received)
        try:
            unit.commit(confirmed=True)
        except JMSError:
            return  # not confirmed: in doubt, and treated so from here on
        self._staging.confirm(self._part)


def _without(table: Any, foreign: set[str]) -> Iterator[Any]:
    if foreign:
        table = table.filter(pa.array([key not in foreign for key in table.column("_key").to_pylist()]))
    for batch in table.drop_columns(["_key"]).replace_schema_metadata().to_batches():
        if batch.num_rows:
            yield batch
