"""The sink: executors send the rows of their partition in short transactions, where the broker has them.

Elsewhere each message is confirmed by itself, and a task ends when all are.

Delivery is at least once: Spark writes a partition again when a task or a batch fails. Every message has a duplicate
id, so that a broker with duplicate detection drops repeated messages: the column ``duplicate_id`` if there is one, else
an id made from the query, the batch, the partition and the content of the row (`RowIds`).
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jmsjca.errors import InvalidOptionError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.outbound import ConnectionFactory, Session
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.rejections import encoder_of_sink
from jmsjca.spark.rows import RowIds

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["JmsBatchWriter", "JmsStreamWriter", "current_batch", "table_batch"]

_MAX_UNIT = 1000


@dataclass(frozen=True, slots=True)
class Sent(WriterCommitMessage):
    """The commit message of a task: the number of messages sent."""

    messages: int


class PartitionWriter:
    """Sends the rows of one partition.

    Args:
        options: The options of the sink.
        schema: The columns of the table.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type; or there is no destination.
    """

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        self._options = options
        self._encoder = encoder_of_sink(schema, options)

    def write(self, batches: Iterator[Any], job: str) -> Sent:
        """Send all rows.

        Args:
            batches: The rows.
            job: The prefix that makes generated duplicate ids unique.

        Raises:
            JMSError: The broker refused a message or failed; earlier transactions stay committed, and without
                transactions any message may be sent.
        """
        context = TaskContext.get()
        prefix = f"{job}/{context.partitionId() if context else 0}"
        options = self._options
        factory = ConnectionFactory(
            options.url, user_name=options.userName, password=options.password, credentials=options.credentials
        )
        with factory.create_connection() as connection:
            transacted = connection.capabilities.atomic
            with connection.create_session(transacted=transacted) as session:
                return Sent(self._send(session, batches, prefix))

    def _send(self, session: Session, batches: Iterator[Any], prefix: str) -> int:
        producer = session.create_producer(None)
        producer.time_to_live = self._options.timeToLive
        sent, ids = 0, RowIds(prefix)
        futures: list[Future[Message]] = []
        for row in (row for batch in batches for row in batch.to_pylist()):
            outgoing = self._encoder.encode(row)
            if outgoing is None:
                continue
            outgoing.message.properties[DUPLICATE_ID] = self._encoder.duplicate_id(row) or ids.take(row)
            futures.append(producer.send_async(outgoing.message, outgoing.destination, **outgoing.options))
            sent += 1
            if sent % _MAX_UNIT == 0:
                _complete(session, futures)
        _complete(session, futures)
        return sent


def _complete(session: Session, futures: list["Future[Message]"]) -> None:
    """Commit, or without transactions wait until the broker has confirmed each message."""
    if session.transacted:
        session.commit()
    for future in futures:
        future.result()
    futures.clear()


class JmsBatchWriter(DataSourceArrowWriter):
    """Writes a table in a batch job.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
    """

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        self._writer = PartitionWriter(options, schema)
        self._job = uuid.uuid4().hex
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Sent:
        """Send a partition, on an executor.

        Raises:
            InvalidOptionError: The option ``batchId`` is missing, see `table_batch`.
        """
        return self._writer.write(iterator, self._named() if self._options.queryName else self._job)

    def _named(self) -> str:
        """Return the name and the number of the table. Both are the same if the batch is repeated."""
        query, batch = current_batch()
        # A query with a new checkpoint numbers its batches from 0 again, so the id of the query is needed as well.
        return f"{query}/{self._options.queryName}/{table_batch(self._options, batch)}"


class JmsStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
    """

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        self._writer = PartitionWriter(options, schema)

    def write(self, iterator: Iterator[Any]) -> Sent:
        """Send a partition of a batch, on an executor."""
        return self._writer.write(iterator, _batch_id())


def current_batch() -> tuple[str, int | None]:
    """Return the id of the streaming query of the current task and the number of its batch; empty and None outside."""
    context = TaskContext.get()
    query = context and context.getLocalProperty("sql.streaming.queryId")
    batch = context and context.getLocalProperty("streaming.sql.batchId")
    return query or "", int(batch) if batch else None


def table_batch(options: SparkOptions, found: int | None) -> int:
    """Return the number of the batch that a table with a name is.

    Args:
        options: The options of the sink.
        found: The number of the batch of the streaming query; None outside of one.

    Raises:
        InvalidOptionError: Neither the option ``batchId`` nor Spark gives a number.
    """
    number = found if options.batchId is None else options.batchId
    if number is None:
        raise InvalidOptionError(
            f"The table {options.queryName} has no number, because Spark writes it outside of foreachBatch, in another"
            " thread, or over Spark Connect: set the option 'batchId' to the number that foreachBatch is called with."
        )
    return number


def _batch_id() -> str:
    """Return an id of the query and the batch of the current task; the same if Spark repeats the batch."""
    query, batch = current_batch()
    return uuid.uuid4().hex if batch is None else f"{query}/{batch}"
