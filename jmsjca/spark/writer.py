"""The sinks for streams and batches: rows of a partition in short transactions, and ``DataStreamWriter.foreach``.

If the broker has no transactions, it confirms each message separately, and a task ends when all are confirmed.

Delivery is at least once: Spark writes a partition again when a task or a batch fails. Every message has a duplicate
id, so that a broker with duplicate detection drops repeated messages: the column ``duplicate_id`` if there is one, else
an id made from the query, the batch, the partition and the content of the row (`RowIds`). A broker remembers a limited
number of ids, so the driver warns of a batch with more messages.
"""

import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError, InvalidOptionError, NotSupportedError
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.outbound import Connection, ConnectionFactory, MessageProducer, Session
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.rejections import encoder_of_sink
from jmsjca.spark.rows import RowIds

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["ForeachWriter", "JmsBatchWriter", "JmsStreamWriter", "current_batch", "current_run", "table_batch"]

logger = get_logger("jmsjca.spark")

_MAX_UNIT = 1000
_MAX_QUERIES = 1000  # that a process remembers
_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REMEMBERED_BY_ARTEMIS = 20_000  # by default: its setting `id-cache-size`


@dataclass(frozen=True, slots=True)
class Sent(WriterCommitMessage):
    """The commit message of a task.

    Attributes:
        messages: The number of messages sent.
        remembered: How many ids of a destination the broker remembers by default; 0 if it does not recognise repeated
            messages.
        query: The id of a streaming query that would send the messages again if Spark repeats the batch, because
            nothing identifies them; else empty.
    """

    messages: int
    remembered: int = 0
    query: str = ""


class PartitionWriter:
    """Sends the rows of one partition.

    Args:
        options: The options of the sink.
        schema: The columns of the table.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type; or there is no destination.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
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
                return Sent(self._send(session, batches, prefix), _remembered_ids(connection))

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
            if session.transacted:  # the commit confirms all, so no message needs a future
                producer.send(outgoing.message, outgoing.destination, **outgoing.options)
            else:
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

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._writer = PartitionWriter(options, schema)
        self._job = uuid.uuid4().hex
        self._options = options
        self._is_recognised = bool(options.queryName) or "duplicate_id" in schema.names

    def write(self, iterator: Iterator[Any]) -> Sent:
        """Send a partition, on an executor.

        Raises:
            InvalidOptionError: The option ``batchId`` is missing, see `table_batch`.
        """
        sent = self._writer.write(iterator, self._named() if self._options.queryName else self._job)
        return sent if self._is_recognised else replace(sent, query=current_batch()[0])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Warn, on the driver, of messages that the broker would not recognise in a repetition."""
        _warn_of_size(messages)
        for query in {task.query for task in messages if isinstance(task, Sent) and task.query}:
            _warn_of_repetition(query)

    def _named(self) -> str:
        """Return the name and the number of the table. Both are the same if the batch is repeated."""
        query, batch = current_batch()
        # A query with a new checkpoint numbers its batches from 0 again, so the name also has the id of the query.
        return f"{query}/{self._options.queryName}/{table_batch(self._options, batch)}"


class JmsStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._writer = PartitionWriter(options, schema)

    def write(self, iterator: Iterator[Any]) -> Sent:
        """Send a partition of a batch, on an executor."""
        return self._writer.write(iterator, _batch_id())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Warn, on the driver, of more messages than the broker recognises in a repetition."""
        del batchId
        _warn_of_size(messages)


def current_batch() -> tuple[str, int | None]:
    """Return the id of the streaming query of the current task and the number of its batch; empty and None outside."""
    context = TaskContext.get()
    query = context and context.getLocalProperty("sql.streaming.queryId")
    batch = context and context.getLocalProperty("streaming.sql.batchId")
    return query or "", int(batch) if batch else None


def current_run() -> str:
    """Return the id of the run of the streaming query of the current task; empty outside of one.

    A restarted query has the same id and a new run. Spark stores the run as the job group, which a job may replace.
    """
    context = TaskContext.get()
    group = context and context.getLocalProperty("spark.jobGroup.id")
    return group if group and current_batch()[0] and _RUN.fullmatch(group) else ""


def table_batch(options: SinkOptions, found: int | None) -> int:
    """Return the batch number of a named table.

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


def _remembered_ids(connection: Connection) -> int:
    if not connection.capabilities.duplicate_detection:
        return 0
    return Limits().duplicate_history if connection.metadata.protocol == "embedded" else _REMEMBERED_BY_ARTEMIS


@lru_cache(_MAX_QUERIES)
def _warn_of_repetition(query: str) -> None:
    """Log a warning, once for each query, that the messages of a repeated batch are not recognised."""
    logger.warning(
        "A table of the streaming query %s has no queryName: if Spark repeats the batch, its messages are sent again,"
        " and no broker recognises them. Set the option queryName, or give the rows a duplicate_id.",
        query,
    )


