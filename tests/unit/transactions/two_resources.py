"""A listener that writes a row and sends a message for each message, and is killed at one of its steps."""

import logging
import os
import random
import signal
import threading
from collections import Counter
from multiprocessing import get_context
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from jmsjca import ConnectionFactory, Hooks, Queue, ResourceAdapter, TextMessage
from jmsjca.messages.properties import DUPLICATE_ID
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.transactions import LastResource, SqlInbox, recover_prepared
from jmsjca.transactions.broker_data_manager import BrokerDataManager
from jmsjca.transactions.inbox import InboxTable, engine_of_file
from jmsjca.transactions.last_resource import Decision
from jmsjca.transactions.sql_data_manager import joined_session

__all__ = [
    "ROWS",
    "Account",
    "Place",
    "account_of_a_kill",
    "chosen_steps",
    "prepare",
    "steps_of",
    "verdict_on",
]

PATIENCE = 60
LOOKS = 0.5  # seconds between looks for prepared units
METADATA = sa.MetaData()
ROWS = sa.Table(
    "rows", METADATA, sa.Column("id", sa.Integer, primary_key=True), sa.Column("text", sa.String, nullable=False)
)
END = "the end"


class Place(NamedTuple):
    """Where it happens.

    Attributes:
        broker: The URL of the broker.
        database: The URL of the database.
        name: The prefix of the queues.
        bodies: The messages.
        has_inbox: Whether the listener has an inbox.
        fault: What is wrong on purpose; an empty text for nothing.
        two_phase: Whether the database commits in two phases.
        duplicate_ids: Whether the messages have their bodies as duplicate ids.
        insert: When the row of the inbox is inserted.
        is_asynchronous: Whether the listener has an asynchronous handler, and sessions of its event loop.
        decides: Whether the database decides what the broker has prepared.
    """

    broker: str
    database: str
    name: str
    bodies: tuple[str, ...]
    has_inbox: bool
    fault: str = ""
    two_phase: bool = False
    duplicate_ids: bool = False
    insert: str = "before"
    is_asynchronous: bool = False
    decides: bool = False

    @property
    def is_remote(self):
        return not self.broker.startswith("embedded:")

    @property
    def source(self):
        return Queue(f"{self.name}.in")

    @property
    def out(self):
        return Queue(f"{self.name}.out")

    def engine(self):
        if self.database.startswith("embedded:"):
            return engine_of_file(self.database)
        waits = {"timeout": PATIENCE} if self.database.startswith("sqlite") else {}
        if self.is_asynchronous:
            url = self.database.replace("sqlite:", "sqlite+aiosqlite:")
            return create_async_engine(url, connect_args=waits, poolclass=sa.NullPool)
        return sa.create_engine(self.database, connect_args=waits)


class Account(NamedTuple):
    """What is there at the end."""

    rows: Counter[str]
    sent: Counter[str]
    left: list[str]


class Steps:
    """Records the kinds of the steps, and kills the process at the n-th one, or at the n-th of a kind; 0 for none."""

    def __init__(self, last):
        self._last = last
        self._lock = threading.Lock()
        self.kinds = []

    def __call__(self, kind):
        with self._lock:
            self.kinds.append(kind)
            reached = len(self.kinds) if isinstance(self._last, int) else (kind, self.kinds.count(kind))
            if reached == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


class Settled(Hooks):
    """Sets an event when so many messages are committed."""

    def __init__(self, messages):
        self._left = messages
        self.all_there = threading.Event()

    def settled(self, endpoint, outcome, messages):
        self._left -= messages if outcome.name == "COMMITTED" else 0
        if self._left <= 0:
            self.all_there.set()


def chosen_steps(kinds, size, seed=20):
    """Return the first step of each kind, but those of the set-up, and some others; all with JMSJCA_ALL_STEPS=1."""
    everything = range(1, len(kinds) + 1)
    if os.environ.get("JMSJCA_ALL_STEPS"):
        return list(everything)
    first = {kind: n for n, kind in reversed(list(enumerate(kinds, 1))) if not kind.endswith(("CREATE", "PRAGMA"))}
    return sorted({*first.values(), *random.Random(seed).sample(everything, size)})


