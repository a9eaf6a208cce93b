"""The inbox: records processed messages with their database work, so that a redelivered message has no second effect.

::

    inbox = SqlInbox(engine)

    @adapter.listener("orders", transaction="required", inbox=inbox)
    def on_order(message, transaction):
        inbox.session(transaction).execute(...)
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from jmsjca.arguments import TIMEOUT, Constraint
from jmsjca.config import ConnectionURL, Limits
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, InvalidArgumentError, TransactionRolledBackError
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.embedded.provider import location_of
from jmsjca.providers.embedded.store.database import open_database
from jmsjca.transactions.broker_data_manager import JoinedTransactionManager, TransactionSource
from jmsjca.transactions.sql_data_manager import (
    SessionSource,
    asynchronous_sources,
    is_asynchronous_engine,
    joined_session,
    new_session,
    run_on_loop,
    vote_last,
)
from jmsjca.transactions.stored_message import StoredSend, decode_sends, encode_sends
from jmsjca.transactions.two_phase import two_phase_session

if TYPE_CHECKING:  # sqlalchemy.ext.asyncio needs greenlet, which SQLAlchemy does not install by itself
    import asyncio
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

__all__ = [
    "LONGEST",
    "InboxOutcome",
    "InboxRow",
    "InboxRules",
    "InboxTable",
    "Insertion",
    "ListenerInbox",
    "LoopRunner",
    "Resolver",
    "SessionRunner",
    "SqlInbox",
    "ThreadRunner",
    "engine_of_file",
    "message_key",
]

logger = get_logger("jmsjca.transactions")

T = TypeVar("T")

if TYPE_CHECKING:
    AsyncSessionSource: TypeAlias = AsyncEngine | async_sessionmaker[AsyncSession]

_WEEK = 7 * 86_400.0


class SqlInbox:
    """A table of messages with committed effects. The inbox inserts each row in the handler's own database transaction.

    Args:
        source: The engine of the application's database, or a factory of its sessions. Use an `AsyncEngine` or an
            `async_sessionmaker` for asynchronous handlers. With the URL of an embedded broker,
            ``embedded:///folder/file.db``, the table is in the broker's file.
        metadata: The application's metadata. The table is added to it, and the application creates the table. None:
            the inbox creates the table.
        name: Name of the table.
        schema: Schema of the table; None for the schema of the metadata.
        endpoint: The name of the listener in the table; None for its destination or durable subscription. Listeners
            with different names do not see each other's rows.
        insert: When the row is inserted. "before": before the handler is called; another transaction with the same
            message waits. "after": when the handler has returned; if two transactions process the same message, the
            second is rolled back. None means "before", except in the file of an embedded broker, where it means "after"
            and "before" is refused, because an uncommitted row would block the broker.
        two_phase: True to commit in two phases; needs an engine of PostgreSQL, see `two_phase_session`.
        keep: Seconds for which a row is kept. Expired rows are deleted from time to time.
        resolver: Decides about messages that are in doubt; None delivers them and logs a warning.
        clock: Returns the seconds since the epoch.

    Attributes:
        source: As given; for an embedded broker the engine of its file.
        table: The table.
        endpoint: As given.

    Raises:
        ArgumentTypeError: The source has another type; or ``two_phase`` is True and the source is not an engine.
        InvalidArgumentError: ``keep`` is not above 0, ``insert`` is unknown, or the broker has no file.
    """

    def __init__(
        self,
        source: SessionSource | AsyncSessionSource | str,
        *,
        metadata: sa.MetaData | None = None,
        name: str = "jmsjca_inbox",
        schema: str | None = None,
        endpoint: str | None = None,
        insert: Insertion | None = None,
        two_phase: bool = False,
        keep: float | timedelta = _WEEK,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.source = _source_of(source, two_phase=two_phase)
        seconds = TIMEOUT("keep", keep)
        if not seconds:
            raise InvalidArgumentError("keep=0 would forget every message at once. Give the seconds to keep a row.")
        self.endpoint = endpoint
        self._two_phase = two_phase
        self._creates_table = metadata is None
        self._table = InboxTable(name, metadata or sa.MetaData(), schema)
        self.table = self._table.table
        self._rules = InboxRules(self._table, _insertion(insert, source), seconds, resolver, clock)

    @property
    def is_asynchronous(self) -> bool:
        """True if the source is asynchronous, so that only asynchronous handlers can use it."""
        return not isinstance(self.source, sa.Engine | sessionmaker)

    def session(self, transaction: TransactionSource) -> Session:
        """Return the session of a unit's transaction, in which the inbox also inserts its row.

        Args:
            transaction: The parameter ``transaction`` of the handler.

        Raises:
            IllegalStateError: The source is asynchronous.
        """
        if not isinstance(self.source, sa.Engine | sessionmaker):
            raise IllegalStateError("The source of this inbox is asynchronous: use async_session(…).")
        if self._two_phase and isinstance(self.source, sa.Engine):
            found = two_phase_session(self.source, transaction)
        else:
            found = joined_session(self.source, transaction)
        vote_last(found, transaction)  # the row states that the work of the other databases is also committed
        return found

    def async_session(self, transaction: TransactionSource) -> AsyncSession:
        """Return the session of a unit's transaction, as `session` does, where the source is asynchronous.

        Args:
            transaction: The parameter ``transaction`` of the handler.

        Raises:
            IllegalStateError: The source is synchronous.
        """
        if isinstance(self.source, sa.Engine | sessionmaker):
            raise IllegalStateError("The source of this inbox is synchronous: use session(…).")
        if self._two_phase and is_asynchronous_engine(self.source):
            found = two_phase_session(self.source, transaction)
        else:
            found = joined_session(self.source, transaction)
        vote_last(found, transaction)
        return found

    def prepare(self) -> None:
        """Create the table, unless it exists or the application's metadata contains it.

        With an asynchronous source the first message creates it, because there may be no event loop before.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        if self._creates_table and not self.is_asynchronous:
            self._thread_runner().run(self._table.create)

    def of_listener(self, name: str, loop: Callable[[], asyncio.AbstractEventLoop]) -> ListenerInbox:
        """Return the inbox of one listener.

        Args:
            name: The name of the listener, if the inbox has none.
            loop: Returns the event loop of the handler.
        """
        return ListenerInbox(self._rules, self._runner(loop), self.endpoint or name)

    def prune(self) -> int:
        """Delete the expired rows of all listeners, and return their number.

        Raises:
            IllegalStateError: The source is asynchronous: only its listeners delete expired rows.
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        return self._thread_runner().run(self._rules.prune)

    def _runner(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> SessionRunner:
        source = self.source
        if isinstance(source, sa.Engine | sessionmaker):
            return self._thread_runner()
        create = self._table.create if self._creates_table else None
        return LoopRunner(loop, lambda: new_session(source), self.async_session, create)

    def _thread_runner(self) -> ThreadRunner:
        source = self.source
        if not isinstance(source, sa.Engine | sessionmaker):
            raise IllegalStateError("The source of this inbox is asynchronous: only its listeners use it.")
        return ThreadRunner(lambda: new_session(source), self.session)


def _source_of(
    source: SessionSource | AsyncSessionSource | str, *, two_phase: bool
) -> SessionSource | AsyncSessionSource:
    if isinstance(source, str):
        return engine_of_file(source)
    asynchronous = asynchronous_sources()
    kinds = (sa.Engine, *asynchronous[:1]) if two_phase else (sa.Engine, sessionmaker, *asynchronous)
    wanted: Constraint[SessionSource | AsyncSessionSource] = Constraint(
        "an Engine, or a factory of sessions, of SQLAlchemy", kinds
    )
    return wanted("source", source)


def _insertion(insert: Insertion | None, source: object) -> Insertion:
    is_file = isinstance(source, str)
    if insert is None:
        return "after" if is_file else "before"
    if insert not in get_args(Insertion):
        raise InvalidArgumentError(f"insert={insert!r} is unknown; use 'before' or 'after'.")
    if is_file and insert == "before":
        raise InvalidArgumentError(
            "insert='before' would lock the file of the embedded broker while a handler runs. Use insert='after'."
        )
    return insert


class ThreadRunner:
    """Runs work in synchronous sessions, on the calling thread.

    Args:
        new_session: Returns a new session.
        joined: Returns the session that has joined a transaction.
    """

    def __init__(
        self, new_session: Callable[[], Session], joined: Callable[[JoinedTransactionManager], Session]
    ) -> None:
        self._new_session = new_session
        self._joined = joined

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a new session. The work commits it."""
        with self._new_session() as session:
            return work(session)

    def run_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        """Run work in the session that has joined a unit's transaction."""
        return work(self._joined(manager))


