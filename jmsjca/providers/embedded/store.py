"""One broker's database: short transactions under a lock, shared by all connections of this process."""

import itertools
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from jmsjca.config import Clock, Limits
from jmsjca.errors import ConnectionLostError, StoreError
from jmsjca.providers.embedded.bell import Bell, Doorbell
from jmsjca.providers.embedded.forks import generation
from jmsjca.providers.embedded.group_commit import GroupCommit, Job
from jmsjca.providers.embedded.owners import Owner, find_dead, is_registered, remove_owner
from jmsjca.providers.embedded.schema import open_database
from jmsjca.providers.embedded.sqlite_errors import commit_error, translate

__all__ = ["Store"]

_MEMORY_OWNER = 1
_REAP_INTERVAL = 0.25
_T = TypeVar("_T")


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
        self._generation = generation()
        self._lock = threading.RLock()
        self._groups = GroupCommit(self.write)
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

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever reads or writes; hold it where more must happen before others do."""
        return self._lock

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
                raise translate(error, self.path) from error

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
                raise translate(error, self.path) from error

    def submit(self, job: Job[_T]) -> _T:
        """Run a job in a durable write transaction, which it shares with those that others submit at the same time.

        Not to be called between `read` or `write` and their end: the one who runs the job may wait for that.

        Raises:
            TransactionRolledBackError: The commit failed and did not happen.
            TransactionInDoubtError: The commit failed in a way that tells nothing.
        """
        if self.path is not None:
            return self._groups.submit(job)
        with self.write() as cursor:  # memory: nothing to wait for together
            return job(cursor)

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
        # The old ones may be held by a thread that does not exist here.
        self._lock = threading.RLock()
        self._groups = GroupCommit(self.write)
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
        if self._generation != generation():
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
            raise commit_error(error, self.path) from error
