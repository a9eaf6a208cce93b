"""The table of an inbox, and the statements on it."""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

__all__ = ["LONGEST", "InboxRow", "InboxTable"]

LONGEST = 255  # characters of a name, a key or an id
_INSERT = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class InboxRow(NamedTuple):
    """The row of a message.

    Attributes:
        endpoint: The name of the listener.
        message_key: Identifies the message: its duplicate id, or its message id.
        message_id: Its message id.
        outgoing: The messages that its handler has sent; None for none.
    """

    endpoint: str
    message_key: str
    message_id: str
    outgoing: str | None = None


class InboxTable:
    """The table. Its statements are executed in the session that is given, which the caller commits.

    Args:
        name: Name of the table.
        metadata: The metadata that it is added to.
        schema: Its schema; None for that of the metadata.

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
                raise  # another process has not been faster

    def insert(self, session: Session, row: InboxRow, now: float) -> bool:
        """Insert a row; False if it is there already. Waits for a transaction that is inserting it."""
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
        """Return the row of a message; None if it has none."""
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
