"""The reader of one partition: receive, stage, settle, resolve duplicates, return rows. Replays have the same result.

The order of the steps is essential:

- messages are staged before they are settled: a crash in between causes redelivery, never loss;
- a redelivered message is detected by the keys of staged, unconfirmed messages; it is settled and dropped;
- staging is exclusive: of two attempts at a partition one defines its rows, the other releases its messages;
- duplicates are resolved after staging: if a broker delivered one message to two partitions, exactly one keeps it.
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
from jmsjca.spark.rows import UNSTORABLE, delivery_row, key_of, storable_row, to_batch
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import RECEIVED, EpochPartition, Staging, StaleEpochError, resolve_duplicates

__all__ = ["JmsPartition", "PartitionReader"]


class JmsPartition(InputPartition):
    """One consumer's share of an epoch.

    Args:
        gen: The generation of staged files.
        part: The epoch, and the number of the partition in it.
        quota: The maximum number of messages.
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
        partition: The partition to read.
    """

    def __init__(self, options: SparkOptions, partition: JmsPartition) -> None:
        self._options = options
        self._part = partition.part
        self._quota = partition.quota
        self._staging = Staging(options.staging(), partition.gen)

    def read(self) -> Iterator[Any]:
        """Yield the partition's rows as Arrow batches; the same ones in every replay.

        Raises:
            StaleEpochError: The batch is committed already.
            JMSError: The broker failed before messages were staged.
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
            # With exact credit, unreceived messages stay available for the other partitions. Without, the broker
            # prefetches up to the quota here, and requeues the rest when the connection closes.
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
        """Publish the received messages. Return False if another attempt was first; the messages are released then."""
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
        kept: list[spi.Delivery] = []
        for delivery in received:
            key = key_of(delivery, self._options.dedupKey)
            if key is None or key not in known:
                rows.append(delivery_row(delivery, self._part, len(rows), key))
                kept.append(delivery)
            if key is not None:
                known.add(key)
        return _to_batch(rows, kept).replace_schema_metadata({RECEIVED: str(len(received))})

    def _settle(self, connection: spi.Connection, received: Sequence[spi.Delivery]) -> None:
        """Settle all messages, duplicates too. If that fails, their redelivery is detected."""
        unit = connection.unit(atomic=False)  # the unit sends nothing
        unit.take(received)
        try:
            unit.commit(confirmed=True)
        except JMSError:
            return  # not confirmed: the messages remain in doubt
        self._staging.confirm(self._part)


def _to_batch(rows: Sequence[dict[str, Any]], deliveries: Sequence[spi.Delivery]) -> Any:
    try:
        return to_batch(rows)
    except UNSTORABLE:  # one of the rows: found only now, because nearly all messages fit
        return to_batch(storable_row(row, delivery) for row, delivery in zip(rows, deliveries, strict=True))


def _without(table: Any, foreign: set[str]) -> Iterator[Any]:
    if foreign:
        table = table.filter(pa.array([key not in foreign for key in table.column("_key").to_pylist()]))
    for batch in table.drop_columns(["_key"]).replace_schema_metadata().to_batches():
        if batch.num_rows:
            yield batch
