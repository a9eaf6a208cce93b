"""An event store in two tables of a database: the records that wait, and the archive."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.event_store import EventRecord, RecordStatus
from jmsjca.errors import ProviderNotInstalledError, StoreError, excerpt
from jmsjca.log_records import get_logger

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import IntegrityError
except ImportError as error:
    raise ProviderNotInstalledError(
        'An event store in a database needs SQLAlchemy: pip install "jmsjca[connector]".'
    ) from error

__all__ = ["SqlEventStore"]

logger = get_logger("jmsjca.connector")


class SqlEventStore:
    """An event store in a database. The application adds records in its own transactions.

    Args:
        engine: The engine of the database.
        retrieve: Returns the business object of a record; None if the application does not have it any more.
        connector_id: The connector; it sees only its own records.
        metadata: Gets the tables; None creates a new `MetaData`.
        table: The name of the table. The archive has this name with ``_archive`` appended.

    Attributes:
        metadata: The metadata with the tables, for ``metadata.create_all(engine)``.
    """

    def __init__(
        self,
        engine: sa.Engine,
        retrieve: Callable[[EventRecord], BusinessObject | None],
        *,
        connector_id: str = "",
        metadata: sa.MetaData | None = None,
        table: str = "jmsjca_events",
    ) -> None:
        self.metadata = sa.MetaData() if metadata is None else metadata
        self._engine = engine
        self._retrieve = retrieve
        self._connector_id = connector_id
        self._events = sa.Table(table, self.metadata, *_columns())
        self._archive = sa.Table(f"{table}_archive", self.metadata, *_columns(), sa.Column("archive_time", sa.DateTime))

    def add(self, connection: sa.Connection, record: EventRecord) -> None:
        """Insert a record in the transaction of the application.

        Args:
            connection: A connection in a transaction.
            record: The record.
        """
        connection.execute(self._events.insert().values(**_values(record)))

    def in_progress(self) -> int:
        """Return the number of records in progress."""
        count = sa.select(sa.func.count()).select_from(self._events).where(self._mine(RecordStatus.IN_PROGRESS))
        with self._engine.connect() as connection:
            return connection.execute(count).scalar_one()

    def recover(self) -> int:
        """Change the records in progress back to READY_FOR_POLL, and return their number."""
        with self._engine.begin() as connection:
            return connection.execute(
                self._events.update()
                .where(self._mine(RecordStatus.IN_PROGRESS))
                .values(event_status=int(RecordStatus.READY_FOR_POLL))
            ).rowcount

    def claim(self, limit: int) -> Sequence[EventRecord]:
        """Change the next records to IN_PROGRESS and return them, by priority and time.

        In SQLite a row can have an ``event_time`` that is not a time. Then its time is the time of the claim, and a
        warning is logged.

        Args:
            limit: The maximum number.
        """
        columns = self._events.c
        query = (
            sa.select(*_raw(columns))
            .where(self._mine(RecordStatus.READY_FOR_POLL))
            .order_by(columns.event_priority, columns.event_time, columns.event_id)
            .limit(limit)
        )
        with self._engine.begin() as connection:
            records = [_record(dict(row)) for row in connection.execute(query).mappings()]
            connection.execute(
                self._events.update()
                .where(columns.event_id.in_([record.event_id for record in records]))
                .values(event_status=int(RecordStatus.IN_PROGRESS))
            )
        return records

    def business_object(self, record: EventRecord) -> BusinessObject | None:
        """Return the business object of a record; None if the application does not have it any more."""
        return self._retrieve(record)

    def finish(self, record: EventRecord, status: RecordStatus, comment: str = "") -> None:
        """Move a record to the archive. It replaces one with the same id, which was used before.

        Args:
            record: The record.
            status: Its final status.
            comment: The description of an error.
        """
        values = {**_values(record), "event_status": int(status), "event_comment": comment}
        with self._engine.begin() as connection:
            connection.execute(self._events.delete().where(self._events.c.event_id == record.event_id))
            connection.execute(self._archive.delete().where(self._archive.c.event_id == record.event_id))
            connection.execute(self._archive.insert().values(**values, archive_time=_naive(datetime.now(UTC))))

    def resubmit(self, *statuses: RecordStatus) -> int:
        """Move archived records with these statuses back, as READY_FOR_POLL, and return their number.

        Raises:
            StoreError: The application has added a record with the id of one of them again; nothing is moved.
        """
        chosen = sa.and_(
            self._archive.c.connector_id == self._connector_id,
            self._archive.c.event_status.in_([int(status) for status in statuses]),
        )
        try:
            with self._engine.begin() as connection:
                return self._move_back(connection, chosen)
        except IntegrityError as error:
            raise self._waits_already(chosen) from error

    def _move_back(self, connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> int:
        query = sa.select(self._archive).where(chosen).with_for_update()
        rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row.pop("archive_time")
            row["event_status"] = int(RecordStatus.READY_FOR_POLL)
        if rows:
            # By their ids: a connector may have archived further events with these statuses since the query.
            moved = self._archive.delete().where(self._archive.c.event_id == sa.bindparam("moved"))
            connection.execute(moved, [{"moved": row["event_id"]} for row in rows])
            connection.execute(self._events.insert(), rows)
        return len(rows)

    def _waits_already(self, chosen: sa.ColumnElement[bool]) -> StoreError:
        """Return the error for archived records, of which at least one has the id of a record that waits."""
        ids = sa.select(self._archive.c.event_id).where(chosen, self._archive.c.event_id == self._events.c.event_id)
        with self._engine.connect() as connection:
            found = connection.execute(ids.order_by(self._archive.c.event_id).limit(1)).scalar()
        event = "One of the events" if found is None else f"The event {excerpt(found, 100)!r}"
        return StoreError(
            f"{event} waits already in {self._events.name}: the "
            "application has added it again. Nothing was changed: let a connector deliver that one, or delete one of "
            "both records."
        )

    def _mine(self, status: RecordStatus) -> sa.ColumnElement[bool]:
        columns = self._events.c
        return sa.and_(columns.connector_id == self._connector_id, columns.event_status == int(status))


def _columns() -> "list[sa.Column[Any]]":
    return [
        sa.Column("event_id", sa.String(255), primary_key=True),
        sa.Column("connector_id", sa.String(80), nullable=False, index=True),
        sa.Column("object_key", sa.String(255), nullable=False),
        sa.Column("object_name", sa.String(80), nullable=False),
        sa.Column("object_verb", sa.String(80), nullable=False),
        sa.Column("event_priority", sa.Integer, nullable=False),
        sa.Column("event_time", sa.DateTime, nullable=False),
        sa.Column("event_status", sa.Integer, nullable=False),
        sa.Column("event_comment", sa.Text, nullable=False),
    ]


def _naive(time: datetime) -> datetime:
    """Return a time in UTC without its zone: not every database has a type with a zone."""
    return time.astimezone(UTC).replace(tzinfo=None)


def _values(record: EventRecord) -> dict[str, object]:
    return {**vars(record), "event_time": _naive(record.event_time), "event_status": int(record.event_status)}


def _raw(columns: "Iterable[sa.Column[Any]]") -> "list[sa.ColumnElement[Any]]":
    """Return columns to select, with ``event_time`` as it is stored: SQLite has values of any type in any column."""
    return [sa.type_coerce(each, sa.types.NULLTYPE) if each.name == "event_time" else each for each in columns]


def _record(row: dict[str, Any]) -> EventRecord:
    time = _time(row["event_time"])
    if time is None:
        given = row["event_id"], row["event_time"]
        logger.warning("The event %.100r has the event_time %.100r, which is no time: it gets the current one.", *given)
        time = datetime.now(UTC)
    fields: dict[str, Any] = {"event_time": time.replace(tzinfo=UTC), "event_status": RecordStatus.IN_PROGRESS}
    return EventRecord(**(row | fields))


def _time(value: Any) -> datetime | None:
    """Return the time of a row; None for a value that is not a time."""
    with suppress(TypeError, ValueError):
        return value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return None
