"""One broker's database: shared by all connections of this process, with transactions under one lock."""

import atexit
import itertools
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from jmsjca.config import Clock, Limits
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.forking import ForkGuard
from jmsjca.providers.embedded.errors import translate
from jmsjca.providers.embedded.store.database import Database, check_format
from jmsjca.providers.embedded.store.files import check_free_pages, has_disk_space
from jmsjca.providers.embedded.store.group_commit import GroupCommit, Job
from jmsjca.providers.embedded.store.processes import Member, release_owner
from jmsjca.providers.embedded.store.wakeup import WakeupCounter

__all__ = ["Store", "close_store", "drop_memory_store", "open_store"]

_T = TypeVar("_T")

_MEMORY_OWNER = 1
_RELEASE_INTERVAL = 0.25


class _ReadTransaction:
    """A class, not a generator: every claim and every settlement pays for it."""

    __slots__ = ("_lock", "_store")

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._lock = store.lock  # the same to the end, also in a child that forks meanwhile

    def __enter__(self) -> sqlite3.Cursor:
        store = self._store
        self._lock.acquire()
        try:
            store.check_usable()
        except BaseException:
            self._lock.release()
            raise
        return store.database.cursor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._store.path) from error


class _WriteTransaction:
    """Likewise."""

    __slots__ = ("_durable", "_lock", "_store")

    def __init__(self, store: "Store", *, durable: bool) -> None:
        self._store = store
        self._durable = durable
        self._lock = store.lock

    def __enter__(self) -> sqlite3.Cursor:
        store = self._store
        self._lock.acquire()
        try:
            store.check_usable()
            store.database.begin(durable=self._durable)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise translate(error, store.path) from error
            raise
        return store.database.cursor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        database, path = self._store.database, self._store.path
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