def _warn_of_size(tasks: Sequence[WriterCommitMessage | None]) -> None:
    """Log a warning if the broker would not recognise all messages of a batch that is repeated."""
    sent = [task for task in tasks if isinstance(task, Sent)]
    messages, remembered = sum(task.messages for task in sent), max((task.remembered for task in sent), default=0)
    if 0 < remembered < messages:
        logger.warning(
            "A batch had %d messages, and by default the broker remembers the last %d ids of each destination: if Spark"
            " repeats such a batch, it has messages two times. Write smaller batches, or set guarantee=exactly-once.",
            messages,
            remembered,
        )


_REFUSED = ("guarantee", "queryName", "batchId")


class ForeachWriter:
    """Sends the rows of each partition of each batch in one transaction, for ``df.writeStream.foreach(writer)``.

    Delivery is at least once. A task that fails has sent nothing. If another task or the driver fails, Spark may repeat
    a task after its commit. Then the task sends all of its rows again: Spark does not promise that the partition of a
    repeated batch has the same rows. For exactly-once delivery, see ``guarantee=exactly-once`` of the sink.

    Spark calls `open`, `process` and `close` on the executors; an object can be pickled until it is opened.

    Args:
        schema: The columns of the rows: ``df.schema``.
        options: The options ``url``, ``destination``, ``destinationType``, ``userName``, ``password``,
            ``credentials`` and ``timeToLive`` of the sink.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type; an option is unknown or
            has an invalid value; or there is no destination.
    """

    def __init__(self, schema: StructType, **options: object) -> None:
        given = {name: str(value) for name, value in options.items()}
        refused = [name for name in _REFUSED if name.lower() in map(str.lower, given)]
        if refused:
            raise InvalidOptionError(
                f"A ForeachWriter has no option {', '.join(map(repr, refused))}, because Spark does not promise which"
                ' rows a partition has when a batch is repeated: use .format("jms"), whose driver recognises batches.'
            )
        if "duplicate_id" in schema.names:
            raise InvalidOptionError(
                "A ForeachWriter sends the rows of a partition together or not at all, and Artemis sends messages with"
                " a duplicate id before the transaction: drop the column 'duplicate_id'."
            )
        self._options = SinkOptions.parse(given)
        self._encoder = encoder_of_sink(schema, self._options)
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._producer: MessageProducer | None = None

    def open(self, partition_id: int, epoch_id: int) -> bool:
        """Connect, and begin the transaction of a partition. Return True: its rows are to be processed.

        Args:
            partition_id: The number of the partition.
            epoch_id: The number of the batch.

        Raises:
            NotSupportedError: The broker has no transactions.
            JMSError: The broker cannot be reached.
        """
        del partition_id, epoch_id
        options = self._options
        factory = ConnectionFactory(
            options.url, user_name=options.userName, password=options.password, credentials=options.credentials
        )
        connection = factory.create_connection()
        with ExitStack() as stack:
            stack.callback(connection.close)  # after an error Spark does not call close()
            self._begin(connection)
            stack.pop_all()
        self._connection = connection
        return True

    def process(self, row: Row) -> None:
        """Add the message of a row to the transaction.

        Raises:
            JMSError: The row cannot be converted to a message.
        """
        if self._producer is None:
            raise IllegalStateError("This writer is not open: pass it to df.writeStream.foreach, which opens it.")
        outgoing = self._encoder.encode(row.asDict(recursive=True))
        if outgoing is not None:
            outgoing.message.properties.pop(DUPLICATE_ID, None)  # as for the column
            self._producer.send(outgoing.message, outgoing.destination, **outgoing.options)

    def close(self, error: Exception | None) -> None:
        """Commit the transaction, or roll it back after an error.

        Args:
            error: The error of the task; None if all rows were processed.

        Raises:
            TransactionInDoubtError: The connection broke during the commit; Spark repeats the task.
            JMSError: The broker has rolled back.
        """
        # Spark passes None if something else than an Exception ends the task, a SystemExit for instance.
        failed = error is not None or sys.exception() is not None
        connection, session = self._connection, self._session
        self._connection = self._session = self._producer = None
        if connection is None or session is None:
            return
        try:
            session.rollback() if failed else session.commit()
        finally:
            connection.close()

    def _begin(self, connection: Connection) -> None:
        if not connection.capabilities.atomic:
            raise NotSupportedError(
                "A ForeachWriter needs a broker with transactions, and this one has none over"
                f" {connection.metadata.protocol} (capability 'atomic'). Use .format(\"jms\") instead."
            )
        self._session = connection.create_session(transacted=True)
        self._producer = self._session.create_producer(None)
        self._producer.time_to_live = self._options.timeToLive
