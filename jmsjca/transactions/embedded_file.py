"""Tables in the file of an embedded broker, for programs without another database."""

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from jmsjca.config import ConnectionURL, Limits
from jmsjca.errors import InvalidArgumentError
from jmsjca.providers.embedded.provider import location_of
from jmsjca.providers.embedded.store.database import open_database

__all__ = ["engine_of_file"]


def engine_of_file(url: str) -> sa.Engine:
    """Return an engine for the file of an embedded broker, which is created if it does not exist.

    A connection of the engine is open for one session only, so that a fork copies none.

    Args:
        url: ``embedded:///folder/file.db``.

    Raises:
        InvalidURLError: The URL names no file.
        InvalidArgumentError: The URL is one of another provider, or of a broker in memory.
    """
    parsed = ConnectionURL.parse(url)
    place = location_of(parsed) if parsed.protocol == "embedded" else None
    if not isinstance(place, Path):
        raise InvalidArgumentError(
            f"{parsed} names no file of an embedded broker. Give embedded:///folder/file.db, or the Engine of a "
            "database."
        )
    path = place

    def connect() -> sqlite3.Connection:
        connection = open_database(path, Limits().lock_timeout)
        connection.isolation_level = "DEFERRED"  # sqlite3 begins transactions: the broker's own statements do for it
        return connection

    return sa.create_engine(f"sqlite:///{path}", creator=connect, poolclass=sa.NullPool)
