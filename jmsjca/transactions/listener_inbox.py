"""The inbox of one listener, and of one of its units."""

import uuid
from collections.abc import Callable
from enum import Enum
from hashlib import sha256
from threading import Lock
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from sqlalchemy.orm import Session

from jmsjca.destinations import Destination
from jmsjca.errors import TransactionRolledBackError
from jmsjca.log_records import get_logger
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.transactions.inbox_table import LONGEST, InboxRow, InboxTable
from jmsjca.transactions.joined_transaction import JoinedTransactionManager
from jmsjca.transactions.stored_message import StoredSend, decode_sends, encode_sends

__all__ = ["InboxOutcome", "InboxRules", "Insertion", "ListenerInbox", "Resolver", "SessionRunner", "message_key"]

logger = get_logger("jmsjca.transactions")

_PRUNES = 20  # how often expired rows are deleted during the time that a row is kept

Insertion: TypeAlias = Literal["before", "after"]
"""When the row of a message is inserted: before the handler is called, or after it has returned."""

T = TypeVar("T")


class InboxOutcome(Enum):
    """The state of a message in the inbox."""

    NEW = "new"  #: its effects are not committed: the handler is called
    DUPLICATE = "duplicate"  #: its effects are committed: the handler is not called
    IN_DOUBT = "in doubt"  #: it is redelivered, and older than the history or without an id: the resolver decides


Resolver: TypeAlias = Callable[[Message], InboxOutcome]
"""Decides about a message that is in doubt: returns `InboxOutcome.NEW` or ``DUPLICATE``."""


class SessionRunner(Protocol):
    """Runs work in sessions of the database, on the thread or on the event loop where they belong."""

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a session of its own, which the work commits."""
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
        resolver: Decides about messages that are in doubt; None delivers them, with a warning.
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
        """Return True from time to time."""
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

    def open(self, manager: Any) -> "UnitInbox":
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
        """Delete expired rows from time to time. Errors are logged: the next time will do."""
        if not self._rules.is_prune_due():
            return
        try:
            self._runner.run(self._rules.prune)
        except Exception as error:  # noqa: BLE001  # a driver may raise an error that is none of SQLAlchemy
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
        self._rows: dict[str, tuple[InboxRow, list[StoredSend]]] = {}  # with what was sent while it was handled
        self._shared: list[StoredSend] = []  # what calls for several messages have sent, such as for a whole batch
        self._current = self._shared

    def admit(self, message: Message, message_id: str | None, *, redelivered: bool) -> list[StoredSend] | None:
        """Recognise a message before the handler sees it, and insert its row, or have it inserted after the handler.

        Args:
            message: The message.
            message_id: Its id; None if it has none.
            redelivered: True if it was delivered before.

        Returns:
            None if the handler has to be called; for a duplicate, the messages to send again.

        Raises:
            TransactionRolledBackError: The inbox cannot be read, such as while the database is away, or its row was
                deleted meanwhile.
        """
        self._join()
        self._current = self._shared
        key = message_key(message, message_id)
        if key is None:
            is_new = self._rules.resolve(message, message_id, redelivered=redelivered) is InboxOutcome.NEW
            self._current = []  # not stored: its handler is called again
            return None if is_new else []
        if key in self._rows:
            return []  # the same message in one batch
        row = InboxRow(self._endpoint, key, _bounded(message_id or key))
        found = self._find(row)
        if found is not None:  # another message of the same key settles by itself
            return decode_sends(found.outgoing) if found.outgoing and found.message_id == row.message_id else []
        sends: list[StoredSend] = []
        self._rows[key] = row, sends
        if self._rules.resolve(message, message_id, redelivered=redelivered) is not InboxOutcome.NEW:
            return []
        self._current = sends
        return None

    def begin_shared_call(self) -> None:
        """Begin a call of the handler for several messages: what it sends is stored with one that is new."""
        self._current = self._shared

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
        self._current.append(stored)

    def _join(self) -> None:
        if not self._is_joined:
            self._is_joined = True
            self._manager.get().addBeforeCommitHook(self._store)

    def _find(self, row: InboxRow) -> InboxRow | None:
        try:
            return self._run(lambda session: self._recognise(session, row))
        except Exception as error:  # drivers have errors of their own
            raise TransactionRolledBackError(f"{type(error).__name__}: {error}") from error

    def _recognise(self, session: Session, row: InboxRow) -> InboxRow | None:
        """Return the row of an earlier delivery; None for a new message, after inserting its row if it is time."""
        is_inserted = self._inserts_before and self._table.insert(session, row, self._rules.clock())
        found = None if is_inserted else self._table.find(session, self._endpoint, row.message_key)
        if found is None and self._inserts_before and not is_inserted:
            raise TransactionRolledBackError(f"The row of the message {row.message_id} was deleted meanwhile.")
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
                    f"The message {row.message_id} was handled by another consumer of {self._endpoint} meanwhile."
                )

    def _run(self, work: Callable[[Session], T]) -> T:
        return self._runner.run_joined(work, self._manager)


def message_key(message: Message, message_id: str | None) -> str | None:
    """Return what identifies a message: its duplicate id, else its id; None if it has neither."""
    duplicate_id = message.properties.get(DUPLICATE_ID)
    return _bounded(f"duplicate id:{duplicate_id}") if duplicate_id else message_id and _bounded(message_id)


def _bounded(text: str) -> str:
    """Return a text that fits into its column: a digest of one that is too long, or has NUL, which some refuse."""
    if len(text) <= LONGEST and "\0" not in text:
        return text
    return f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"
