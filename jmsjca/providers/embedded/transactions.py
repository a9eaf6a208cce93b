"""Short transactions on one database, under one lock."""

import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from jmsjca.config import Limits
from jmsjca.config.forks import Home
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.embedded.database import Database
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
        database: The database itself.
    """

    def __init__(self, path: Path | None, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.lock = threading.RLock()
        self._closed = False
        self._home = Home()
        self._groups = GroupCommit(self.write)
        self.database = Database(path, limits.lock_timeout)

    def check_usable(self) -> None:
        """Find out whether the database can be used here.

        Raises:
            ConnectionLostError: It is closed, or the parent process's.
        """
        if self._closed:
            raise ConnectionLostError("This broker was closed; connect again.")
        self._home.check()

    def read(self) -> "_Reading":
        """Look something up, in a block."""
        return _Reading(self)

    def write(self, *, durable: bool = True) -> "_Writing":
        """Run one short write transaction, in a block. It commits at the end, rolls back on an exception.

        Args:
            durable: True if the commit must be on disk when this returns. False only where losing it to a power cut
                does no harm: a claim.

        Raises:
            ConnectionLostError: The store is closed, or its file was removed.
            ResourceAllocationError: Another process kept the file locked.
            TransactionRolledBackError: The commit failed and did not happen.
            TransactionInDoubtError: The commit failed in a way that tells nothing.
        """
        return _Writing(self, durable=durable)

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
        self.database.close()

    def forget_threads(self) -> None:
        """In a forked child: hold no lock that a thread has which does not exist here."""
        self.lock = threading.RLock()
        self._groups = GroupCommit(self.write)


class _Reading:
    """A class, not a generator: every claim and every settlement pays for it."""

    __slots__ = ("_lock", "_transactions")

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._lock = transactions.lock  # the same to the end, also in a child that forks meanwhile

    def __enter__(self) -> sqlite3.Cursor:
        transactions = self._transactions
        self._lock.acquire()
        try:
            transactions.check_usable()
        except BaseException:
            self._lock.release()
            raise
        return transactions.database.cursor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._transactions.path) from error


class _Writing:
    """Likewise."""

    __slots__ = ("_durable", "_lock", "_transactions")

    def __init__(self, transactions: Transactions, *, durable: bool) -> None:
        self._transactions = transactions
        self._durable = durable
        self._lock = transactions.lock

    def __enter__(self) -> sqlite3.Cursor:
        transactions = self._transactions
        self._lock.acquire()
        try:
            transactions.check_usable()
            transactions.database.begin(durable=self._durable)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise translate(error, transactions.path) from error
            raise
        return transactions.database.cursor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        database, path = self._transactions.database, self._transactions.path
        try:
            if error is None:
                database.commit()
            else:
                database.roll_back()
        except sqlite3.Error as failed:
            raise translate(failed, path) from failed
        finally:
            self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise translate(error, path) from error
