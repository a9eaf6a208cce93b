"""One broker's database: short transactions under a lock, shared by all connections of this process."""

import itertools
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from jmsjca.config import Clock, Limits
from jmsjca.errors import ConnectionLostError, ResourceAllocationError
from jmsjca.providers.embedded.bell import Bell
from jmsjca.providers.embedded.database import Database
from jmsjca.providers.embedded.forks import generation
from jmsjca.providers.embedded.group_commit import GroupCommit, Job
from jmsjca.providers.embedded.member import Member
from jmsjca.providers.embedded.opening import check_format
from jmsjca.providers.embedded.owners import remove_owner
from jmsjca.providers.embedded.room import is_room_on_disk, is_room_within
from jmsjca.providers.embedded.sqlite_errors import translate

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
        self._closed = False
        self._tokens = itertools.count(1)
        self._generation = generation()
        self._lock = threading.RLock()
        self._groups = GroupCommit(self.write)
        self._db = Database(path, limits.lock_timeout)
        self._next_reap = 0.0
        self._member: Member | None = None
        if path is not None:
            try:
                self._join(path)
            except BaseException:
                self._let_go()
                raise

    def check_usable(self) -> None:
        """Find out whether this store can be used here.

        Raises:
            ConnectionLostError: It is closed, or the parent process's.
        """
        if self._closed:
            raise ConnectionLostError("This broker was closed; connect again.")
        if self._generation != generation():
            raise ConnectionLostError("This connection was opened before a fork; open a new one in the child process.")

    @property
    def owner(self) -> int:
        """The id under which this process holds messages."""
        return self._member.id if self._member else _MEMORY_OWNER

    @property
    def lost(self) -> bool:
        """True if the file was removed, or this process taken for dead: who connects again must open it anew."""
        return self._member is not None and self._member.lost

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
        with self._lock:
            self.check_usable()
            if self._member:
                self._member.check_place()
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
        if self.path is None or is_room_on_disk(self.path, size):
            return
        with self.read() as cursor:
            if not is_room_within(cursor, size):
                raise ResourceAllocationError(
                    f"No space left for {self.path}: to send {size} bytes would leave too little to consume with. "
                    "Consume, or make room on the disk, and try again."
                )

    def ring(self, doorbells: list[str]) -> None:
        """Wake consumers here and behind these doorbells."""
        self.bell.ring()
        if self._member:
            self._member.ring(doorbells)

    def other_doorbells(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the other processes that use the file."""
        return self._member.other_doorbells(cursor) if self._member else []

    def check_owner(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that what is claimed in this transaction will be given back when this process dies.

        Raises:
            ConnectionLostError: Another process took this one for dead.
        """
        if self._member:
            self._member.check_registered(cursor)

    def listen(self) -> None:
        """Let other processes wake us from now on."""
        if self._member:
            self._member.listen()

    def reap(self, *, now: bool = False) -> bool:
        """Give back what dead processes held; looks at most four times a second, or now. True if there were any."""
        moment = self.clock.monotonic()
        if self._member is None or (moment < self._next_reap and not now):
            return False
        self._next_reap = moment + _REAP_INTERVAL
        with self.read() as cursor:
            dead = self._member.find_dead(cursor)
        if dead:
            with self.write() as cursor:
                for owner in dead:
                    remove_owner(cursor, owner)
                doorbells = self.other_doorbells(cursor)
            self.ring(doorbells)
        return bool(dead)

    def close(self) -> None:
        """Give back what is held and close the file."""
        if self._member:
            self._member.hush()
        with self._lock:
            try:
                if self._member and not self.lost:
                    self._resign(self._member)
            finally:
                self._let_go()

    def abandon(self) -> None:
        """In a forked child: let the parent's lock go, touch nothing else."""
        # The old ones may be held by a thread that does not exist here.
        self._lock = threading.RLock()
        self._groups = GroupCommit(self.write)
        if self._member:
            self._member.abandon()

    def _join(self, path: Path) -> None:
        self._member = Member(path, self.bell)
        with self.write() as cursor:
            check_format(cursor, path)
            self._member.join(cursor)
        self.reap()

    def _resign(self, member: Member) -> None:
        with self.write() as cursor:
            member.resign(cursor)
            doorbells = member.other_doorbells(cursor)
        self.ring(doorbells)

    def _let_go(self) -> None:
        self._closed = True
        self._db.close()
        if self._member:
            self._member.close()
