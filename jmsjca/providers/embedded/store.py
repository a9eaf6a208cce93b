"""One broker's database: short transactions under a lock, shared by all connections of this process."""

import itertools
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jmsjca.config import Clock, Limits
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    ResourceAllocationError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.providers.embedded.bell import Bell, Doorbell
from jmsjca.providers.embedded.owners import Owner, find_dead, is_registered, remove_owner
from jmsjca.providers.embedded.schema import open_database

__all__ = ["Store"]

_MEMORY_OWNER = 1
_REAP_INTERVAL = 0.25


class Store:
    """A broker's database, opened once per process.

    Args:
        path: The file; None for memory.
        limits: The bounds of the first connection that opened it.
        clock: Where time comes from.
    """

    def __init__(self, path: Path | None, limits: Limits, clock: Clock) -> None:
        self.path = path
        self.limits = limits
        self.clock = clock
        self.bell = Bell()
        self.users = 0
        self.lost = False
        self._closed = False
        self._tokens = itertools.count(1)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._db = open_database(path, limits.lock_timeout)
        self._cursor = self._db.cursor()
        self._lazy = False
        self._next_reap = 0.0
        self._owner: Owner | None = None
        self._doorbell: Doorbell | None = None
        if path is not None:
            try:
                self._move_in(path)
            except BaseException:
                self._let_go()
                raise

    @property
    def owner(self) -> int:
        """The id under which this process holds messages."""
        return self._owner.id if self._owner else _MEMORY_OWNER

    def next_token(self) -> int:
        """A number that no other claim of this owner has."""
        return next(self._tokens)

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.clock.now() * 1000)

    @contextmanager
    def read(self) -> Generator[sqlite3.Cursor]:
        """Look something up."""
        with self._lock:
            self._check_usable()
            try:
                yield self._cursor
            except sqlite3.Error as error:
                raise _translate(error, self.path) from error

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Cursor]:
        """Run one short write transaction. It commits at the end, rolls back on an exception.

        Args:
            durable: True if the commit must be on disk when this returns. False only where losing it to a power cut
                does no harm: a claim.

        Raises:
            TransactionRolledBackError: The commit failed and did not happen.
            TransactionInDoubtError: The commit failed in a way that tells nothing.
        """
        with self._lock:
            self._check_usable()
            try:
                self._sync(lazily=not durable)
                self._cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield self._cursor
                except BaseException:
                    if self._db.in_transaction:  # a full disk makes SQLite roll back by itself
                        self._cursor.execute("ROLLBACK")
                    raise
                self._commit()
            except sqlite3.Error as error:
                raise _translate(error, self.path) from error

    def ring(self, doorbells: list[str]) -> None:
        """Wake consumers here and behind these doorbells."""
        self.bell.ring()
        if self._doorbell:
            self._doorbell.ring_others(doorbells)

    def other_doorbells(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the other processes that use the file."""
        if self._owner is None:
            return []
        return [path for (path,) in cursor.execute("SELECT bell FROM owner WHERE id <> ?", (self._owner.id,))]

    def check_owner(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that what is claimed in this transaction will be given back when this process dies.

        Raises:
            ConnectionLostError: Another process took this one for dead.
        """
        if self._owner and not is_registered(cursor, self._owner.id):
            self.lost = True
            raise ConnectionLostError(
                f"This process was taken for dead, as its lock file in {self._folder} was removed; connect again."
            )

    def listen(self) -> None:
        """Let other processes wake us from now on."""
        if self._doorbell:
            self._doorbell.listen()

    def reap(self, *, now: bool = False) -> bool:
        """Give back what dead processes held; looks at most four times a second, or now. True if there were any."""
        moment = self.clock.monotonic()
        if self.path is None or (moment < self._next_reap and not now):
            return False
        self._next_reap = moment + _REAP_INTERVAL
        with self.read() as cursor:
            dead = find_dead(cursor, self._folder, self.owner)
        if dead:
            with self.write() as cursor:
                for owner in dead:
                    remove_owner(cursor, owner)
                doorbells = self.other_doorbells(cursor)
            self.ring(doorbells)
        return bool(dead)

    def close(self) -> None:
        """Give back what is held and close the file."""
        if self._doorbell:
            self._doorbell.hush()
        with self._lock:
            try:
                if self._owner:
                    with self.write() as cursor:
                        self._owner.resign(cursor)
                        doorbells = self.other_doorbells(cursor)
                    self.ring(doorbells)
            finally:
                self._let_go()

    def abandon(self) -> None:
        """In a forked child: let the parent's lock go, touch nothing else."""
        self._lock = threading.RLock()  # the old one may be held by a thread that does not exist here
        if self._owner:
            self._owner.abandon()
        if self._doorbell:
            self._doorbell.abandon()

    @property
    def _folder(self) -> Path:
        return Path(f"{self.path}-owners")

    def _move_in(self, path: Path) -> None:
        self._doorbell = Doorbell(self.bell)
        try:
            with self.write() as cursor:
                self._owner = Owner(cursor, self._folder, self._doorbell.path)
        except OSError as error:
            raise StoreError(f"The folder {self._folder} beside {path} cannot be written: {error.strerror}.") from error
        self.reap()

    def _let_go(self) -> None:
        self._closed = True
        if self._owner:
            self._owner.abandon()
        self._db.close()
        if self._doorbell:
            self._doorbell.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise ConnectionLostError("This broker was closed; connect again.")
        if self._pid != os.getpid():
            raise ConnectionLostError("This connection was opened before a fork; open a new one in the child process.")

    def _sync(self, *, lazily: bool) -> None:
        if lazily != self._lazy and self.path is not None:
            self._cursor.execute(f"PRAGMA synchronous = {'NORMAL' if lazily else 'FULL'}")
            self._lazy = lazily

    def _commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._cursor.execute("ROLLBACK")
            if (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_IOERR:
                raise TransactionInDoubtError(
                    f"The commit to {self.path} failed while writing ({error}); it may or may not be on disk."
                ) from error
            raise TransactionRolledBackError(
                f"The commit to {self.path} failed and did not happen: {error}."
            ) from error


def _translate(error: sqlite3.Error, path: Path | None) -> JMSError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ResourceAllocationError(f"Another process has kept {path} locked for too long; is one stopped or hung?")
    if code == sqlite3.SQLITE_FULL:
        return ResourceAllocationError(
            f"No space left for {path or 'the broker in memory'}; make room and try again. Nothing was lost."
        )
    return StoreError(f"The embedded broker {path or 'in memory'} failed: {error}.")
