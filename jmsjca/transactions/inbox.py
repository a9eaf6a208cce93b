"""The inbox: remembers the messages with committed database work, so that a redelivered one has no second effect.

::

    inbox = SqlInbox(engine)

    @adapter.listener("orders", transaction="required", inbox=inbox)
    def on_order(message, transaction):
        inbox.session(transaction).execute(...)
"""

import logging
import time
import uuid
from collections.abc import Callable
from enum import Enum
from hashlib import sha256
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from jmsjca.arguments import check_instance, check_timeout
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidArgumentError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.transactions.joined_transaction import JoinedTransactionManager, TransactionSource
from jmsjca.transactions.sql_data_manager import SessionSource, joined_session
from jmsjca.transactions.stored_message import StoredSend, decode_sends, encode_sends
from jmsjca.transactions.two_phase import two_phase_session

__all__ = ["InboxOutcome", "SqlInbox", "UnitInbox"]

logger = logging.getLogger("jmsjca.transactions")

_LONGEST = 255
_WEEK = 7 * 86_400.0
_PRUNES = 20  # how often expired rows are deleted during the time that a row is kept
_INSERT = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class InboxOutcome(Enum):
    """The state of a message in the inbox."""

    NEW = "new"  #: its effects are not committed: the handler is called
    DUPLICATE = "duplicate"  #: its effects are committed: the handler is not called
    IN_DOUBT = "in doubt"  #: it is redelivered, and older than the history or without an id: the resolver decides


Resolver = Callable[[Message], InboxOutcome]
"""Decides about a message that is in doubt: returns `InboxOutcome.NEW` or ``DUPLICATE``."""


