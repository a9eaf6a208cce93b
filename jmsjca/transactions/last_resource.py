"""The last resource: the database decides by its commit about units that a broker has prepared (XA); recovery.

::

    adapter = ResourceAdapter("java+core://…", last_resource=LastResource(engine))
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from jmsjca.arguments import Constraint
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError, TransactionInDoubtError
from jmsjca.forking import reset_in_child
from jmsjca.log_records import get_logger
from jmsjca.spi import Connection, TwoPhaseConnection, Xid

__all__ = ["Decision", "LastResource"]

logger = get_logger("jmsjca.transactions")

_IDENTITY = "identity"
_LENGTH = 255
_CHUNK = 100  # rows that are deleted together
_WEEK = 7 * 86_400.0


class LastResource:
    """A table of decisions in the application's database. The owner of a prepared unit commits the row "it commits".

    The order is: the broker prepares the unit, the database commits the row with the work of the handler, the broker
    commits. Recovery looks for prepared units that no process has ended, and commits those whose row says so. For one
    without a row it inserts "it does not commit", at which an owner that still lives fails, and rolls it back.

    Args:
        engine: The engine of the application's database. Sessions of other engines for the same database, also
            asynchronous ones, have the decisions in the same table.
        name: Name of the table, which is created if it does not exist.
        schema: Schema of the table; None for the default.
        interval: Seconds between two looks for prepared units. Recovery ends a unit that two looks have seen.
        keep: Seconds for which the row of a unit that does not commit is kept.
        clock: Returns the seconds since the epoch.

    Attributes:
        engine: As given.
        table: The table.

    Raises:
        ArgumentTypeError: The engine is not an `Engine`.
    """

    _identity: bytes | None
    _known: WeakKeyDictionary[sa.Engine, bytes | None]
    _seen: WeakKeyDictionary[TwoPhaseConnection, frozenset[Xid]]  # what the latest look has found
    _thread: threading.Thread | None

    def __init__(
        self,
        engine: sa.Engine,
        *,
        name: str = "jmsjca_decisions",
        schema: str | None = None,
        interval: float = 10.0,
        keep: float = _WEEK,
        clock: Callable[[], float] = time.time,
    ) -> None:
        wanted: Constraint[sa.Engine] = Constraint("a synchronous Engine of SQLAlchemy", sa.Engine)
        self.engine = wanted("engine", engine)
        self.table = sa.Table(
            name,
            sa.MetaData(),
            sa.Column("xid", sa.String(_LENGTH), primary_key=True),
            sa.Column("qualifier", sa.String(_LENGTH), nullable=False),
            sa.Column("commits", sa.Boolean, nullable=False),
            sa.Column("decided", sa.Float, nullable=False, index=True),
            schema=schema,
        )
        self._interval, self._keep, self._clock = interval, keep, clock
        self._forget()
        reset_in_child(self, LastResource._forget)

    def identity(self) -> bytes:
        """Return the identity of the table, which the names of prepared units contain. Create a missing table.

        Raises:
            ResourceAllocationError: The database cannot be used.
        """
        if self._identity is None:
            try:
                self._create()
                self._identity = self._identity_in(self.engine)
            except SQLAlchemyError as error:
                raise ResourceAllocationError(
                    f"The table {self.table} of decisions about prepared units cannot be used: {error}"
                ) from error
        return self._identity or b""

    def is_in(self, engine: sa.Engine | None) -> bool:
        """Return True if the table is in the database of an engine.

        Args:
            engine: The engine of a session; None if it has several.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        if engine is None or engine is self.engine:
            return engine is not None
        if engine not in self._known:
            with engine.connect() as connection:
                has_table = sa.inspect(connection).has_table(self.table.name, self.table.schema)
            self._known[engine] = self._identity_in(engine) if has_table else None
        return self._known[engine] == self.identity()

    def watch(self, connection: Connection) -> None:
        """Decide the units of a connection that are part of transactions. While it is open, recover prepared ones."""
        if not isinstance(connection, TwoPhaseConnection) or connection.qualifier is None:
            return
        connection.decider = self
        with self._lock:
            self._seen[connection] = frozenset()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._recover_all, name="jmsjca recovery", daemon=True)
                self._thread.start()

    @property
    def prepared(self) -> int:
        """The number of prepared units that the latest look has found, also of live processes."""
        return len(frozenset[Xid]().union(*list(self._seen.values())))

    def decision(self, xid: Xid) -> Decision:
        """Return the decision about a prepared unit, which is not made yet."""
        return Decision(self, xid)

    def insert(self, xid: Xid, *, commits: bool) -> sa.Insert:
        """Return the statement of a decision. It fails if there is one."""
        return sa.insert(self.table).values(
            xid=str(xid), qualifier=xid.qualifier.hex(), commits=commits, decided=self._clock()
        )

    def decide(self, xid: Xid) -> bool | None:
        """Return the decision about a prepared unit; decide that it does not commit if there is none.

        Returns:
            True if it commits. None if its owner has ended it in this moment.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        with suppress(IntegrityError), self.engine.begin() as connection:
            connection.execute(self.insert(xid, commits=False))
            return False
        with self.engine.connect() as connection:
            return connection.scalar(sa.select(self.table.c.commits).where(self.table.c.xid == str(xid)))

    def recover(self, connection: TwoPhaseConnection) -> int:
        """End the prepared units of this database that this call and an earlier one have found; return their number.

        Raises:
            JMSError: The broker cannot be reached.
            sqlalchemy.exc.SQLAlchemyError: The database cannot be reached.
        """
        rows = self._committed(connection.qualifier or b"")  # before: a unit without a row is not prepared yet
        identity = self.identity()
        found = frozenset(xid for xid in connection.prepared() if xid.qualifier.startswith(identity))
        again = self._seen.get(connection, frozenset()) & found
        self._seen[connection] = found
        for xid in again:
            self._end(connection, xid)
        self._delete(rows - {str(xid) for xid in found})
        return len(again)

    def _end(self, connection: TwoPhaseConnection, xid: Xid) -> None:
        commits = self.decide(xid)
        if commits is None:
            return
        try:
            connection.end_prepared(xid, commits=commits)
        except ConnectionLostError:
            raise
        except JMSError:
            logger.exception("Recovery has found a prepared unit that was ended by hand.")
        else:
            done = "Recovery has committed the prepared unit %s." if commits else "Recovery has rolled back %s."
            logger.warning(done, xid)

    def _recover_all(self) -> None:
        while True:
            looked: set[bytes | None] = set()
            for connection in list(self._seen):
                if connection.qualifier in looked:  # another connection to the same broker
                    continue
                try:
                    self.recover(connection)
                    looked.add(connection.qualifier)
                except JMSError:
                    self._seen.pop(connection, None)  # it is lost or closed; the next one is watched
                except Exception as error:  # noqa: BLE001  # a driver may raise what SQLAlchemy does not wrap
                    logger.warning("Recovery of prepared units goes on later: %s", error)
            with self._lock:
                if not self._seen:
                    self._thread = None
                    return
            time.sleep(self._interval)

    def _committed(self, qualifier: bytes) -> set[str]:
        columns = self.table.c
        with self.engine.connect() as connection:
            where = (columns.qualifier == qualifier.hex(), columns.commits)
            return set(connection.scalars(sa.select(columns.xid).where(*where)))

    def _delete(self, ended: Iterable[str]) -> None:
        """Delete the rows of units that were committed, and expired ones of units that were not."""
        columns, names = self.table.c, sorted(ended)
        with self.engine.begin() as connection:
            for start in range(0, len(names), _CHUNK):
                connection.execute(sa.delete(self.table).where(columns.xid.in_(names[start : start + _CHUNK])))
            old = columns.decided < self._clock() - self._keep
            connection.execute(sa.delete(self.table).where(old, ~columns.commits, columns.xid != _IDENTITY))

    def _create(self) -> None:
        with self.engine.connect() as connection:
            try:
                self.table.create(connection, checkfirst=True)
                connection.commit()
            except SQLAlchemyError:
                connection.rollback()
                if not sa.inspect(connection).has_table(self.table.name, self.table.schema):
                    raise  # the table is still missing: the error is not that another process created it first
        if self._identity_in(self.engine) is None:
            row = {"xid": _IDENTITY, "qualifier": uuid.uuid4().hex, "commits": False, "decided": self._clock()}
            with suppress(IntegrityError), self.engine.begin() as connection:
                connection.execute(sa.insert(self.table).values(row))

    def _identity_in(self, engine: sa.Engine) -> bytes | None:
        columns = self.table.c
        with engine.connect() as connection:
            found = connection.scalar(sa.select(columns.qualifier).where(columns.xid == _IDENTITY))
        return None if found is None else bytes.fromhex(found)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._identity = self._thread = None
        self._known, self._seen = WeakKeyDictionary(), WeakKeyDictionary()


class Decision:
    """The decision about one prepared unit.

    Args:
        last_resource: The table.
        xid: The unit.

    Attributes:
        commits: True once the unit commits, False if not; None if the database has not answered.
    """

    def __init__(self, last_resource: LastResource, xid: Xid) -> None:
        self._last_resource = last_resource
        self._xid = xid
        self.commits: bool | None = False

    def make(self, session: Session, commit: Callable[[], None]) -> None:
        """Commit a session with the row of the decision. If the reply is lost, the row tells whether it has committed.

        Args:
            session: The session.
            commit: Commits it.

        Raises:
            TransactionInDoubtError: The database does not answer. Recovery will ask it.
            Exception: The database has not committed, for example because recovery was first.
        """
        session.execute(self._last_resource.insert(self._xid, commits=True))
        try:
            commit()
        except Exception as error:
            self.commits = None
            with suppress(Exception):  # the connection may be lost
                session.rollback()
            try:
                self.commits = bool(self._last_resource.decide(self._xid))
            except (SQLAlchemyError, OSError) as problem:
                raise TransactionInDoubtError(
                    f"It is unknown whether the database has committed ({error}). Once it can be reached ({problem}), "
                    f"recovery ends the prepared unit {self._xid} of the broker in the same way."
                ) from error
            if not self.commits:
                raise
        self.commits = True
