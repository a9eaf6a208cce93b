"""A writer for ``DataStreamWriter.foreach``: the rows of one partition and one batch are one transaction."""

import sys

from pyspark.sql import Row
from pyspark.sql.types import StructType

from jmsjca.errors import IllegalStateError, InvalidOptionError, NotSupportedError
from jmsjca.messages import DUPLICATE_ID
from jmsjca.outbound import Connection, ConnectionFactory, MessageProducer, Session
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.rejections import encoder_of_sink

__all__ = ["ForeachWriter"]


class ForeachWriter:
    """Sends the rows of each partition of each batch in one transaction, for ``df.writeStream.foreach(writer)``.

    A task that fails has sent nothing. A task that Spark repeats after its commit, because another task or the driver
    failed, sends all of its rows again, so this is at least once: Spark does not promise that the partition of a
    repeated batch has the same rows. See ``guarantee=exactly-once`` of the sink for more.

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
        _check_options(given)
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
        try:
            self._begin(connection)
        except BaseException:
            connection.close()  # Spark does not call close() then
            raise
        self._connection = connection
        return True

    def process(self, row: Row) -> None:
        """Add the message of a row to the transaction.

        Raises:
            JMSError: The row is not one of a message.
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


_REFUSED = ("guarantee", "queryName", "batchId")


def _check_options(given: dict[str, str]) -> None:
    refused = [name for name in _REFUSED if name.lower() in map(str.lower, given)]
    if refused:
        raise InvalidOptionError(
            f"A ForeachWriter has no option {', '.join(map(repr, refused))}, because Spark does not promise which rows"
            ' a partition has when a batch is repeated: use .format("jms"), whose driver recognises batches.'
        )
