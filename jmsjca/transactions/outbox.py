"""The transactional outbox: stores messages in the application's database transaction, to be sent after its commit.

::

    outbox = Outbox(metadata)
    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.add(session, "orders", {"id": order.id}, key=order.customer)
    Relay(outbox, factory, engine).run()
"""

import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeGuard, overload
from zlib import crc32

from jmsjca.arguments import TEXT_OR_NONE, Constraint, wrong_argument
from jmsjca.destinations import Destination, Queue, check_destination
from jmsjca.errors import (
    ConfigurationError,
    InvalidArgumentError,
    MessageFormatError,
    ProviderNotInstalledError,
    excerpt,
)
from jmsjca.log_records import get_logger
from jmsjca.messages.converters import Converters
from jmsjca.messages.message import DURATION, PRIORITY, DeliveryMode, delivery_mode_of
from jmsjca.messages.properties import DUPLICATE_ID
from jmsjca.transactions.stored_message import encode_message

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.sql.dml import Insert

__all__ = ["PARTITIONS", "NotificationListener", "Outbox", "OutboxStatistics", "StopRequest", "notifying"]

logger = get_logger("jmsjca.transactions")

try:
    import sqlalchemy as sa
    from sqlalchemy import event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.orm import Session
except ImportError as error:
    raise ProviderNotInstalledError('The outbox needs SQLAlchemy: pip install "jmsjca[transactions]".') from error

PARTITIONS = 16
"""Parts of the table that relays lease. All messages with one key are in one part."""

_LONGEST_KEY, _LONGEST_NAME = 255, 1024  # characters
_OPTIONS: dict[str, Callable[[str, object], object]] = {
    "delivery_mode": delivery_mode_of,
    "priority": PRIORITY,
    "time_to_live": DURATION,
    "delivery_delay": DURATION,
}


@dataclass(frozen=True)
class OutboxStatistics:
    """The state of an outbox.

    Attributes:
        depth: The number of messages that are not sent yet.
        oldest: Seconds since the oldest waiting message was added; None if the table is empty.
        failing: The number of messages that the broker has refused at least once.
        lag: Seconds from the addition of the last sent message until the broker confirmed it; None before the first
            send, and in statistics of an `Outbox` instead of a `Relay`.
        held: The number of due messages that the last `Relay.drain` could not send because other relays have leased
            their parts of the table; None before the first drain, and in statistics of an `Outbox`.
    """

    depth: int
    oldest: float | None
    failing: int
    lag: float | None = None
    held: int | None = None