def account_of_a_kill(place, last):
    """Kill the listener at a step, let another one finish, and return what is there."""
    prepare(place)
    kinds = steps_of(place, last)
    assert kinds is None, f"{place} has no step {last}"
    engine = place._replace(is_asynchronous=False).engine()
    if place.two_phase:
        recover_prepared(engine, older_than=0)
    sent = finish(place)
    with engine.connect() as connection:
        rows = Counter(connection.scalars(sa.select(ROWS.c.text)))
    engine.dispose()
    left, more = remaining(place)
    return Account(rows, Counter([*sent, *more]), left)


def prepare(place):
    engine = place._replace(is_asynchronous=False).engine()
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for table in ("jmsjca_inbox", "jmsjca_decisions"):
            connection.execute(sa.text(f"DROP TABLE IF EXISTS {table}"))
    engine.dispose()
    with ConnectionFactory(place.broker).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(place.source)
        for body in place.bodies:
            producer.send(TextMessage(body, properties={DUPLICATE_ID: body} if place.duplicate_ids else {}))


def steps_of(place, last=0):
    """Run the listener in a process of its own; return the kinds of its steps, or None if it was killed."""
    context = _context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_listen, args=(place, last, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join(PATIENCE)
        assert process.exitcode == (-signal.SIGKILL if last else 0), process.exitcode
        process.close()
        receiver.close()


def finish(place):
    """Run another listener to the end: of the source, or over a network until as many messages are sent as it had.

    Returns:
        The messages that it was waited for.
    """
    process = _context().Process(target=_finish, args=(place,))
    process.start()
    sent = []
    if place.is_remote:
        with ConnectionFactory(place.broker).create_connection() as connection, connection.create_session() as session:
            consumer = session.create_consumer(place.out)
            sent = [consumer.receive(timeout=PATIENCE).body for _ in place.bodies]
            session.create_producer(place.source).send(TextMessage(END))
    process.join(2 * PATIENCE)
    assert process.exitcode == 0, process.exitcode
    process.close()
    return sent


def remaining(place):
    """Consume what is left at the source and at the destination, and return the bodies."""
    with ConnectionFactory(place.broker).create_connection() as connection, connection.create_session() as session:
        return [_drained(session.create_consumer(queue), place) for queue in (place.source, place.out)]


def _drained(consumer, place):
    bodies = []
    while message := consumer.receive(timeout=float(place.is_remote)):
        bodies.append(message.body)
    return bodies


def verdict_on(account, bodies):
    """Return what is wrong: loss or duplicates of rows and of messages; empty if each is there once."""
    wrong = [f"{len(account.left)} messages left"] if account.left else []
    for name, counted in (("rows", account.rows), ("messages", account.sent)):
        wrong += [f"{counted[body]} {name} of {body}" for body in bodies if counted[body] != 1]
    return wrong


LOADED = (
    "pytest",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "jmsjca.config.activation_spec",
    "jmsjca.inbound.activation",
    "jmsjca.providers.embedded.provider",
    "jmsjca.transactions.container_transaction",
    "tenacity",
)


def _context():
    """Processes are forked from a server that has loaded everything, and has no threads."""
    context = get_context("forkserver")
    context.set_forkserver_preload([*LOADED, __name__])
    return context


def _listen(place, last, pipe):
    logging.disable()
    step, settled = Steps(last), Settled(len(place.bodies))
    engine = place.engine()
    _watch(engine.sync_engine if place.is_asynchronous else engine, step)
    _plant(place.fault)
    adapter = _adapter_of(place, engine, settled, step)
    with adapter:
        assert settled.all_there.wait(PATIENCE)
    pipe.send(step.kinds)


def _finish(place):
    logging.disable()
    settled = Settled(1)
    engine = place.engine()
    _plant(place.fault)
    if place.is_remote:
        with _adapter_of(place, engine, settled, _ignore) as adapter:
            assert adapter.ended.wait(PATIENCE)
        return
    with (
        _adapter_of(place, engine, settled, _ignore),
        ConnectionFactory(place.broker).create_connection() as connection,
        connection.create_session() as session,
    ):
        for _ in range(20 * PATIENCE):  # the broker may still be taking back what the killed process had
            if not list(session.create_browser(place.source)) and not _held(connection, place):
                return
            settled.all_there.wait(0.05)
            settled.all_there.clear()
        raise AssertionError("The source is not empty.")


def _ignore(kind):
    """Make nothing of a step."""


def _held(connection, place):
    """Return the number of messages that a consumer holds, where the broker knows it."""
    admin = connection.admin
    return admin.depth(place.source).total if connection.capabilities.counts_held else 0


def _adapter_of(place, engine, settled, step):
    decider = LastResource(place._replace(is_asynchronous=False).engine(), interval=LOOKS) if place.decides else None
    adapter = ResourceAdapter(place.broker, hooks=[settled], last_resource=decider)
    adapter.ended = threading.Event()
    inbox = SqlInbox(engine, two_phase=place.two_phase, insert=place.insert) if place.has_inbox else None

    def send(message, session):
        session.create_producer(place.out).send(session.create_text_message(message.body))
        step("the message is sent")

    def handler(message, session, transaction):
        if message.body == END:
            adapter.ended.set()
            return
        step("the handler begins")
        database = inbox.session(transaction) if inbox else joined_session(engine, transaction)
        database.execute(ROWS.insert().values(text=message.body))
        step("the row is inserted")
        send(message, session)

    async def asynchronous(message, session, transaction):
        step("the handler begins")
        await inbox.async_session(transaction).execute(ROWS.insert().values(text=message.body))
        step("the row is inserted")
        send(message, session)

    listener = adapter.listener(place.source, transaction="required", inbox=inbox)
    listener(asynchronous if place.is_asynchronous else handler)
    return adapter


def _watch(engine, step):
    """Make each statement, and each commit, a step before and after it."""
    sa.event.listen(engine, "before_cursor_execute", lambda *call: step(f"before {call[2].split()[0]}"))
    sa.event.listen(engine, "after_cursor_execute", lambda *call: step(f"after {call[2].split()[0]}"))
    sa.event.listen(engine, "commit", lambda connection: step("before the database's commit"))
    sa.event.listen(engine, "prepare_twophase", lambda connection, xid: step("before the database prepares"))
    sa.event.listen(engine, "commit_twophase", lambda connection, xid, prepared: step("before the prepared commits"))
    sa.event.listen(Session, "after_commit", lambda session: step("after the database's commit"))
    prepare, commit, send = UnitOfWork.prepare, UnitOfWork.commit, UnitOfWork.send

    def stepping_prepare(unit):
        step("before the broker prepares")
        xid = prepare(unit)
        step("after the broker has prepared")
        return xid

    def stepping_commit(unit, **options):
        step("before the broker's commit")
        commit(unit, **options)
        step("after the broker's commit")

    def stepping_send(unit, message, to, **options):
        step("before a send")
        send(unit, message, to, **options)

    UnitOfWork.prepare, UnitOfWork.commit, UnitOfWork.send = stepping_prepare, stepping_commit, stepping_send


def _plant(fault):
    """Plant what must show loss or duplicates, in this process only."""
    if fault == "inbox row outside the transaction":

        def insert(table, session, row, now):
            with Session(session.get_bind()) as own:
                new = original(table, own, row, now)
                own.commit()
            return new

        original, InboxTable.insert = InboxTable.insert, insert
    elif fault == "settle before commit":
        BrokerDataManager.sortKey = lambda manager: "!first"
    elif fault == "no decision row":
        Decision.make = lambda decision, session, commit: (commit(), setattr(decision, "commits", True))
    elif fault == "one endpoint for all":
        SqlInbox.of_listener = lambda inbox, name, loop, of=SqlInbox.of_listener: of(inbox, "same", loop)
    else:
        assert not fault
