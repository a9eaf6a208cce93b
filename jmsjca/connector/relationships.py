"""Relationship tables: which keys in several applications belong to the same entity."""

import uuid
from collections.abc import Mapping

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.event_store import key_of
from jmsjca.errors import ProviderNotInstalledError

try:
    import sqlalchemy as sa
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
        metadata: Gets the table; None for one of its own.
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
        chosen = entity or self.entity(application, business_object) or f"{uuid.uuid4()}"
        row = {"application": application, "object_key": key_of(business_object, self._definitions)}
        with self._engine.begin() as connection:
            connection.execute(self._row(row))
            connection.execute(self._table.insert().values(**row, entity=chosen))
        return chosen

    def entity(self, application: str, business_object: BusinessObject) -> str | None:
        """Return the entity of a business object; None if it is not related."""
        columns, key = self._table.c, key_of(business_object, self._definitions)
        query = sa.select(columns.entity).where(columns.application == application, columns.object_key == key)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

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
        found = self.entity(application, event)
        if event.verb != _DELETE:
            return self.relate(application, event, found)
        if found is not None and definition is not None and not definition.is_inactive(event):
            row = {"application": application, "object_key": key_of(event, self._definitions)}
            with self._engine.begin() as connection:
                connection.execute(self._row(row))
        return found

    def _row(self, row: Mapping[str, str]) -> sa.Delete:
        columns = self._table.c
        return self._table.delete().where(
            columns.application == row["application"], columns.object_key == row["object_key"]
        )