class LoopRunner:
    """Runs work in asynchronous sessions, on the event loop of the handlers, while the calling thread waits.

    Args:
        loop: Returns the loop.
        new_session: Returns a new session.
        joined: Returns the session that has joined a transaction; called on the loop.
        prepare: Runs before the first work, because there may be no loop earlier; None for nothing.
    """

    def __init__(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        new_session: Callable[[], AsyncSession],
        joined: Callable[[JoinedTransactionManager], AsyncSession],
        prepare: Callable[[Session], None] | None,
    ) -> None:
        self._loop = loop
        self._new_session = new_session
        self._joined = joined
        self._prepare = prepare
        self._lock = Lock()

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a new session. The work commits it."""
        self._run_prepare()
        return run_on_loop(self._loop(), self._apart(work))

    def run_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        """Run work in the session that has joined a unit's transaction."""
        self._run_prepare()
        return run_on_loop(self._loop(), self._in_joined(work, manager))

    async def _apart(self, work: Callable[[Session], T]) -> T:
        async with self._new_session() as session:
            return await session.run_sync(work)

    async def _in_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        return await self._joined(manager).run_sync(work)

    def _run_prepare(self) -> None:
        if self._prepare is None:
            return
        with self._lock:
            if self._prepare is not None:
                run_on_loop(self._loop(), self._apart(self._prepare))
                self._prepare = None