class Outbox:
    """A table of messages to send. Add a message in any transaction; a `Relay` sends it after the commit.

    The application creates the tables with its own tables: by ``metadata.create_all(engine)`` or a migration.

    Args:
        metadata: The application's metadata. The tables ``jmsjca_outbox`` and ``jmsjca_outbox_lease`` are added to it.
        name: Name of the table, and prefix of the name of the lease table.
        schema: Schema of the tables; None for the schema of the metadata.
        engine: Default engine of the relay; None for the engine that creates the table, or the engine of the first
            session in which a message is added.

    Attributes:
        engine: The engine of the relay; None while it is unknown.
        table: The table of the messages.
        leases: The table of the relays' leases.

    Raises:
        ProviderNotInstalledError: SQLAlchemy is not installed (when the module is imported).
    """

    def __init__(
        self,
        metadata: sa.MetaData,
        *,
        name: str = "jmsjca_outbox",
        schema: str | None = None,
        engine: sa.Engine | None = None,
    ) -> None:
        Constraint[sa.MetaData]("a sqlalchemy.MetaData", sa.MetaData)("metadata", metadata)
        self.engine = engine
        self.table = sa.Table(
            name,
            metadata,
            # SQLite auto-increments only a column of the type INTEGER.
            sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
            sa.Column("duplicate_id", sa.String(_LONGEST_KEY), nullable=False, unique=True),
            sa.Column("part", sa.SmallInteger, nullable=False),
            sa.Column("ordering_key", sa.String(_LONGEST_KEY)),
            sa.Column("kind", sa.String(8), nullable=False),
            sa.Column("destination", sa.String(_LONGEST_NAME), nullable=False),
            sa.Column("headers", sa.Text, nullable=False),
            sa.Column("body", sa.LargeBinary),
            sa.Column("options", sa.Text, nullable=False),
            sa.Column("added", sa.Float, nullable=False),
            sa.Column("attempts", sa.Integer, nullable=False, default=0),
            sa.Column("retry_at", sa.Float, nullable=False, default=0.0),
            sa.Column("error", sa.Text),
            sa.Index(f"{name}_order", "part", "id"),
            sa.Index(f"{name}_key", "ordering_key", "id"),
            schema=schema,
        )
        self.leases = sa.Table(
            f"{name}_lease",
            metadata,
            sa.Column("name", sa.String(100), primary_key=True),
            sa.Column("owner", sa.String(64), nullable=False),
            sa.Column("token", sa.BigInteger, nullable=False),
            sa.Column("expires", sa.Float, nullable=False),
            schema=schema,
        )
        event.listen(self.table, "after_create", self._on_create)

    @overload
    def add(  # noqa: D418
        self,
        session: "AsyncSession | AsyncConnection",
        destination: str | Destination,
        message: object,
        *,
        key: str | None = None,
        delivery_mode: DeliveryMode | str = ...,
        priority: int = 4,
        time_to_live: float | timedelta = 0.0,
        delivery_delay: float | timedelta = 0.0,
    ) -> Awaitable[str]:
        """Add a message when awaited, and return its id."""

    @overload
    def add(  # noqa: D418
        self,
        session: "Session | sa.Connection",
        destination: str | Destination,
        message: object,
        *,
        key: str | None = None,
        delivery_mode: DeliveryMode | str = ...,
        priority: int = 4,
        time_to_live: float | timedelta = 0.0,
        delivery_delay: float | timedelta = 0.0,
    ) -> str:
        """Add a message, and return its id."""

    def add(
        self,
        session: "Session | sa.Connection | AsyncSession | AsyncConnection",
        destination: str | Destination,
        message: object,
        *,
        key: str | None = None,
        delivery_mode: DeliveryMode | str = DeliveryMode.PERSISTENT,
        priority: int = 4,
        time_to_live: float | timedelta = 0.0,
        delivery_delay: float | timedelta = 0.0,
    ) -> str | Awaitable[str]:
        """Add a message to the transaction of a session: it is sent if, and only if, the transaction commits.

        Args:
            session: A `Session` or `Connection` of SQLAlchemy, or an asynchronous one; then await the call.
            destination: The name of a queue, or a `Queue` or a `Topic`.
            message: A message, or a body as for ``adapter.send``. Its content is copied, so the same message may be
                added several times, unless it has its own duplicate id, which must be unique in the table.
            key: Messages with the same key are sent in the order in which they were added; None for no order.
            delivery_mode: Whether the message survives a restart of the broker, a `DeliveryMode` or its name.
            priority: 0 to 9; 4 is normal.
            time_to_live: Seconds from the send until the message expires; 0 means never.
            delivery_delay: Seconds from the send until the message may be delivered.

        Returns:
            The duplicate id: the message's own property ``_AMQ_DUPL_ID``, or a new one.

        Raises:
            InvalidDestinationError: The destination is invalid or temporary.
            InvalidArgumentError: The key is not a text of 1 to 255 characters; the duplicate id or the name of the
                destination is too long; one of them contains NUL; or no broker accepts the value of an option.
            MessageFormatError: The message cannot be stored.
        """
        options = _options_of(
            {
                "delivery_mode": delivery_mode,
                "priority": priority,
                "time_to_live": time_to_live,
                "delivery_delay": delivery_delay,
            }
        )
        duplicate_id, statement = self._insert(destination, message, key, options)
        if _is_asynchronous(session):
            return _execute_later(session, notifying(statement, self._dialect_of(session)), duplicate_id)
        if not isinstance(session, Session | sa.Connection):
            raise wrong_argument("session", session, "a session or a connection of SQLAlchemy")
        session.execute(notifying(statement, self._dialect_of(session)))
        self._learn_engine(session.get_bind(clause=self.table) if isinstance(session, Session) else session)
        return duplicate_id

    def _dialect_of(self, session: "Session | sa.Connection | AsyncSession | AsyncConnection") -> sa.Dialect:
        get_bind: Any = getattr(session, "get_bind", None)  # a connection has none
        bind: Any = session if get_bind is None else get_bind(clause=self.table)
        dialect: sa.Dialect = bind.dialect
        return dialect

    def get_stats(self, connection: "sa.Connection | Session", now: float | None = None) -> OutboxStatistics:
        """Return the number of waiting messages and the age of the oldest one.

        Args:
            connection: A connection or session of SQLAlchemy.
            now: Seconds since the epoch; None for the current time.
        """
        columns = self.table.c
        depth, oldest, failing = connection.execute(
            sa.select(sa.func.count(), sa.func.min(columns.added), sa.func.count().filter(columns.attempts > 0))
        ).one()
        now = time.time() if now is None else now
        return OutboxStatistics(depth, None if oldest is None else max(now - oldest, 0.0), failing)

    def _on_create(self, _: object, connection: "sa.Connection", **__: object) -> None:
        self._learn_engine(connection)

    def _learn_engine(self, bind: "sa.Engine | sa.Connection") -> None:
        """Remember the engine of the application. A relay cannot use an asynchronous engine."""
        if self.engine is None and not bind.dialect.is_async:
            self.engine = bind.engine

    def _insert(
        self, destination: str | Destination, message: object, key: str | None, options: dict[str, Any]
    ) -> "tuple[str, Insert]":
        to = Queue(destination) if isinstance(destination, str) else destination
        check_destination(to)
        if to.temporary:
            raise InvalidArgumentError(f"{to} is temporary and can be deleted before the relay sends: name a queue.")
        _check_key(key)
        content = Converters.default().to_message(message)
        headers, body = encode_message(content)
        duplicate_id = str(content.properties.get(DUPLICATE_ID) or uuid.uuid4().hex)
        _check_fits(DUPLICATE_ID, duplicate_id, _LONGEST_KEY)
        _check_fits(f"The name of the {to.kind}", to.name, _LONGEST_NAME)
        row = {
            "duplicate_id": duplicate_id,
            "part": crc32((key or duplicate_id).encode()) % PARTITIONS,
            "ordering_key": key,
            "kind": to.kind,
            "destination": to.name,
            "headers": headers,
            "body": body,
            "options": json.dumps(options),
            "added": time.time(),
        }
        return duplicate_id, sa.insert(self.table).values(row)


