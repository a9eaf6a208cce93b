"""Counts the SQL statements of listeners that write a row and send a message for each message, in each way."""

import itertools
import threading
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.orm import Session

from jmsjca import ConnectionFactory, Hooks, Queue, ResourceAdapter, TextMessage
from jmsjca.transactions import Outbox, Relay, SqlInbox, joined_session

__all__ = ["WAYS", "Work"]

PATIENCE = 60
WAYS = ("local", "required", "inbox", "outbox")
_numbers = itertools.count()


class Work:
    """Messages that wait for a listener with a database.

    Args:
        way: How the row and the message commit: "local" commits the row by itself, "inbox after" inserts
            the row of the inbox after the handler.
        broker: The URL of the broker.
        database: The URL of the database.

    Attributes:
        statements: The number of SQL statements of the application and of ours.
    """

    def __init__(self, way, broker, database):
        self._way, self._broker = way, broker
        self._name = f"work.{next(_numbers)}"
        self.statements = 0
        self._engine = sa.create_engine(database)
        metadata = sa.MetaData()
        self._rows = sa.Table(
            "rows", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("text", sa.Text)
        )
        self._outbox = Outbox(metadata, engine=self._engine)
        insert = "after" if way == "inbox after" else "before"
        self._inbox = SqlInbox(self._engine, metadata=metadata, insert=insert)
        metadata.create_all(self._engine)
        sa.event.listen(self._engine, "before_cursor_execute", self._count)
        self._connection = ConnectionFactory(broker).create_connection()

    def fill(self, count, text="text"):
        with self._connection.create_session(transacted=True) as session:
            producer = session.create_producer(Queue(f"{self._name}.in"))
            for _ in range(count):
                producer.send(TextMessage(text))
            session.commit()

    @contextmanager
    def ready(self, count):
        """Prepare to handle so many messages; yield the function that handles them."""
        done = _Done(count)
        adapter = ResourceAdapter(self._broker, hooks=[done])
        has_inbox = self._way.startswith("inbox")
        transaction = "required" if has_inbox or self._way == "required" else "local"
        inbox = self._inbox if has_inbox else None
        options = {"transaction": transaction, "inbox": inbox, "redelivery_handling": "9:move(queue:dlq)"}
        adapter.listener(f"{self._name}.in", **options)(self._handler())
        relay = Relay(self._outbox, ConnectionFactory(self._broker))

        def work():
            adapter.start()
            assert done.all.wait(PATIENCE)
            while self._way == "outbox" and relay.run_once():
                pass

        yield work
        adapter.stop()
        relay.close()

    def _handler(self):
        handlers = {"local": self._local, "outbox": self._to_outbox}
        return handlers.get(self._way, self._required)

    def close(self):
        self._connection.close()
        self._engine.dispose()

    def _local(self, message, session):
        with Session(self._engine) as database, database.begin():
            database.execute(self._rows.insert().values(text=message.body))
        self._send(session, message)

    def _required(self, message, session, transaction):
        joined_session(self._engine, transaction).execute(self._rows.insert().values(text=message.body))
        self._send(session, message)

    def _to_outbox(self, message):
        with Session(self._engine) as database, database.begin():
            database.execute(self._rows.insert().values(text=message.body))
            self._outbox.add(database, f"{self._name}.out", message.body)

    def _send(self, session, message):
        session.create_producer(Queue(f"{self._name}.out")).send(session.create_text_message(message.body))

    def _count(self, *_):
        self.statements += 1


class _Done(Hooks):
    def __init__(self, count):
        self._left = count
        self.all = threading.Event()

    def settled(self, endpoint, outcome, messages):
        self._left -= messages
        if self._left <= 0:
            self.all.set()