def engine_of_file(url: str) -> sa.Engine:
    """Return an engine for the file of an embedded broker. Creates the file if it does not exist.

    The engine keeps no connection open between sessions, so a fork cannot copy one.

    Args:
        url: ``embedded:///folder/file.db``.

    Raises:
        InvalidURLError: The URL names no file.
        InvalidArgumentError: The URL is of another provider, or of a broker in memory.
    """
    parsed = ConnectionURL.parse(url)
    place = location_of(parsed) if parsed.protocol == "embedded" else None
    if not isinstance(place, Path):
        raise InvalidArgumentError(
            f"{parsed} names no file of an embedded broker. Give embedded:///folder/file.db, or the Engine of a "
            "database."
        )
    path = place

    def connect() -> sqlite3.Connection:
        """Open the file as the broker does."""
        connection = open_database(path, Limits().lock_timeout)
        connection.isolation_level = "DEFERRED"  # sqlite3 begins transactions; elsewhere the broker executes BEGIN
        return connection

    return sa.create_engine(f"sqlite:///{path}", creator=connect, poolclass=sa.NullPool)


LONGEST = 255  # characters of a name, a key or an id
_INSERT = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class InboxRow(NamedTuple):
    """The row of a message.

    Attributes:
        endpoint: The name of the listener.
        message_key: The duplicate id of the message, or its message id.
        message_id: Its message id.
        outgoing: The messages that its handler has sent; None if it sent nothing.
    """

    endpoint: str
    message_key: str
    message_id: str
    outgoing: str | None = None


