"""Short transactions on one database, under one lock."""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from jmsjca.config import Limits
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.embedded.database import Database
from jmsjca.providers.embedded.forks import generation
from jmsjca.providers.embedded.group_commit import GroupCommit, Job
from jmsjca.providers.embedded.room import check_room_within, is_room_on_disk
from jmsjca.providers.embedded.sqlite_errors import translate

__all__ = ["Transactions"]

_T = TypeVar("_T")


class Transactions:
    """What all threads of a process do with one database, one after the other.

    Args:
        path: The file; None for memory.
        limits: The bounds.

    Attributes:
        lock: Held by whoever reads or writes; hold it where more must happen before others do.
    """

    def __init__(self, path: Path | None, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.lock = threading.RLock()
        self._closed = False
        self._generation = generation()
        self._groups = GroupCommit(self.write)
        self._db = Database(path, limits.lock_timeout)

    def check_usable(self) -> None:
        """Find out whether the database can be used here.

        Raises:
            ConnectionLostError: It is closed, or the parent process's.
        """
        if self._closed:
            raise ConnectionLostError("This broker was closed; connect again.")
        if self._generation != generation():
            raise ConnectionLostError("This connection was opened before a fork; open a new one in the child process.")

    @contextmanager
    def read(self) -> Generator[sqlite3.Cursor]:
        """Look something up."""
        with self.lock:
            self.check_usable()
            try:
                yield self._db.cursor
            except sqlite3.Error as error:
                raise translate(error, self.path) from error

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Cursor]:
        """Run one short write transaction. It commits at the end, rolls back on an exception.

        Args:
            durable: True if the commit must be on disk when this returns. False only where losing it to a power cut
                does no harm: a claim.

        Raises:
            ConnectionLostError: The store is closed, or its file was removed.
            ResourceAllocationError: Another process kept the file locked.
            TransactionRolledBackError: The commit failed and did not happen.
            TransactionInDoubtError: The commit failed in a way that tells nothing.
        """
        with self.lock:
            self.check_usable()
            try:
                self._db.begin(durable=durable)
                try:
                    yield self._db.cursor
                except BaseException:
                    self._db.roll_back()
                    raise
                self._db.commit()
            except sqlite3.Error as error:
                raise translate(error, self.path) from error

    def submit(self, job: Job[_T]) -> _T:
        """Run a job in a durable write transaction, which it shares with those that others submit at the same time.

        Not to be called between `read` or `write` and their end: the one who runs the job may wait for that. It raises
        what `write` raises, and what the job raises.
        """
        if self.path is not None:
            return self._groups.submit(job)
        with self.write() as cursor:  # memory: nothing to wait for together
            return job(cursor)

    def check_room(self, size: int) -> None:
        """Make sure that there is room on the disk for bodies of so many bytes, and some left to consume with.

        Raises:
            ResourceAllocationError: There is not.
        """
        if self.path is not None and not is_room_on_disk(self.path, size):
            with self.read() as cursor:
                check_room_within(cursor, self.path, size)

    def close_database(self) -> None:
        """Close the file; who tries to use it learns that."""
        self._closed = True
        self._db.close()

    def forget_threads(self) -> None:
        """In a forked child: hold no lock that a thread has which does not exist here."""
        self.lock = threading.RLock()
        self._groups = GroupCommit(self.write)
