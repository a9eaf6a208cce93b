"""The relay of an outbox: sends the committed messages in order, and leases the parts of the table that it reads."""

import json
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from jmsjca.arguments import SECONDS
from jmsjca.destinations import Destination, destination
from jmsjca.errors import ConnectionLostError, InvalidArgumentError, JMSError, TransactionInDoubtError
from jmsjca.log_records import get_logger
from jmsjca.messages.message import DeliveryMode
from jmsjca.messages.properties import DUPLICATE_ID
from jmsjca.redelivery.encounter import encodable, text_of
from jmsjca.transactions.outbox import (
    PARTITIONS,
    NotificationListener,
    Outbox,
    OutboxStatistics,
    StopRequest,
    engine_of,
)
from jmsjca.transactions.stored_message import decode_message

__all__ = ["Leases", "Relay", "RelayFactory"]

logger = get_logger("jmsjca.transactions")

_LONGEST_PAUSE = 300.0  # seconds until a refused message is sent again
_SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds between two attempts while the broker or the database is away
_LOG_INTERVAL = 60.0  # seconds between two records of an outage that lasts
_LONGEST_ERROR = 1000
_LARGEST_BATCH = 1000  # databases limit the number of parameters of a statement


class RelayFactory(Protocol):
    """Opens the connections of a relay. `jmsjca.ConnectionFactory` implements it."""

    def create_connection(self) -> Any:
        """Return a new connection."""
        ...


class _Outage:
    """Consecutive failures of a relay: computes the wait after each, and decides which of them are logged.

    Args:
        table: The outbox's table.
        poll_interval: Seconds to wait after the first failure; the wait doubles with each failure.
    """

    def __init__(self, table: sa.Table, poll_interval: float) -> None:
        self._table = table
        self._poll_interval = poll_interval
        self._failures = self._suppressed = 0
        self._silent = 0.0

    def failed(self, error: Exception) -> float:
        """Log a failure, unless too many were logged; return the seconds to wait."""
        doubled = max(self._poll_interval, _SHORTEST_WAIT) * 2.0 ** min(self._failures, 20)
        wait = max(self._poll_interval, min(doubled, _LONGEST_WAIT))
        self._failures += 1
        self._silent += wait
        if wait < _LONGEST_WAIT or self._silent > _LOG_INTERVAL:
            before = f" ({self._suppressed} failures before were not logged)" if self._suppressed else ""
            logger.warning("The relay of %s tries again in %g s%s: %s", self._table, wait, before, error)
            self._suppressed, self._silent = 0, 0.0
        else:
            self._suppressed += 1
        return wait * secrets.SystemRandom().uniform(0.8, 1.2)  # so that not all relays retry at once

    def ended(self) -> None:
        """Log that the relay works again, if it had failed."""
        if self._failures:
            logger.info("The relay of %s works again, after %d failures.", self._table, self._failures)
        self._failures = self._suppressed = 0
        self._silent = 0.0