class InboxTable:
    """The table. Its statements run in the session of the caller, who commits it.

    Args:
        name: Name of the table.
        metadata: The metadata that it is added to.
        schema: Its schema; None for the schema of the metadata.

    Attributes:
        table: The table.
    """

    def __init__(self, name: str, metadata: sa.MetaData, schema: str | None) -> None:
        self.table = sa.Table(
            name,
            metadata,
            sa.Column("endpoint", sa.String(LONGEST), primary_key=True),
            sa.Column("message_key", sa.String(LONGEST), primary_key=True),
            sa.Column("message_id", sa.String(LONGEST), nullable=False),
            sa.Column("outgoing", sa.Text),
            sa.Column("processed", sa.Float, nullable=False, index=True),
            schema=schema,
        )

    def create(self, session: Session) -> None:
        """Create the table, unless it exists, and commit."""
        try:
            self.table.create(session.connection(), checkfirst=True)
            session.commit()
        except SQLAlchemyError:
            session.rollback()
            if not sa.inspect(session.connection()).has_table(self.table.name, self.table.schema):
                raise  # the table is still missing: the error is not that another process created it first

    def insert(self, session: Session, row: InboxRow, now: float) -> bool:
        """Insert a row; return False if it exists. Waits for another transaction that is inserting the same row."""
        values = {**row._asdict(), "processed": now}
        insert: Any = _INSERT.get(session.get_bind().dialect.name)
        if insert is not None:
            statement = insert(self.table).values(values).on_conflict_do_nothing()
            # Without this option the number of rows of an INSERT is -1 on PostgreSQL.
            inserted: Any = session.execute(statement, execution_options={"preserve_rowcount": True})
            return bool(inserted.rowcount == 1)
        try:
            with session.begin_nested():
                session.execute(sa.insert(self.table).values(values))
        except IntegrityError:
            return False
        return True

    def find(self, session: Session, endpoint: str, key: str) -> InboxRow | None:
        """Return the row of a message, or None."""
        columns = self.table.c
        found = session.execute(
            sa.select(columns.message_id, columns.outgoing).where(
                columns.endpoint == endpoint, columns.message_key == key
            )
        ).first()
        return None if found is None else InboxRow(endpoint, key, found.message_id, found.outgoing)

    def set_outgoing(self, session: Session, row: InboxRow) -> None:
        """Store the messages that a handler has sent in the row of its message."""
        columns = self.table.c
        session.execute(
            sa.update(self.table)
            .where(columns.endpoint == row.endpoint, columns.message_key == row.message_key)
            .values(outgoing=row.outgoing)
        )

    def prune(self, session: Session, before: float) -> int:
        """Delete the rows that are older than a time, commit, and return their number."""
        deleted: Any = session.execute(sa.delete(self.table).where(self.table.c.processed < before))
        session.commit()
        return int(deleted.rowcount)


_PRUNES = 20  # how many times rows are pruned within the time that a row is kept

Insertion: TypeAlias = Literal["before", "after"]
"""When the row of a message is inserted: before the handler is called, or after it has returned."""


class InboxOutcome(Enum):
    """The state of a message in the inbox."""

    NEW = "new"  #: its effects are not committed: the handler is called
    DUPLICATE = "duplicate"  #: its effects are committed: the handler is not called
    IN_DOUBT = "in doubt"  #: redelivered, and either older than the history or without an id: the resolver decides


Resolver: TypeAlias = Callable[[Message], InboxOutcome]
"""Decides about a message in doubt: returns `InboxOutcome.NEW` or ``DUPLICATE``."""


class SessionRunner(Protocol):
    """Runs work in sessions of the database, on the thread or the event loop that the sessions belong to."""

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a new session. The work commits it."""
        ...

    def run_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        """Run work in the session that has joined a unit's transaction."""
        ...