class Store:
    """A broker's database, opened once per process, and this process among those that use it.

    Args:
        path: The file; None for memory.
        limits: The bounds of the first connection that opened it.
        clock: Where time comes from.

    Attributes:
        lock: Held by whoever reads or writes; hold it where more must happen before others do.
        database: The database itself.
    """

    def __init__(self, path: Path | None, limits: Limits, clock: Clock) -> None:
        self.path = path
        self.limits = limits
        self.clock = clock
        self.lock = threading.RLock()
        self._closed = False
        self._fork_guard = ForkGuard()
        self._groups = GroupCommit(self.write)
        self.database = Database(path, limits.lock_timeout)
        self.wakeups = WakeupCounter()
        self.users = 0
        self._tokens = itertools.count(1)
        self._next_release = 0.0
        self._member: Member | None = None
        if path is not None:
            try:
                self._register(path)
            except BaseException:
                self._close_files()
                raise

    def check_usable(self) -> None:
        """Find out whether the database can be used here.

        Raises:
            ConnectionLostError: It is closed, or the parent process's.
        """
        if self._closed:
            raise ConnectionLostError("This broker was closed; connect again.")
        self._fork_guard.check()

    def read(self) -> "_ReadTransaction":
        """Look something up, in a block."""
        return _ReadTransaction(self)

    def write(self, *, durable: bool = True) -> "_WriteTransaction":
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
        return _WriteTransaction(self, durable=durable)

    def submit(self, job: Job[_T]) -> _T:
        """Run a job in a durable write transaction, which it shares with those that others submit at the same time.

        Not to be called between `read` or `write` and their end: the one who runs the job may wait for that. It raises
        what `write` raises, and what the job raises.
        """
        if self.path is not None:
            return self._groups.submit(job)
        with self.write() as cursor:  # memory: nothing to wait for together
            return job(cursor)

    def check_disk_space(self, size: int) -> None:
        """Make sure that there is room on the disk for bodies of so many bytes, and some left to consume with.

        Raises:
            ResourceAllocationError: There is not.
        """
        if self.path is not None and not has_disk_space(self.path, size):
            with self.read() as cursor:
                check_free_pages(cursor, self.path, size)

    @property
    def owner(self) -> int:
        """The id under which this process holds messages."""
        return self._member.id if self._member else _MEMORY_OWNER

    @property
    def lost(self) -> bool:
        """True if the file was removed, or this process taken for dead: who connects again must open it anew."""
        return self.database.lost or (self._member is not None and self._member.lost)

    def next_token(self) -> int:
        """A number that no other claim of this owner has."""
        return next(self._tokens)

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.clock.now() * 1000)

    def wake_consumers(self, wakeup_paths: list[str]) -> None:
        """Wake consumers here and behind these doorbells."""
        self.wakeups.notify()
        if self._member:
            self._member.wake_others(wakeup_paths)

    def other_wakeup_paths(self, cursor: sqlite3.Cursor) -> list[str]:
        """The doorbells of the other processes that use the file."""
        return self._member.other_wakeup_paths(cursor) if self._member else []

    def check_owner(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that what is claimed in this transaction will be given back when this process dies.

        Raises:
            ConnectionLostError: Another process took this one for dead.
        """
        if self._member:
            self._member.check_registered(cursor)

    def listen_for_wakeups(self) -> None:
        """Let other processes wake us from now on."""
        if self._member:
            self._member.listen()

    def release_dead_owners(self, *, now: bool = False) -> bool:
        """Give back what dead processes held; looks at most four times a second, or now. True if there were any."""
        moment = self.clock.monotonic()
        if self._member is None or (moment < self._next_release and not now):
            return False
        self._next_release = moment + _RELEASE_INTERVAL
        with self.read() as cursor:
            dead = self._member.dead_owners(cursor)
        if dead:
            with self.write() as cursor:
                for owner in dead:
                    release_owner(cursor, owner)
                wakeup_paths = self.other_wakeup_paths(cursor)
            self.wake_consumers(wakeup_paths)
        return bool(dead)

    def close(self) -> None:
        """Give back what is held and close the file; once is enough."""
        if self._closed:
            return
        if self._member:
            self._member.stop_listening()
        with self.lock:
            try:
                if self._member and not self.lost:
                    self._unregister(self._member)
            finally:
                self._close_files()

    def abandon_after_fork(self) -> None:
        """In a forked child: let the parent's lock go, touch nothing else."""
        self.lock = threading.RLock()  # a thread that does not exist here may hold the parent's
        self._groups = GroupCommit(self.write)
        if self._member:
            self._member.abandon_after_fork()

    def _register(self, path: Path) -> None:
        self._member = Member(path, self.wakeups)
        with self.write() as cursor:
            check_format(cursor, path)
            self._member.register(cursor)
        self.release_dead_owners()

    def _unregister(self, member: Member) -> None:
        with self.write() as cursor:
            member.unregister(cursor)
            wakeup_paths = member.other_wakeup_paths(cursor)
        self.wake_consumers(wakeup_paths)

    def _close_files(self) -> None:
        self._closed = True
        self.database.close()
        if self._member:
            self._member.close()


_lock = threading.Lock()
_stores: dict[Path | str, Store] = {}
_abandoned: list[Store] = []  # of the parent process: kept, so that nothing closes them here


def open_store(place: Path | str, limits: Limits, clock: Clock) -> Store:
    """Open the store of a place, or join those who have it open.

    Args:
        place: The resolved path of a file, or the name of a memory broker.
        limits: The bounds, if it is opened now.
        clock: Where time comes from, if it is opened now.
    """
    with _lock:
        store = _stores.get(place)
        if store is None or store.lost:
            store = _stores[place] = Store(place if isinstance(place, Path) else None, limits, clock)
        store.users += 1
        return store


def close_store(store: Store) -> None:
    """Close a file when its last connection closes. A memory broker stays until the process ends."""
    with _lock:
        store.users -= 1
        if store.users == 0 and store.path is not None:
            if _stores.get(store.path) is store:  # else it was lost, and another has taken its place
                del _stores[store.path]
            store.close()


def drop_memory_store(name: str) -> None:
    """Drop a memory broker with all that is in it."""
    with _lock:
        store = _stores.pop(name, None)
        if store is not None:
            store.close()


@atexit.register
def _close_files() -> None:
    for store in [s for s in _stores.values() if s.path is not None]:
        with suppress(JMSError):  # what is held is given back when others find this process dead
            store.close()


def _abandon_all_after_fork() -> None:
    global _lock  # noqa: PLW0603  # the parent's may be held by a thread that does not exist here
    _lock = threading.Lock()
    for store in _stores.values():
        store.abandon_after_fork()
    _abandoned.extend(_stores.values())
    _stores.clear()


os.register_at_fork(after_in_child=_abandon_all_after_fork)
