"""The exactly-once sink: the driver sends a whole batch in one transaction, which a token on the broker names.

::

    receive the token from jmsjca.sink.NAME
    it names an earlier batch:  send the rows, send the token of this batch, commit
    it names this batch:        send it again, commit: the rows are there already

One transaction has the old token, the rows and the new token, so a crash at any step leaves either the old token and
no row, or the new token and all rows. The broker delivers the token to one process at a time: a driver that Spark has
replaced cannot write at the same time as its successor. A batch is recognised as a whole: when Spark repeats it, the
order of its rows and the number of its partitions do not matter.

Two tables of one batch may have the same name by mistake. A run of a query writes each batch once. So a second write of
a batch in the same run is not a repetition, but another table. To detect this, the token names the run and the write
that received it last.

Tasks send nothing: they hand their rows to the driver. So a failed, repeated or late task has no effect on the broker.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, cast

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jmsjca.destinations import Queue
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidOptionError,
    JMSError,
    NotSupportedError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID, Message, TextMessage
from jmsjca.outbound import Connection, ConnectionFactory, MessageConsumer, Session
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.partition import without_garbage_collection
from jmsjca.spark.rejections import encoder_of_sink
from jmsjca.spark.schema import ipc, pa
from jmsjca.spark.writer import current_batch, current_run, table_batch

__all__ = ["AtomicBatchWriter", "AtomicStreamWriter", "BatchSender", "Rows", "StateQueue", "Token"]

logger = get_logger("jmsjca.spark")

_LOOK = 1.0  # seconds: the token is there as a rule, so only the first batch of a query waits so long
_PATIENCE = 90.0  # seconds: brokers return the messages of a crashed host after a minute (Artemis, AMQP)


@dataclass(frozen=True, slots=True)
class Token:
    """Names a batch that was written.

    Attributes:
        query: The id of the streaming query, which its checkpoint keeps; empty outside of one.
        batch: The number of the batch; -1 before the first one.
        rows: The number of its rows.
        table: The destination and the columns of a table; empty for a stream, which has one table for each batch.
        run: The id of the run of the streaming query in which a table was written, or last repeated; empty outside.
        write: The id of that write.
    """

    query: str
    batch: int = -1
    rows: int = 0
    table: str = ""
    run: str = ""
    write: str = ""

    def message(self) -> TextMessage:
        """Return the message that is this token."""
        return TextMessage(json.dumps({"version": 1} | asdict(self)))

    def repeated_by(self, batch: "Token") -> "Token":
        """Return the token after a repetition of its batch."""
        return replace(self, run=batch.run, write=batch.write)

    def is_second_table(self, batch: "Token") -> bool:
        """Return whether a table of the same batch is another one than that which was written."""
        if self.run and batch.run:
            return self.run == batch.run and self.write != batch.write
        return bool(self.table and batch.table) and self.table != batch.table

    @classmethod
    def of(cls, message: Message, queue: Queue) -> Self:
        """Return the token that is a message.

        Raises:
            StoreError: The message is not a token.
        """
        try:
            fields: dict[str, Any] = json.loads(message.body)
            if fields["version"] == 1:
                texts = {name: str(fields.get(name, "")) for name in ("table", "run", "write")}  # not in 0.1.0
                return cls(str(fields["query"]), int(fields["batch"]), int(fields["rows"]), **texts)
            problem = f"it has version {fields['version']}"
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
        raise StoreError(
            f"{queue} has a message that is not the state of a Spark sink ({problem}). Move it to another queue: jmsjca"
            " cannot know which batch was written last."
        )


class StateQueue:
    """The queue with the token of a sink.

    Args:
        connection: A started connection.
        name: The name of the sink: the option ``queryName``.
        patience: The seconds for which another process may hold the token.

    Raises:
        NotSupportedError: The broker has no transactions of receipts and sends.
    """

    def __init__(self, connection: Connection, name: str, patience: float = _PATIENCE) -> None:
        if not connection.capabilities.atomic:
            raise NotSupportedError(
                "guarantee=exactly-once needs a broker that commits receipts and sends together, and this one does not"
                f" over {connection.metadata.protocol} (capability 'atomic'). Use guarantee=at-least-once."
            )
        self._connection = connection
        self._queue = Queue(f"jmsjca.sink.{name}")
        self._patience = patience

    def write(self, batch: Token, send: Callable[[Session], None]) -> bool:
        """Send the rows of a batch, unless they were sent before.

        Args:
            batch: The batch.
            send: Sends the rows over a session, and does not commit.

        Returns:
            False if the rows were sent before.

        Raises:
            IllegalStateError: The token names another query, a later batch or another table, or is missing.
            StoreError: A message in the queue is not a token.
            JMSError: The broker failed; the call can be repeated.
        """
        with (
            self._connection.create_session(transacted=True) as session,
            closing(session.create_consumer(self._queue)) as consumer,
        ):
            last = self._take(session, consumer, batch.query)
            self._check(last, batch)
            is_new = last.batch < batch.batch
            if is_new:
                send(session)
            self._put(session, batch if is_new else last.repeated_by(batch))
            session.commit()
        return is_new

    def _take(self, session: Session, consumer: MessageConsumer, query: str) -> Token:
        """Receive the token, which is created for a new query."""
        first = consumer.receive(_LOOK)
        if first is None and not self._is_created_once():
            first = consumer.receive(self._patience)
        if first is None:
            self._create(query)
            first = consumer.receive(self._patience)
        if first is None:
            raise IllegalStateError(
                f"{self._queue} has no token: another process holds it for more than {self._patience:g} seconds, or it"
                " was removed, and with it the number of the batch that was written last. Stop the other process, or"
                " use another queryName."
            )
        if not first.redelivered:
            return self._merge(first, consumer)
        # A broker moves a message that was redelivered too often; the count of a new one begins at 0.
        self._put(session, self._merge(first, consumer))
        session.commit()
        return self._merge(consumer.receive(self._patience), consumer)

    def _is_created_once(self) -> bool:
        """Return whether the broker prevents that two processes create two tokens, or shows that no token exists."""
        admin, can = self._connection.admin, self._connection.capabilities
        if can.duplicate_detection:
            return True
        return admin is not None and can.counts_held and not admin.depth(self._queue).total

    def _create(self, query: str) -> None:
        """Send the first token of a query. A broker with duplicate detection does that once."""
        message = Token(query).message()
        message.properties[DUPLICATE_ID] = f"{self._queue.name}/{query}"
        with self._connection.create_session() as session, closing(session.create_producer(self._queue)) as producer:
            producer.send(message)

    def _merge(self, first: Message | None, consumer: MessageConsumer) -> Token:
        """Return the latest of the tokens in the queue. Two processes may both have created one."""
        tokens: list[Token] = []
        message = first
        while message is not None:
            tokens.append(Token.of(message, self._queue))
            message = consumer.receive_no_wait()
        queries = {token.query for token in tokens}
        if len(queries) != 1:
            raise IllegalStateError(
                f"{self._queue} has tokens of {len(queries)} queries: give each query a queryName of its own."
            )
        return max(tokens, key=lambda token: token.batch)

    def _check(self, last: Token, batch: Token) -> None:
        if last.query != batch.query:
            raise IllegalStateError(
                f"{self._queue} belongs to the query {last.query or '(no stream)'}, and this one is"
                f" {batch.query or '(no stream)'}: its checkpoint is a new one, or two queries have the same queryName."
                " Their batches have the same numbers. Use another queryName, or purge the queue if the other query"
                " never continues."
            )
        if last.batch > batch.batch:
            raise IllegalStateError(
                f"Batch {batch.batch} comes after batch {last.batch}, which {self._queue} has as the last one: the"
                " checkpoint is older than the queue, or another driver has gone on. Whether the batch was written is"
                " not known. Use the newest checkpoint, or another queryName."
            )
        if last.batch < batch.batch:
            return
        if last.is_second_table(batch):
            raise IllegalStateError(self._two_tables(last, batch))
        if last.rows != batch.rows:
            logger.warning(
                "Batch %d of %s was written with %d rows and is repeated with %d, which are dropped. Two writes of one "
                "batch need a queryName each.",
                batch.batch,
                self._queue.name,
                last.rows,
                batch.rows,
            )

    def _two_tables(self, last: Token, batch: Token) -> str:
        in_run = " in this run of the query" if batch.run else ""
        remedy = "start the query again" if batch.run else "write it as it was"
        return (
            f"Batch {batch.batch} of {self._queue} was written{in_run}, to {last.table}, and this is a second table, to"
            f" {batch.table}. Nothing of it was sent. Two tables of one batch need a queryName each. If it is the same"
            f" table, because the job repeats a write or was changed, {remedy}."
        )

    def _put(self, session: Session, token: Token) -> None:
        with closing(session.create_producer(self._queue)) as producer:
            producer.send(token.message())


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

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
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