class InboxRules:
    """The rules of an inbox, for all of its listeners. Thread-safe.

    Args:
        table: The table.
        insertion: When a row is inserted.
        keep: Seconds for which a row is kept.
        resolver: Decides about messages in doubt; None delivers them and logs a warning.
        clock: Returns the seconds since the epoch.

    Attributes:
        table: As given.
        insertion: As given.
        clock: As given.
    """

    def __init__(
        self,
        table: InboxTable,
        insertion: Insertion,
        keep: float,
        resolver: Resolver | None,
        clock: Callable[[], float],
    ) -> None:
        self.table = table
        self.insertion = insertion
        self.clock = clock
        self._keep = keep
        self._resolver = resolver
        self._lock = Lock()
        self._next_prune = 0.0

    def prune(self, session: Session) -> int:
        """Delete the expired rows, and return their number."""
        return self.table.prune(session, self.clock() - self._keep)

    def is_prune_due(self) -> bool:
        """Return True 20 times within the time that a row is kept."""
        now = self.clock()
        with self._lock:
            is_due = now >= self._next_prune
            if is_due:
                self._next_prune = now + self._keep / _PRUNES
        return is_due

    def resolve(self, message: Message, message_id: str | None, *, redelivered: bool) -> InboxOutcome:
        """Return `InboxOutcome.NEW` or ``DUPLICATE`` for a message that is not in the table.

        Args:
            message: The message.
            message_id: Its id; None if it has none.
            redelivered: True if it was delivered before.
        """
        sent = message.timestamp
        is_old = sent is not None and sent.timestamp() < self.clock() - self._keep
        if not redelivered or (message_id is not None and not is_old):
            return InboxOutcome.NEW
        if self._resolver is not None:
            return InboxOutcome.DUPLICATE if self._resolver(message) is InboxOutcome.DUPLICATE else InboxOutcome.NEW
        table = self.table.table
        logger.warning(
            "The message %s is in doubt: it is redelivered, and %s. It is delivered, as there is no resolver.",
            message_id,
            "it has no id" if message_id is None else f"older than the {self._keep:g} s that {table} keeps",
        )
        return InboxOutcome.NEW


class ListenerInbox:
    """The inbox of one listener.

    Args:
        rules: The rules of the inbox.
        runner: Runs the statements.
        endpoint: The name of the listener in the table.
    """

    def __init__(self, rules: InboxRules, runner: SessionRunner, endpoint: str) -> None:
        self._rules = rules
        self._runner = runner
        self._endpoint = _bounded(endpoint)

    def open(self, manager: Any) -> UnitInbox:
        """Return the inbox of one unit.

        Args:
            manager: The unit's transaction manager.
        """
        return UnitInbox(self._rules, self._runner, self._endpoint, manager)

    def is_known(self, message: Message, message_id: str | None) -> bool:
        """Return True if the effects of a message are committed.

        Args:
            message: The message.
            message_id: Its id; None if it has none.

        Raises:
            Exception: The database cannot be reached: an error of SQLAlchemy, or of the driver.
        """
        key = message_key(message, message_id)
        if key is None:
            return False
        return self._runner.run(lambda session: self._rules.table.find(session, self._endpoint, key)) is not None

    def prune_if_due(self) -> None:
        """Delete expired rows, if that is due. Errors are logged, because the next attempt can delete the same rows."""
        if not self._rules.is_prune_due():
            return
        try:
            self._runner.run(self._rules.prune)
        except Exception as error:  # noqa: BLE001  # a driver may raise an error that SQLAlchemy does not wrap
            logger.info("Expired rows of %s are deleted later: %s", self._rules.table.table, error)