def _is_asynchronous(session: object) -> "TypeGuard[AsyncSession | AsyncConnection]":
    """Return True for an asynchronous session or connection, without importing their module: it needs greenlet."""
    module = sys.modules.get("sqlalchemy.ext.asyncio")
    return module is not None and isinstance(session, (module.AsyncSession, module.AsyncConnection))


def _execute_later(
    session: "AsyncSession | AsyncConnection", statement: sa.Executable, duplicate_id: str
) -> Coroutine[Any, Any, str]:
    async def execute() -> str:
        """Execute the statement, and return the id of the message."""
        await session.execute(statement)
        return duplicate_id

    return execute()


def _check_key(key: object) -> None:
    TEXT_OR_NONE("key", key)
    if not isinstance(key, str):
        return
    if not 0 < len(key) <= _LONGEST_KEY:
        raise InvalidArgumentError(f"key has {len(key)} characters; it may have 1 to {_LONGEST_KEY}.")
    _check_fits("key", key, _LONGEST_KEY)
    try:
        key.encode()
    except UnicodeEncodeError:
        raise wrong_argument("key", key, "Unicode text, without surrogates", InvalidArgumentError) from None


def _check_fits(name: str, text: str, longest: int) -> None:
    """Raise an error for a text that some database cannot store.

    Raises:
        InvalidArgumentError: The text is too long, or contains NUL, which PostgreSQL does not store.
    """
    if len(text) > longest:
        raise InvalidArgumentError(f"{name} has {len(text)} characters; at most {longest} fit.")
    if "\0" in text:
        raise InvalidArgumentError(f"{name} {excerpt(text)!r} has NUL (U+0000), which no table can hold: leave it out.")