class SqlInbox:
    """A table of messages with committed effects. Each row is inserted in the handler's own database transaction.

    Args:
        source: The engine of the application's database, or a factory of its sessions.
        metadata: The application's metadata, which the table is added to, so that the application creates it; None for
            a table that the inbox creates.
        name: Name of the table.
        schema: Schema of the table; None for that of the metadata.
        endpoint: The name of the listener in the table; None for its destination or durable subscription. Listeners
            with different names do not see each other's rows.
        two_phase: True to commit in two phases, which needs an engine of PostgreSQL: see `two_phase_session`.
        keep: Seconds for which a row is kept. Expired rows are deleted from time to time.
        resolver: Decides about messages that are in doubt; None delivers them, with a warning.
        clock: Returns the seconds since the epoch.

    Attributes:
        source: As given.
        table: The table.
        endpoint: As given.

    Raises:
        ArgumentTypeError: The source is neither an engine nor a `sessionmaker`; or no engine, with ``two_phase``.
        InvalidArgumentError: ``keep`` is not above 0.
    """

    def __init__(
        self,
        source: SessionSource,
        *,
        metadata: sa.MetaData | None = None,
        name: str = "jmsjca_inbox",
        schema: str | None = None,
        endpoint: str | None = None,
        two_phase: bool = False,
        keep: float = _WEEK,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        kinds = sa.Engine if two_phase else (sa.Engine, sessionmaker)
        check_instance("source", source, kinds, "a synchronous Engine or a sessionmaker of SQLAlchemy")
        check_timeout("keep", keep)
        if not keep:
            raise InvalidArgumentError("keep=0 would forget every message at once. Give the seconds to keep a row.")
        self.source = source
        self.endpoint = endpoint
        self._two_phase = two_phase
        self._creates_table = metadata is None
        self._keep = keep
        self._resolver = resolver
        self._clock = clock
        self._lock = Lock()
        self._next_prune = 0.0
        self.table = sa.Table(
            name,
            metadata or sa.MetaData(),
            sa.Column("endpoint", sa.String(_LONGEST), primary_key=True),
            sa.Column("message_key", sa.String(_LONGEST), primary_key=True),
            sa.Column("message_id", sa.String(_LONGEST), nullable=False),
            sa.Column("outgoing", sa.Text),
            sa.Column("processed", sa.Float, nullable=False, index=True),
            schema=schema,
        )

    def session(self, transaction: TransactionSource) -> Session:
        """Return the session of a unit's transaction: the one in which the inbox has inserted its row.

        Args:
            transaction: The parameter ``transaction`` of the handler.
        """
        if self._two_phase and isinstance(self.source, sa.Engine):
            return two_phase_session(self.source, transaction)
        return joined_session(self.source, transaction)

    def prepare(self) -> None:
        """Create the table, if the inbox was given no metadata and the table does not exist.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        if self._creates_table:
            with self._session() as session:
                self.table.create(session.connection(), checkfirst=True)
                session.commit()

    def open(self, endpoint: str, manager: object) -> "UnitInbox":
        """Return the inbox of one unit.

        Args:
            endpoint: The name of the listener, if the inbox has none.
            manager: The unit's transaction manager.
        """
        return UnitInbox(self, _bounded(self.endpoint or endpoint), manager)

    def is_known(self, endpoint: str, message: Message, message_id: str | None) -> bool:
        """Return True if the effects of a message are committed.

        Args:
            endpoint: As for `open`.
            message: The message.
            message_id: Its id; None if it has none.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        key = message_key(message, message_id)
        if key is None:
            return False
        columns = self.table.c
        known = sa.select(sa.literal(1)).where(
            columns.endpoint == _bounded(self.endpoint or endpoint), columns.message_key == key
        )
        with self._session() as session:
            return session.execute(known).first() is not None

    def prune(self) -> int:
        """Delete the expired rows of all listeners, and return their number.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        with self._session() as session:
            expired = sa.delete(self.table).where(self.table.c.processed < self._clock() - self._keep)
            deleted: Any = session.execute(expired)
            session.commit()
        return int(deleted.rowcount)

    def prune_if_due(self) -> None:
        """Delete expired rows from time to time. Errors are logged: the next time will do."""
        now = self._clock()
        with self._lock:
            if now < self._next_prune:
                return
            self._next_prune = now + self._keep / _PRUNES
        try:
            self.prune()
        except SQLAlchemyError as error:
            logger.info("Expired rows of %s are deleted later: %s", self.table, error)

    def resolve(self, message: Message, message_id: str | None, *, redelivered: bool) -> InboxOutcome:
        """Return `InboxOutcome.NEW` or ``DUPLICATE`` for a message that is not in the table.

        Args:
            message: The message.
            message_id: Its id; None if it has none.
            redelivered: True if it was delivered before.
        """
        sent = message.timestamp
        is_old = sent is not None and sent.timestamp() < self._clock() - self._keep
        if not redelivered or (message_id is not None and not is_old):
            return InboxOutcome.NEW
        if self._resolver is not None:
            return InboxOutcome.DUPLICATE if self._resolver(message) is InboxOutcome.DUPLICATE else InboxOutcome.NEW
        logger.warning(
            "The message %s is in doubt: it is redelivered, and %s. It is delivered, as there is no resolver.",
            message_id,
            "it has no id" if message_id is None else f"older than the {self._keep:g} s that {self.table} keeps",
        )
        return InboxOutcome.NEW

    def insert(self, session: Session, endpoint: str, key: str, message_id: str) -> bool:
        """Insert the row of a message; False if it is there already. Waits for a transaction that is inserting it."""
        row = {"endpoint": endpoint, "message_key": key, "message_id": message_id, "processed": self._clock()}
        insert: Any = _INSERT.get(session.get_bind().dialect.name)
        if insert is not None:
            statement = insert(self.table).values(row).on_conflict_do_nothing()
            # Without this option the number of rows of an INSERT is -1 on PostgreSQL.
            inserted: Any = session.execute(statement, execution_options={"preserve_rowcount": True})
            return bool(inserted.rowcount == 1)
        try:
            with session.begin_nested():
                session.execute(sa.insert(self.table).values(row))
        except IntegrityError:
            return False
        return True

    def _session(self) -> Session:
        return Session(self.source) if isinstance(self.source, sa.Engine) else self.source()


class UnitInbox:
    """The inbox of one unit of a listener.

    Args:
        inbox: The inbox.
        endpoint: The name of the listener in the table.
        manager: The unit's transaction manager.
    """

    def __init__(self, inbox: SqlInbox, endpoint: str, manager: Any) -> None:
        self._inbox = inbox
        self._endpoint = endpoint
        self._manager: JoinedTransactionManager = manager
        self._session: Session | None = None
        self._sends: dict[str, list[StoredSend]] = {}  # by the key of the message during whose handling they were sent
        self._current: list[StoredSend] | None = None

    def admit(self, message: Message, message_id: str | None, *, redelivered: bool) -> list[StoredSend] | None:
        """Insert the row of a message before the handler sees it.

        Args:
            message: The message.
            message_id: Its id; None if it has none.
            redelivered: True if it was delivered before.

        Returns:
            None if the handler has to be called; for a duplicate, the messages to send again.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        if self._session is None:
            self._session = self._inbox.session(self._manager)
            self._manager.get().addBeforeCommitHook(self._store_sends)
        self._current = None
        key = message_key(message, message_id)
        if key is None:
            is_new = self._inbox.resolve(message, message_id, redelivered=redelivered) is InboxOutcome.NEW
            return None if is_new else []
        if not self._inbox.insert(self._session, self._endpoint, key, _bounded(message_id or key)):
            return self._stored(key, _bounded(message_id or key))
        if self._inbox.resolve(message, message_id, redelivered=redelivered) is not InboxOutcome.NEW:
            return []
        self._current = self._sends.setdefault(key, [])
        return None

    def record(self, message: Message, to: Destination, send: Callable[[Message, Destination], None]) -> None:
        """Store a message of the handler, and send it as it is stored.

        Args:
            message: The message.
            to: Its destination.
            send: Adds a message to the unit.

        Raises:
            MessageFormatError: The message cannot be stored.
        """
        stored = StoredSend.of(message, to, uuid.uuid4().hex)
        send(stored.message, to)
        if self._current is not None:
            self._current.append(stored)

    def _stored(self, key: str, message_id: str) -> list[StoredSend]:
        """Return what has to be sent again: nothing for another message of the same key, which settles by itself."""
        columns, session = self._inbox.table.c, self._session
        assert session is not None  # noqa: S101  # set by the caller
        row = session.execute(
            sa.select(columns.message_id, columns.outgoing).where(
                columns.endpoint == self._endpoint, columns.message_key == key
            )
        ).one()
        return decode_sends(row.outgoing) if row.outgoing and row.message_id == message_id else []

    def _store_sends(self) -> None:
        columns, session = self._inbox.table.c, self._session
        assert session is not None  # noqa: S101  # the hook is added after it
        for key, sends in self._sends.items():
            if sends:
                session.execute(
                    sa.update(self._inbox.table)
                    .where(columns.endpoint == self._endpoint, columns.message_key == key)
                    .values(outgoing=encode_sends(sends))
                )


def message_key(message: Message, message_id: str | None) -> str | None:
    """Return what identifies a message: its duplicate id, else its id; None if it has neither."""
    duplicate_id = message.properties.get(DUPLICATE_ID)
    return _bounded(f"duplicate id:{duplicate_id}") if duplicate_id else message_id and _bounded(message_id)


def _bounded(text: str) -> str:
    """Return a text that fits into its column: a digest of one that is too long."""
    return text if len(text) <= _LONGEST else f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"
