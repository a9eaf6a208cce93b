"""The exactly-once sink: tasks hand their rows to the driver, which sends a whole batch in one transaction.

A task sends nothing, so a failed, repeated or late one leaves nothing behind. See `jmsjca.spark.exactly_once` for the
transaction.
"""

import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jmsjca.errors import (
    ConnectionLostError,
    InvalidOptionError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID
from jmsjca.outbound import ConnectionFactory, Session
from jmsjca.spark.exactly_once import StateQueue, Token
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.partition import without_garbage_collection
from jmsjca.spark.rejections import encoder_of_sink
from jmsjca.spark.schema import ipc, pa
from jmsjca.spark.writer import current_batch, current_run, table_batch

__all__ = ["AtomicBatchWriter", "AtomicStreamWriter", "BatchSender", "Rows"]

logger = get_logger("jmsjca.spark")

_RETRIED = (ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError)
_PAUSES = (1, 2, 5, 10, 20, 20)  # seconds: a broker is back after a minute, or Spark ends the query


@dataclass(frozen=True, slots=True)
class Rows(WriterCommitMessage):
    """The commit message of a task: its rows.

    Attributes:
        data: The rows as an Arrow stream, compressed; empty if there is no row.
        count: The number of rows.
        query: The id of the streaming query; empty outside of one.
        batch: The number of Spark's batch; None outside of a streaming query.
        run: The id of the run of the streaming query; empty outside of one.
    """

    data: bytes
    count: int
    query: str = ""
    batch: int | None = None
    run: str = ""

    @classmethod
    def collect(cls, batches: Iterator[Any]) -> "Rows":
        """Return the rows of a task. Called on an executor."""
        return cls(*_packed(batches), *current_batch(), current_run())

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Return each row by the names of its columns."""
        if self.data:
            for batch in ipc.open_stream(self.data):
                yield from batch.to_pylist()


class BatchSender:
    """Sends a batch exactly once. It runs on the driver.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
        write: The id of the write of a table; empty for a stream, which has one table for each batch.

    Raises:
        InvalidOptionError: A column is unknown, missing or ambiguous, or has a wrong type; or there is no destination.
    """

    def __init__(self, options: SinkOptions, schema: StructType, write: str = "") -> None:
        if "duplicate_id" in schema.names:
            raise InvalidOptionError(
                "guarantee=exactly-once recognises a batch as a whole, and a broker that detects duplicates would drop"
                " rows by the column 'duplicate_id': drop it, or make it a property of another name."
            )
        self._options = options
        self._encoder = encoder_of_sink(schema, options)
        target = options.target if options.destination else "the destinations of its rows"
        self._table, self._write = f"{target} ({', '.join(schema.names)})", write

    def send(self, parts: Sequence[Rows], number: int) -> bool:
        """Send a batch, unless it was sent before. A lost connection is replaced, for about a minute.

        Args:
            parts: The rows of all tasks.
            number: The number of the batch.

        Returns:
            False if the batch was sent before.

        Raises:
            IllegalStateError: The token of the sink names another query, a later batch or another table, or is
                missing.
            JMSError: The broker cannot be reached, or refused a message; nothing was sent, or the outcome is unknown.
        """
        token = self._token(parts, number)
        for pause in (*_PAUSES, None):
            try:
                return self._send(parts, token)
            except _RETRIED as error:
                if pause is None:
                    raise
                self._report(token, error)
                threading.Event().wait(pause)
        raise AssertionError("unreachable")

    def _token(self, parts: Sequence[Rows], number: int) -> Token:
        query, run = (parts[0].query, parts[0].run) if parts else ("", "")
        token = Token(query, number, sum(part.count for part in parts))
        return replace(token, table=self._table, run=run, write=self._write) if self._write else token

    def _send(self, parts: Sequence[Rows], token: Token) -> bool:
        options = self._options
        factory = ConnectionFactory(
            options.url, user_name=options.userName, password=options.password, credentials=options.credentials
        )
        with factory.create_connection() as connection:
            state = StateQueue(connection, options.queryName)
            with without_garbage_collection():  # the transaction keeps all messages until the commit
                return state.write(token, lambda session: self._send_rows(session, parts))

    def _send_rows(self, session: Session, parts: Sequence[Rows]) -> None:
        producer = session.create_producer(None)
        producer.time_to_live = self._options.timeToLive
        for row in (row for part in parts for row in part.dicts()):
            outgoing = self._encoder.encode(row)
            if outgoing is None:
                continue
            # Artemis rolls back a transaction for a known id, so such messages would be sent before it.
            if DUPLICATE_ID in outgoing.message.properties:
                del outgoing.message.properties[DUPLICATE_ID]
            producer.send(outgoing.message, outgoing.destination, **outgoing.options)

    def _report(self, token: Token, error: JMSError) -> None:
        logger.warning(
            "Batch %d of %s is tried again, because its outcome is unknown or it failed: %s",
            token.batch,
            self._options.queryName,
            error,
        )


class AtomicStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches, each exactly once.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._sender = BatchSender(options, schema)

    def write(self, iterator: Iterator[Any]) -> Rows:
        """Return the rows of a partition, on an executor."""
        return Rows.collect(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Send the batch, on the driver."""
        if messages:
            self._sender.send(_all_rows(messages), batchId)


class AtomicBatchWriter(DataSourceArrowWriter):
    """Writes a table exactly once under the number of a batch, within ``foreachBatch`` as a rule.

    Args:
        options: The options of the sink.
        schema: The columns of the table.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._sender = BatchSender(options, schema, uuid.uuid4().hex)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Rows:
        """Return the rows of a partition, on an executor."""
        return Rows.collect(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Send the table, on the driver.

        Raises:
            InvalidOptionError: The option ``batchId`` is not the number of the batch of the streaming query, or is
                missing, see `table_batch`.
        """
        parts = _all_rows(messages)
        for part in parts:
            number = table_batch(self._options, part.batch)
            if part.batch not in (None, number):
                raise InvalidOptionError(
                    f"The option 'batchId' is {number}, and the streaming query processes batch {part.batch}:"
                    " leave it out, or pass the number that foreachBatch is called with."
                )
        if parts:
            self._sender.send(parts, table_batch(self._options, parts[0].batch))


def _all_rows(messages: Sequence[WriterCommitMessage | None]) -> list[Rows]:
    return [cast("Rows", message) for message in messages]


def _packed(batches: Iterator[Any]) -> tuple[bytes, int]:
    """Return rows as a compressed Arrow stream, and their number."""
    count, writer, data = 0, None, pa.BufferOutputStream()
    for batch in batches:
        if writer is None:
            writer = ipc.new_stream(data, batch.schema, options=ipc.IpcWriteOptions(compression="zstd"))
        writer.write_batch(batch)
        count += batch.num_rows
    if writer is None:
        return b"", 0
    writer.close()
    return data.getvalue().to_pybytes(), count
