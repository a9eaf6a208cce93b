"""Relationship tables: which keys in several applications belong to the same entity."""

import uuid
from collections.abc import Mapping

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.event_store import key_of
from jmsjca.errors import ProviderNotInstalledError

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import IntegrityError
except ImportError as error:
    raise ProviderNotInstalledError(
        'Relationships in a database need SQLAlchemy: pip install "jmsjca[connector]".'
    ) from error

__all__ = ["SqlRelationships"]

_DELETE = "Delete"


class SqlRelationships:
    """The relationships of one kind of entity, in a table of a database.

    Args:
        engine: The engine of the database.
        definitions: The definitions; they name the keys, and the values of a logical delete.
        metadata: Gets the table; None creates a new `MetaData`.
        table: The name of the table.

    Attributes:
        metadata: The metadata with the table, for ``metadata.create_all(engine)``.
    """

    def __init__(
        self,
        engine: sa.Engine,
        definitions: BusinessObjectDefinitions,
        *,
        metadata: sa.MetaData | None = None,
        table: str = "jmsjca_relationships",
    ) -> None:
        self.metadata = sa.MetaData() if metadata is None else metadata
        self._engine = engine
        self._definitions = definitions
        self._table = sa.Table(
            table,
            self.metadata,
            sa.Column("application", sa.String(80), primary_key=True),
            sa.Column("object_key", sa.String(255), primary_key=True),
            sa.Column("entity", sa.String(40), nullable=False, index=True),
        )

    def relate(self, application: str, business_object: BusinessObject, entity: str | None = None) -> str:
        """Add the keys of a business object, or change the entity that they belong to.

        Args:
            application: The application of the business object.
            business_object: The business object.
            entity: The entity; None for the known one, or a new one.

        Returns:
            The entity.

        Raises:
            ConfigurationError: The type has no definition.
        """
        row = self._row(application, business_object)
        try:
            return self._store(row, entity)
        except IntegrityError:  # another program has added the keys since they were looked up
            return self._store(row, entity)

    def entity(self, application: str, business_object: BusinessObject) -> str | None:
        """Return the entity of a business object; None if it is not related."""
        row = self._row(application, business_object)
        with self._engine.connect() as connection:
            return self._find(connection, row)

    def keys(self, entity: str) -> Mapping[str, str]:
        """Return the keys of an entity by application."""
        query = sa.select(self._table).where(self._table.c.entity == entity)
        with self._engine.connect() as connection:
            return {row["application"]: row["object_key"] for row in connection.execute(query).mappings()}

    def record(self, application: str, event: BusinessObject) -> str | None:
        """Update the relationships for an event.

        A physical delete removes the entry. A logical delete keeps it, because the data of the entity are still there.

        Args:
            application: The application that the event comes from.
            event: The event.

        Returns:
            The entity; None if a Delete concerns one that is not related.
        """
        definition = self._definitions.get(event.type)
        if event.verb != _DELETE:
            return self.relate(application, event)
        found = self.entity(application, event)
        if found is not None and definition is not None and not definition.is_inactive(event):
            row = self._row(application, event)
            with self._engine.begin() as connection:
                connection.execute(self._table.delete().where(self._is(row)))
        return found

    def _row(self, application: str, business_object: BusinessObject) -> Mapping[str, str]:
        return {"application": application, "object_key": key_of(business_object, self._definitions)}

    def _store(self, row: Mapping[str, str], entity: str | None) -> str:
        with self._engine.begin() as connection:
            known = self._find(connection, row)
            chosen = entity or known or f"{uuid.uuid4()}"
            if known is None:
                connection.execute(self._table.insert().values(**row, entity=chosen))
            elif known != chosen:
                connection.execute(self._table.update().where(self._is(row)).values(entity=chosen))
        return chosen

    def _find(self, connection: sa.Connection, row: Mapping[str, str]) -> str | None:
        return connection.execute(sa.select(self._table.c.entity).where(self._is(row))).scalar_one_or_none()

    def _is(self, row: Mapping[str, str]) -> sa.ColumnElement[bool]:
        columns = self._table.c
        return sa.and_(columns.application == row["application"], columns.object_key == row["object_key"])