class Relay:
    """Sends the messages of an outbox. Run each relay on its own thread; any number of relays may share an outbox.

    The relay deletes a message from the table after the broker has confirmed it. If a relay dies in between, the next
    one sends the message again with the same duplicate id. A broker that detects duplicates (capability
    ``duplicate_detection``) drops the second copy. With other brokers the message arrives twice, and the receiver must
    recognise it by the property ``_AMQ_DUPL_ID``.

    Messages with one key are sent in the order of the table. If the broker refuses a message, later messages with its
    key wait. The relay retries it after 1, 2, 4 … seconds, at most five minutes, and stores the error in its row. Rows
    that cannot be decoded to a message are treated in the same way.

    Args:
        outbox: The outbox.
        factory: The connection factory of the broker.
        engine: The engine of the database; None for the outbox's.
        batch_size: The maximum number of messages that are sent as one unit, up to 1,000.
        poll_interval: Seconds between two looks at an empty table. On PostgreSQL with psycopg a commit that adds a
            message ends the wait.
        lease: Seconds for which the relay reserves its parts of the table. If a relay dies, its messages wait for as
            long. The relay renews the lease while it sends, and begins no send in the last third of the lease.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: There is no engine.
        InvalidArgumentError: A number is out of range.
    """

    def __init__(
        self,
        outbox: Outbox,
        factory: RelayFactory,
        engine: sa.Engine | None = None,
        *,
        batch_size: int = 100,
        poll_interval: float | timedelta = 0.5,
        lease: float | timedelta = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if type(batch_size) is not int or not 1 <= batch_size <= _LARGEST_BATCH:  # nor True
            raise InvalidArgumentError(f"batch_size={batch_size!r}: give a whole number from 1 to {_LARGEST_BATCH}.")
        poll_interval = SECONDS("poll_interval", poll_interval)  # None would look at the table once
        lease = SECONDS("lease", lease)
        if not lease:
            raise InvalidArgumentError(f"lease={lease!r}: give seconds above 0, in which a batch can be sent.")
        self._outbox = outbox
        self._table = outbox.table
        self._factory = factory
        self._engine = engine_of(outbox, engine)
        self._batch_size = batch_size
        self._poll_interval = poll_interval
        self._clock = clock
        self._leases = Leases(outbox.leases, uuid.uuid4().hex, PARTITIONS, lease)
        self._lease = lease
        self._renewed = 0.0
        self._lag: float | None = None
        self._held: int | None = None
        self._tokens: dict[int, int] = {}
        self._connection: Any = None
        self._one_by_one = True
        self._stopping = StopRequest()
        self._notifications = NotificationListener(self._engine)

    def run(self) -> None:
        """Send messages until `stop` is called, from another thread or a signal handler.

        Errors of the broker and of the database are logged. The relay retries after ``poll_interval``, and doubles the
        wait each time, up to 10 seconds. From then on it logs one record a minute.
        """
        outage = _Outage(self._table, self._poll_interval)
        try:
            while not self._stopping.is_set():
                self._notifications.listen()
                try:
                    busy = self.run_once() > 0
                except (JMSError, SQLAlchemyError) as error:
                    self._stopping.wait(outage.failed(error))
                    continue
                outage.ended()
                if not busy:
                    self._notifications.wait(self._poll_interval, self._stopping)
        finally:
            self._stopping.clear()  # not at the start: that would lose a stop that was requested before `run` began
            self._notifications.close()
            self.close()

    def stop(self) -> None:
        """End `run` after its current batch. A `run` that has not begun yet ends at once."""
        self._stopping.set()

    def run_once(self) -> int:
        """Send one batch of waiting messages.

        Returns:
            The number of messages that were sent; 0 if none is due, or other relays have leased all parts of the table.

        Raises:
            JMSError: The broker cannot be reached, or the outcome is in doubt: the messages stay in the table.
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        return len(self._run_batch().sent)

    def drain(self) -> int:
        """Send all waiting messages that are due, batch by batch, including messages that wait for refused ones.

        Returns:
            The number of messages that were sent. Refused messages, and later ones with their keys, stay in the table.
            So do messages in parts that other relays have leased, even if such a relay is dead:
            ``get_stats().held`` is their number.

        Raises:
            JMSError: As `run_once`.
            sqlalchemy.exc.SQLAlchemyError: As `run_once`.
        """
        sent, newest = 0, self._newest_id()
        while (batch := self._run_batch()).sent or batch.refused:
            sent += len(batch.sent)
        self._held = self._count_held(batch, newest)
        return sent

    def _newest_id(self) -> int:
        """Return the id of the message that was added last; 0 for an empty table."""
        with self._engine.connect() as connection:
            return connection.scalar(sa.select(sa.func.max(self._table.c.id))) or 0

    def _count_held(self, last: "_Sending", newest: int) -> int:
        """Return the number of messages that are due, but that a drain could not send.

        Args:
            last: The last batch, which sent nothing. If it has messages, their leases ended during the batch.
            newest: The id of the newest message at the start of the drain. Later messages are not counted.
        """
        columns = self._table.c
        others = columns.part.not_in(self._tokens) | columns.id.in_([row.id for row in last.rows])
        due = sa.select(sa.func.count()).select_from(self._table)
        with self._engine.connect() as connection:
            return connection.scalar(due.where(*self._is_due(), others, columns.id <= newest)) or 0

    def _run_batch(self) -> "_Sending":
        """Send one batch, and return its state."""
        self._renewed = self._clock()
        with self._engine.begin() as connection:
            tokens = self._leases.renew(connection, self._renewed)
        if tokens.items() - self._tokens.items():
            self._one_by_one = True  # the previous relay of these parts may have sent some of the messages
        self._tokens = tokens
        with self._engine.connect() as connection:
            sending = _Sending(connection.execute(self._due()).all())
        if sending.rows:
            try:
                self._send(sending)
            finally:
                self._record(sending)
        self._one_by_one = False
        return sending

    def get_stats(self) -> OutboxStatistics:
        """Return the number of waiting messages, the age of the oldest one, and the relay's own measurements."""
        with self._engine.connect() as connection:
            found = self._outbox.get_stats(connection, self._clock())
        return replace(found, lag=self._lag, held=self._held)

    def close(self) -> None:
        """Close the connection to the broker, and release the parts of the table for other relays."""
        self._drop_connection()
        with suppress(SQLAlchemyError), self._engine.begin() as connection:
            self._leases.release_all(connection)
        self._tokens = {}

    def _due(self) -> sa.Select[Any]:
        """Select the first messages that are due in the relay's parts."""
        table = self._table
        due = sa.select(table).where(table.c.part.in_(self._tokens), *self._is_due())
        return due.order_by(table.c.id).limit(self._batch_size)

    def _is_due(self) -> tuple[sa.ColumnElement[bool], ...]:
        """Return the conditions for sending a message: it does not wait for a retry, its own or of an earlier message.

        A retry time beyond the longest pause was written before a clock was set back, and is ignored.
        """
        table, other, now = self._table, self._table.alias(), self._clock()
        latest = now + 2 * _LONGEST_PAUSE
        waits = (other.c.retry_at > now) & (other.c.retry_at <= latest)
        blocked = sa.exists().where(other.c.ordering_key == table.c.ordering_key, other.c.id < table.c.id, waits)
        return (table.c.retry_at <= now) | (table.c.retry_at > latest), ~blocked

    def _send(self, sending: "_Sending") -> None:
        done = False
        try:
            connection = self._connected()
            if self._one_by_one or not connection.capabilities.atomic or not self._send_as_unit(sending):
                self._send_one_by_one(sending)
            done = True
        except JMSError:
            self._one_by_one = True
            raise
        finally:
            if not done:  # the connection is lost, or was aborted by an interruption
                self._drop_connection()

    def _connected(self) -> Any:
        """Return the connection, or a new one."""
        if self._connection is None:
            self._connection = self._factory.create_connection()
            if not self._connection.capabilities.duplicate_detection:
                logger.info(
                    "The broker of %s does not detect duplicates: after a failure, messages may arrive twice. "
                    "Receivers can recognise them by the property %s, as an inbox does.",
                    *(self._table, DUPLICATE_ID),
                )
        return self._connection

    def _send_as_unit(self, sending: "_Sending") -> bool:
        """Send all messages in one transaction. Return False if the broker refused it because of one of them."""
        with self._connection.create_session(transacted=True) as session:
            try:
                for row in sending.rows:
                    _send_row(session, row)
                if not all(self._may_send(sending, row) for row in sending.rows):
                    return True  # nothing is sent: closing the session rolls it back
                session.commit()
            except (ConnectionLostError, TransactionInDoubtError, SQLAlchemyError):
                raise
            except Exception as error:  # noqa: BLE001  # a row may hold anything
                logger.debug("A batch of %s was refused; its messages are sent one by one: %s", self._table, error)
                return False
        sending.sent.extend(row.id for row in sending.rows)
        return True

    def _send_one_by_one(self, sending: "_Sending") -> None:
        """Send each message separately and confirmed, so that the broker can drop each duplicate."""
        with self._connection.create_session() as session:
            for row in sending.rows:
                if row.ordering_key in sending.blocked or not self._may_send(sending, row):
                    continue
                try:
                    _send_row(session, row)
                except (ConnectionLostError, TransactionInDoubtError):
                    raise
                except JMSError as error:
                    logger.warning(
                        "The broker refused the message %s of %s to %s:%s: %s",
                        *(row.id, self._table, row.kind, row.destination, error),
                    )
                    sending.refuse(row, text_of(error) or type(error).__name__)
                except Exception as error:  # noqa: BLE001  # otherwise this row would block all others
                    logger.warning(
                        "The row %s of %s, to %s:%s, is no message that can be sent: %r",
                        *(row.id, self._table, row.kind, row.destination, error),
                    )
                    sending.refuse(row, repr(error))
                else:
                    sending.sent.append(row.id)

    def _may_send(self, sending: "_Sending", row: sa.Row[Any]) -> bool:
        """Return True if the send will end before the lease does, so that no other relay can send the message.

        A broker that detects duplicates may miss one that arrives at the same moment: Artemis looks up the id, and
        stores it later. Therefore a send, and the commit of a unit, begin only while a third of the lease is left.
        """
        now = self._clock()
        if now - self._renewed >= self._lease / 3:
            with self._engine.begin() as connection:
                mine = self._leases.still_mine(connection, self._tokens, now)
            self._tokens = {part: token for part, token in self._tokens.items() if part in mine}
            self._renewed = now
        # Once it is too late, the batch ends: a later message of the same key must not be sent first.
        sending.late = sending.late or self._clock() - self._renewed > self._lease * 2 / 3
        return row.part in self._tokens and not sending.late

    def _record(self, sending: "_Sending") -> None:
        """Delete the sent messages, and record the refused ones, in the parts that the relay still leases."""
        columns, now = self._table.c, self._clock()
        if sending.sent:
            self._lag = max(now - next(row.added for row in sending.rows if row.id == sending.sent[-1]), 0.0)
        with self._engine.begin() as connection:
            mine = self._leases.still_mine(connection, self._tokens)
            done = [row.id for row in sending.rows if row.id in set(sending.sent) and row.part in mine]
            if done:
                connection.execute(sa.delete(self._table).where(columns.id.in_(done)))
            for row in sending.rows:
                if row.id in sending.refused and row.part in mine:
                    pause = min(2.0 ** min(row.attempts, 20), _LONGEST_PAUSE)
                    changes = {"attempts": row.attempts + 1, "retry_at": now + pause, "error": sending.refused[row.id]}
                    connection.execute(sa.update(self._table).where(columns.id == row.id).values(changes))

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(JMSError):
                connection.close()


class _Sending:
    """A batch that is being sent.

    Args:
        rows: The rows of the messages.
    """

    def __init__(self, rows: Sequence[sa.Row[Any]]) -> None:
        self.rows = rows
        self.sent: list[int] = []
        self.refused: dict[int, str] = {}
        self.blocked: set[str | None] = set()
        self.late = False

    def refuse(self, row: sa.Row[Any], error: str) -> None:
        """Record that a message cannot be sent, and that later messages with its key wait for it."""
        self.refused[row.id] = encodable(error)[:_LONGEST_ERROR]  # not every database stores NUL
        self.blocked |= {row.ordering_key} - {None}


def _send_row(session: Any, row: sa.Row[Any]) -> None:
    """Send the message of a row with its duplicate id."""
    message = decode_message(row.headers, row.body)
    message.set_string_property(DUPLICATE_ID, row.duplicate_id)
    options = json.loads(row.options)
    to: Destination = destination(row.destination, row.kind)
    options["delivery_mode"] = DeliveryMode(options["delivery_mode"])
    session.create_producer(to).send(message, **options)


_RELAY = "relay:"
# A lease that ends more than this number of leases from now was written by a clock that is or was ahead. With a smaller
# number, a relay would take over the parts of relays that are configured with longer leases.
_LONGEST = 10


class Leases:
    """The leases of one relay. Each change of the owner increments the lease's token, which fences the previous owner.

    A new relay registers itself. The others then keep no more than their share of the parts, so that the new relay
    gets its own share. The clocks of the machines should agree within a fraction of the lease's duration. If they do
    not, two relays may send the same messages, and the broker recognises these by their duplicate ids. A lease that
    ends later than ten leases from now counts as expired: it was written by a clock that was ahead.

    Args:
        table: The table of the leases.
        owner: The unique name of the relay.
        parts: The number of parts.
        seconds: The duration of a lease.
    """

    def __init__(self, table: sa.Table, owner: str, parts: int, seconds: float) -> None:
        self._table = table
        self._owner = owner
        self._parts = parts
        self._seconds = seconds
        self._has_warned = False

    def renew(self, connection: sa.Connection, now: float) -> dict[int, int]:
        """Renew the leases, take free ones up to the relay's share, and release those above it.

        Args:
            connection: A connection in a transaction.
            now: Seconds since the epoch.

        Returns:
            The token of each part that the relay has leased.
        """
        columns, until = self._table.c, now + self._seconds
        latest = self._latest(now)
        self._register(connection, until)
        rows = connection.execute(sa.select(self._table)).all()
        known = {row.name for row in rows}
        for part in range(self._parts):
            if _name(part) not in known:
                self._create(connection, _name(part))
        rows = connection.execute(sa.select(self._table).order_by(columns.name)).all()
        relays = sum(row.name.startswith(_RELAY) and now < row.expires <= latest for row in rows)
        share = ceil(self._parts / max(relays, 1))
        parts = [row for row in rows if not row.name.startswith(_RELAY)]
        mine = [row for row in parts if row.owner == self._owner and row.expires > now]
        self._release(connection, mine[share:])
        tokens = {row.name: row.token for row in mine[:share] if self._extend(connection, row, until)}
        expired = [row for row in parts if not now < row.expires <= latest and row.name not in tokens]
        self._warn_of_clocks([row for row in expired if row.expires > latest], now)
        for row in expired:
            if len(tokens) < share and self._take(connection, row, now, until):
                tokens[row.name] = row.token + 1
        return {int(name): token for name, token in tokens.items()}

    def still_mine(self, connection: sa.Connection, tokens: dict[int, int], now: float | None = None) -> set[int]:
        """Return the parts that the relay still leases, and lock them against other relays until the transaction ends.

        Args:
            connection: A connection in a transaction.
            tokens: The tokens that the relay had.
            now: Seconds since the epoch; renews the leases. None does not change them.
        """
        columns = self._table.c
        expires = columns.expires if now is None else now + self._seconds
        return {
            part
            for part, token in tokens.items()
            if connection.execute(
                sa.update(self._table)
                .where(columns.name == _name(part), columns.owner == self._owner, columns.token == token)
                .values(expires=expires)
            ).rowcount
        }

    def release_all(self, connection: sa.Connection) -> None:
        """Release all leases of the relay, and its registration."""
        columns = self._table.c
        connection.execute(sa.update(self._table).where(columns.owner == self._owner).values(expires=0.0))
        connection.execute(sa.delete(self._table).where(columns.name == _RELAY + self._owner))

    def _register(self, connection: sa.Connection, until: float) -> None:
        """Register the relay. Writes first, because a SQLite transaction that begins with a read may fail to write."""
        columns, name = self._table.c, _RELAY + self._owner
        if not connection.execute(sa.update(self._table).where(columns.name == name).values(expires=until)).rowcount:
            connection.execute(sa.insert(self._table).values(name=name, owner=self._owner, token=0, expires=until))
            # Delete the registrations of relays that died.
            long_ago = until - 100 * self._seconds
            connection.execute(
                sa.delete(self._table).where(columns.name.startswith(_RELAY), columns.expires < long_ago)
            )

    def _create(self, connection: sa.Connection, name: str) -> None:
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(self._table).values(name=name, owner="", token=0, expires=0.0))
        except IntegrityError:  # another relay was faster
            return

    def _release(self, connection: sa.Connection, rows: Iterable[sa.Row[tuple[str, str, int, float]]]) -> None:
        for row in rows:
            connection.execute(
                sa.update(self._table)
                .where(self._table.c.name == row.name, self._table.c.token == row.token)
                .values(expires=0.0, owner="")
            )

    def _extend(self, connection: sa.Connection, row: sa.Row[tuple[str, str, int, float]], until: float) -> bool:
        columns = self._table.c
        changed = connection.execute(
            sa.update(self._table)
            .where(columns.name == row.name, columns.owner == self._owner, columns.token == row.token)
            .values(expires=until)
        )
        return bool(changed.rowcount)

    def _warn_of_clocks(self, rows: Sequence[sa.Row[tuple[str, str, int, float]]], now: float) -> None:
        """Log leases that end too late. One record while the condition lasts."""
        warned, self._has_warned = self._has_warned, bool(rows)
        if rows and not warned:
            logger.warning(
                "%d leases of %s end %.0f s from now, and are taken over: the clock of a relay was ahead, or is. "
                "Relays of one table need clocks that agree, and leases of similar length.",
                *(len(rows), self._table, max(row.expires for row in rows) - now),
            )

    def _latest(self, now: float) -> float:
        return now + _LONGEST * self._seconds

    def _take(
        self, connection: sa.Connection, row: sa.Row[tuple[str, str, int, float]], now: float, until: float
    ) -> bool:
        columns = self._table.c
        is_expired = (columns.expires <= now) | (columns.expires > self._latest(now))
        changed = connection.execute(
            sa.update(self._table)
            .where(columns.name == row.name, columns.token == row.token, is_expired)
            .values(owner=self._owner, token=row.token + 1, expires=until)
        )
        return bool(changed.rowcount)


def _name(part: int) -> str:
    return f"{part:03d}"