class UnitInbox:
    """The inbox of one unit of a listener.

    Args:
        rules: The rules of the inbox.
        runner: Runs the statements.
        endpoint: The name of the listener in the table.
        manager: The unit's transaction manager.
    """

    def __init__(
        self, rules: InboxRules, runner: SessionRunner, endpoint: str, manager: JoinedTransactionManager
    ) -> None:
        self._rules = rules
        self._table = rules.table
        self._runner = runner
        self._endpoint = endpoint
        self._manager = manager
        self._inserts_before = rules.insertion == "before"
        self._is_joined = False
        self._rows: dict[str, tuple[InboxRow, list[StoredSend]]] = {}  # with the messages that its handler sent
        self._shared: list[StoredSend] = []  # messages that the handler sent for several messages, e.g. for a batch
        self._current = self._shared

    def admit(self, message: Message, message_id: str | None, *, redelivered: bool) -> list[StoredSend] | None:
        """Decide whether the handler is called for a message. Insert its row now, or after the handler.

        Args:
            message: The message.
            message_id: Its id; None if it has none.
            redelivered: True if it was delivered before.

        Returns:
            None if the handler has to be called; for a duplicate, the messages to send again.

        Raises:
            TransactionRolledBackError: The inbox cannot be read, for example because the database is unreachable; or
                another process deleted the row at the same time.
        """
        self._join()
        self._current = self._shared
        key = message_key(message, message_id)
        if key is None:
            is_new = self._rules.resolve(message, message_id, redelivered=redelivered) is InboxOutcome.NEW
            self._current = []  # not stored, because without a key the handler is called for each delivery
            return None if is_new else []
        if key in self._rows:
            return []  # the same message in one batch
        row = InboxRow(self._endpoint, key, _bounded(message_id or key))
        found = self._find(row)
        if found is not None:  # a duplicate; only the same message, not another one with its key, repeats its sends
            return decode_sends(found.outgoing) if found.outgoing and found.message_id == row.message_id else []
        sends: list[StoredSend] = []
        self._rows[key] = row, sends
        if self._rules.resolve(message, message_id, redelivered=redelivered) is not InboxOutcome.NEW:
            return []
        self._current = sends
        return None

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: its sends are stored in the row of one new message."""
        self._current = self._shared

    def record(self, message: Message, to: Destination, send: Callable[[Message, Destination], None]) -> None:
        """Store a message that the handler sends, and send it in the stored form.

        Args:
            message: The message.
            to: Its destination.
            send: Adds a message to the unit.

        Raises:
            MessageFormatError: The message cannot be stored.
        """
        stored = StoredSend.of(message, to, uuid.uuid4().hex)
        send(stored.message, to)
        self._current.append(stored)

    def _join(self) -> None:
        if not self._is_joined:
            self._is_joined = True
            self._manager.get().addBeforeCommitHook(self._store)

    def _find(self, row: InboxRow) -> InboxRow | None:
        try:
            return self._run(lambda session: self._recognise(session, row))
        except Exception as error:  # drivers also raise errors that SQLAlchemy does not wrap
            raise TransactionRolledBackError(f"{type(error).__name__}: {error}") from error

    def _recognise(self, session: Session, row: InboxRow) -> InboxRow | None:
        """Return the row of an earlier delivery. For a new message insert its row if due, and return None."""
        is_inserted = self._inserts_before and self._table.insert(session, row, self._rules.clock())
        found = None if is_inserted else self._table.find(session, self._endpoint, row.message_key)
        if found is None and self._inserts_before and not is_inserted:
            raise TransactionRolledBackError(
                f"The row of the message {row.message_id} was deleted while this transaction ran."
            )
        return found

    def _store(self) -> None:
        """Store what the handlers have sent, in the transaction that is about to commit."""
        for _, latest in list(self._rows.values())[-1:]:
            latest.extend(self._shared)
        full = [row._replace(outgoing=encode_sends(sends) if sends else None) for row, sends in self._rows.values()]
        if self._inserts_before:
            full = [row for row in full if row.outgoing]
        if full:
            self._run(lambda session: self._write(session, full))

    def _write(self, session: Session, rows: list[InboxRow]) -> None:
        for row in rows:
            if self._inserts_before:
                self._table.set_outgoing(session, row)
            elif not self._table.insert(session, row, self._rules.clock()):
                raise TransactionRolledBackError(
                    f"The message {row.message_id} was handled by another consumer of {self._endpoint} while this"
                    " transaction ran."
                )

    def _run(self, work: Callable[[Session], T]) -> T:
        return self._runner.run_joined(work, self._manager)


def message_key(message: Message, message_id: str | None) -> str | None:
    """Return the key of a message: its duplicate id, else its message id; None if it has neither."""
    duplicate_id = message.properties.get(DUPLICATE_ID)
    return _bounded(f"duplicate id:{duplicate_id}") if duplicate_id else message_id and _bounded(message_id)


def _bounded(text: str) -> str:
    """Return a text that fits its column. A text that is too long, or has NUL (not storable everywhere), is hashed."""
    if len(text) <= LONGEST and "\0" not in text:
        return text
    return f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"
