"""The sources of an inbox: sessions of a thread, those of an event loop, and the file of an embedded broker."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa

from jmsjca.config import ConnectionURL, Limits
from jmsjca.errors import InvalidArgumentError
from jmsjca.providers.embedded.provider import location_of
from jmsjca.providers.embedded.store.database import open_database
from jmsjca.transactions.event_loop import run_on_loop

if TYPE_CHECKING:  # the second module needs greenlet, which SQLAlchemy does not install by itself
    import asyncio
    import sqlite3
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    from jmsjca.transactions.joined_transaction import JoinedTransactionManager

__all__ = ["LoopRunner", "ThreadRunner", "engine_of_file"]

T = TypeVar("T")


class ThreadRunner:
    """Runs work in synchronous sessions, on the calling thread.

    Args:
        new_session: Returns a new session.
        joined: Returns the session that has joined a transaction.
    """

    def __init__(
        self, new_session: Callable[[], Session], joined: Callable[[JoinedTransactionManager], Session]
    ) -> None:
        self._new_session = new_session
        self._joined = joined

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a session of its own, which the work commits."""
        with self._new_session() as session:
            return work(session)

    def run_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        """Run work in the session that has joined a unit's transaction."""
        return work(self._joined(manager))


class LoopRunner:
    """Runs work in asynchronous sessions, on the event loop of the handlers, while the calling thread waits.

    Args:
        loop: Returns the loop.
        new_session: Returns a new session.
        joined: Returns the session that has joined a transaction; called on the loop.
        prepare: Runs before the first work, as there may be no loop earlier; None for nothing.
    """

    def __init__(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        new_session: Callable[[], AsyncSession],
        joined: Callable[[JoinedTransactionManager], AsyncSession],
        prepare: Callable[[Session], None] | None,
    ) -> None:
        self._loop = loop
        self._new_session = new_session
        self._joined = joined
        self._prepare = prepare
        self._lock = Lock()

    def run(self, work: Callable[[Session], T]) -> T:
        """Run work in a session of its own, which the work commits."""
        self._run_prepare()
        return run_on_loop(self._loop(), self._apart(work))

    def run_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        """Run work in the session that has joined a unit's transaction."""
        self._run_prepare()
        return run_on_loop(self._loop(), self._in_joined(work, manager))

    async def _apart(self, work: Callable[[Session], T]) -> T:
        async with self._new_session() as session:
            return await session.run_sync(work)

    async def _in_joined(self, work: Callable[[Session], T], manager: JoinedTransactionManager) -> T:
        return await self._joined(manager).run_sync(work)

    def _run_prepare(self) -> None:
        if self._prepare is None:
            return
        with self._lock:
            if self._prepare is not None:
                run_on_loop(self._loop(), self._apart(self._prepare))
                self._prepare = None


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
        """Open the file as the broker does."""
        connection = open_database(path, Limits().lock_timeout)
        connection.isolation_level = "DEFERRED"  # sqlite3 begins transactions: the broker's own statements do for it
        return connection

    return sa.create_engine(f"sqlite:///{path}", creator=connect, poolclass=sa.NullPool)
