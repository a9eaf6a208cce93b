"""The inbox: remembers the messages with committed database work, so that a redelivered one has no second effect.

::

    inbox = SqlInbox(engine)

    @adapter.listener("orders", transaction="required", inbox=inbox)
    def on_order(message, transaction):
        inbox.session(transaction).execute(...)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, get_args

import sqlalchemy as sa
from sqlalchemy.orm import Session, sessionmaker

from jmsjca.arguments import check_instance, check_timeout
from jmsjca.errors import IllegalStateError, InvalidArgumentError
from jmsjca.transactions.inbox_sources import LoopRunner, ThreadRunner, engine_of_file
from jmsjca.transactions.inbox_table import InboxTable
from jmsjca.transactions.joined_transaction import TransactionSource
from jmsjca.transactions.listener_inbox import (
    InboxOutcome,
    InboxRules,
    Insertion,
    ListenerInbox,
    Resolver,
    SessionRunner,
)
from jmsjca.transactions.sql_data_manager import (
    SessionSource,
    asynchronous_sources,
    is_asynchronous_engine,
    joined_session,
    new_session,
    vote_last,
)
from jmsjca.transactions.two_phase import two_phase_session

if TYPE_CHECKING:  # the second module needs greenlet, which SQLAlchemy does not install by itself
    import asyncio

    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

    AsyncSessionSource: TypeAlias = AsyncEngine | async_sessionmaker[AsyncSession]

__all__ = ["InboxOutcome", "SqlInbox"]

_WEEK = 7 * 86_400.0


class SqlInbox:
    """A table of messages with committed effects. Each row is inserted in the handler's own database transaction.

    Args:
        source: The engine of the application's database, or a factory of its sessions. An `AsyncEngine` or an
            `async_sessionmaker` is for asynchronous handlers. The URL of an embedded broker,
            ``embedded:///folder/file.db``, has the table in the broker's file.
        metadata: The application's metadata, which the table is added to, so that the application creates it; None for
            a table that the inbox creates.
        name: Name of the table.
        schema: Schema of the table; None for that of the metadata.
        endpoint: The name of the listener in the table; None for its destination or durable subscription. Listeners
            with different names do not see each other's rows.
        insert: "before" inserts the row before the handler is called: another transaction with the same message waits
            for this one. "after" inserts it when the handler has returned: of two such transactions the second one is
            rolled back. None means "before"; in the file of an embedded broker, where a row that is not committed
            stops the broker, it means "after", and "before" is refused.
        two_phase: True to commit in two phases, which needs an engine of PostgreSQL: see `two_phase_session`.
        keep: Seconds for which a row is kept. Expired rows are deleted from time to time.
        resolver: Decides about messages that are in doubt; None delivers them, with a warning.
        clock: Returns the seconds since the epoch.

    Attributes:
        source: As given; for an embedded broker the engine of its file.
        table: The table.
        endpoint: As given.

    Raises:
        ArgumentTypeError: The source is another object; or, with ``two_phase``, another one than an engine.
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
        keep: float = _WEEK,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.source = _checked_source(source, two_phase=two_phase)
        check_timeout("keep", keep)
        if not keep:
            raise InvalidArgumentError("keep=0 would forget every message at once. Give the seconds to keep a row.")
        self.endpoint = endpoint
        self._two_phase = two_phase
        self._creates_table = metadata is None
        self._table = InboxTable(name, metadata or sa.MetaData(), schema)
        self.table = self._table.table
        self._rules = InboxRules(self._table, _insertion(insert, source), keep, resolver, clock)

    @property
    def is_asynchronous(self) -> bool:
        """True if the source is asynchronous, so that only asynchronous handlers can use it."""
        return not isinstance(self.source, sa.Engine | sessionmaker)

    def session(self, transaction: TransactionSource) -> Session:
        """Return the session of a unit's transaction: the one in which the inbox inserts its row.

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
        vote_last(found, transaction)  # the row says that the work of the other databases is done, too
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
        """Create the table, if the inbox was given no metadata and the table does not exist.

        With an asynchronous source the first message does it, as there may be no event loop earlier.

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
            IllegalStateError: The source is asynchronous: its listeners alone delete expired rows.
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


def _checked_source(
    source: SessionSource | AsyncSessionSource | str, *, two_phase: bool
) -> SessionSource | AsyncSessionSource:
    if isinstance(source, str):
        return engine_of_file(source)
    asynchronous = asynchronous_sources()
    kinds = (sa.Engine, *asynchronous[:1]) if two_phase else (sa.Engine, sessionmaker, *asynchronous)
    check_instance("source", source, kinds, "an Engine, or a factory of sessions, of SQLAlchemy")
    return source


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