def _options_of(options: dict[str, object]) -> dict[str, Any]:
    """Return the options of a send in the form that a relay reads.

    Raises:
        InvalidArgumentError: An option has a value that the relay could not send.
    """
    try:
        return {name: _OPTIONS[name](name, value) for name, value in options.items()}
    except MessageFormatError as error:
        raise InvalidArgumentError(str(error)) from None


def engine_of(outbox: Outbox, engine: sa.Engine | None) -> sa.Engine:
    """Return the engine of a relay.

    Args:
        outbox: The outbox.
        engine: The engine that the relay was given; None for the outbox's.

    Raises:
        ConfigurationError: Neither has an engine.
    """
    found = engine or outbox.engine
    if found is None:
        raise ConfigurationError(
            "The relay needs an engine: Relay(outbox, factory, engine). The default is the engine that created the "
            "outbox's table, or that added a message in this process; there is none yet."
        )
    return found


_CHANNEL = "jmsjca_outbox"
_STOP_INTERVAL = 0.5  # seconds between checks whether the relay is stopped


def notifying(statement: sa.Insert, dialect: sa.Dialect) -> sa.Executable:
    """Return a statement that, on PostgreSQL, notifies the relays when its transaction commits; else the statement."""
    if dialect.name != "postgresql":
        return statement
    return statement.returning(sa.func.pg_notify(_CHANNEL, ""))


class StopRequest:
    """A request to stop that a signal handler may make at any moment.

    Do not use an `Event` for this: a signal handler that sets it can deadlock on the lock that the interrupted thread
    holds while it begins or ends a wait. `SimpleQueue.put` needs no lock.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Make the request."""
        self._requests.put(None)

    def is_set(self) -> bool:
        """Return True after a request."""
        return not self._requests.empty()

    def clear(self) -> None:
        """Withdraw all requests."""
        with suppress(Empty):
            while True:
                self._requests.get_nowait()

    def wait(self, timeout: float) -> None:
        """Wait for a request, and keep it. For one thread only.

        Args:
            timeout: Seconds to wait at most.
        """
        with suppress(Empty):
            self._requests.get(timeout=timeout)
            self._requests.put(None)


class NotificationListener:
    """Waits for notifications on its own connection. Without the driver psycopg it only waits.

    Args:
        engine: The engine of the outbox.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._can_listen = engine.dialect.name == "postgresql" and engine.dialect.driver == "psycopg"
        self._connection: Any = None

    def listen(self) -> None:
        """Begin to listen, if possible. No effect once listening. Call it before each look at the table."""
        if self._connection is not None or not self._can_listen:
            return
        try:
            pooled = self._engine.raw_connection()
            pooled.detach()
            self._connection = pooled.dbapi_connection
            self._connection.autocommit = True
            self._connection.execute(f"LISTEN {_CHANNEL}")
        except (SQLAlchemyError, self._errors()) as error:
            self._give_up(error)

    def wait(self, timeout: float, stopping: StopRequest) -> None:
        """Wait for a notification.

        Args:
            timeout: Seconds to wait.
            stopping: Ends the wait.
        """
        if self._connection is None:
            stopping.wait(timeout)
            return
        deadline = time.monotonic() + timeout
        try:
            while not stopping.is_set() and (left := deadline - time.monotonic()) > 0:
                if list(self._connection.notifies(timeout=min(left, _STOP_INTERVAL), stop_after=1)):
                    return
        except self._errors() as error:
            self._give_up(error)

    def close(self) -> None:
        """End the connection. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._errors()):
                connection.close()

    def _errors(self) -> type[Exception]:
        return self._engine.dialect.loaded_dbapi.Error

    def _give_up(self, error: Exception) -> None:
        logger.info("A relay polls its table, as it cannot listen for notifications now: %s", error)
        self.close()
