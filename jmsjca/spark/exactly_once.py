"""The protocol of exactly-once writing: a token on the broker names the batch that was written last.

::

    receive the token from jmsjca.sink.NAME
    it names an earlier batch:  send the rows, send the token of this batch, commit
    it names this batch:        send it again, commit: the rows are there already

One transaction has the old token, the rows and the new token, so a crash at any step leaves either the old token and
no row, or the new token and all rows. The broker gives the token to one process at a time: a driver that Spark has
replaced cannot write beside its successor. A batch is recognised as a whole, so it does not matter in which order, or
over how many partitions, its rows come when Spark repeats it.

Two tables of one batch may have the same name by mistake. The second one is no repetition if it is written in the same
run of the query, which writes each batch once. So the token names the run and the write that received it last.
"""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, NotSupportedError, StoreError
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID, Message, TextMessage
from jmsjca.outbound import Connection, MessageConsumer, Session

__all__ = ["StateQueue", "Token"]

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
            StoreError: A message in the queue is no token.
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
        if last.batch == batch.batch:
            self._check_repetition(last, batch)

    def _check_repetition(self, last: Token, batch: Token) -> None:
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
