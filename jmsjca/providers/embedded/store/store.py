"""The store of one broker: one database for all connections of this process, and group commit.

Group commit: jobs submitted at the same time share one transaction, and so one wait for the disk.

Each thread waits on its own lock. A condition would be shorter, but a thread that is interrupted while it waits
for a condition (Ctrl-C, a signal handler that raises) can leave it broken for all others.
"""

import atexit
import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from jmsjca.config import Clock, Limits
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError, StoreError, TransactionInDoubtError
from jmsjca.forking import forked_error
from jmsjca.log_records import get_logger
from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.errors import TRANSLATED, translate
from jmsjca.providers.embedded.store.database import VERSION, Database, read_version
from jmsjca.providers.embedded.store.queues import count_added
from jmsjca.providers.embedded.store.shared_file import (
    HandOverRecord,
    ProcessMembership,
    WakeupCounter,
    has_disk_space,
)

__all__ = ["GroupCommit", "Job", "Store", "close_store", "drop_memory_store", "open_store"]

_MEMORY_OWNER = 1
_RELEASE_INTERVAL = 0.25
_RELEASE_PATIENCE = 5.0  # seconds for which consumers claim nothing because of a failed release, before they fail too
_ADDED_IN_MEMORY = 1000  # queues

logger = get_logger("jmsjca.embedded")

_T = TypeVar("_T")
Job = Callable[[sqlite3.Cursor], _T]  #: a part of a write transaction; it may be called again after a rollback

_MAX_GROUP = 64
# Seconds for which a leader waits for as many jobs as the last group had: threads of the last group that were just
# released need a moment to submit again, and without the wait their next group would be cut in two.
_COLLECT_TIMEOUT = 0.0005


class GroupCommit:
    """Runs jobs in shared write transactions. The thread that finds no leader leads: it runs all waiting jobs.

    Args:
        write: Returns a context manager that begins a write transaction, commits it at the end, and rolls it back on
            an exception.
    """

    def __init__(self, write: Callable[[], AbstractContextManager[sqlite3.Cursor]]) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._waiting: list[_Request] = []
        self._leader: _Request | None = None
        self._group: list[_Request] = []
        self._expected = 1
        self._enqueued = False  # whether jobs were enqueued that the writing thread has not seen
        self._writer: threading.Thread | None = None
        self._complete = _Signal()

    def submit(self, job: Job[_T]) -> _T:
        """Run a job and return its result when it is committed; raise its error when it was rolled back.

        A job that fails rolls back only itself.

        Raises:
            TransactionInDoubtError: The job may or may not have been committed.
        """
        request = _Request(job)
        try:
            with self._mutex:
                request.has_thread = True
                self._append(request)
                if self._leader is None:
                    self._leader = request
            if self._leader is not request:
                request.wait()
            while not request.done:  # once, but for requests of `enqueue` that wait before it
                self._collect()
                self._run(self._group)
        finally:
            try:
                self._hand_over(request)
            except BaseException:  # of a signal handler: a leader that is gone would stop all others
                self._hand_over(request)
                raise
        if request.error is not None:
            raise request.error
        return cast("_T", request.result)

    def enqueue(self, job: Job[_T], committed: Callable[[_T], object]) -> Callable[[], _T]:
        """Submit a job without waiting. Jobs are committed in the order in which they are submitted or enqueued.

        Args:
            job: The job.
            committed: Called with its result once it is committed, on the thread that wrote it.

        Returns:
            A function that waits for the job, and returns or raises as `submit` does.
        """
        request = _Request(job, committed)
        with self._mutex:
            self._append(request)
            self._enqueued = True
            writer = None
            if self._writer is None or not self._writer.is_alive():  # two of them do no harm
                writer = self._writer = threading.Thread(target=self._write_enqueued, name="jmsjca-writer", daemon=True)
        if writer is not None:
            try:
                writer.start()
            except RuntimeError:  # no more threads
                self._write_enqueued()
        return request.outcome

    def _write_enqueued(self) -> None:
        """Commit all enqueued jobs: an empty job behind them is committed with the last of them."""
        while self._has_enqueued():
            with suppress(Exception):  # each job has its own outcome
                self.submit(_do_nothing)

    def _has_enqueued(self) -> bool:
        """Return True if jobs were enqueued since the last call; otherwise the writing thread ends."""
        with self._mutex:
            enqueued, self._enqueued = self._enqueued, False
            if not enqueued:
                self._writer = None
            return enqueued

    def _append(self, request: "_Request") -> None:
        self._waiting.append(request)
        if self._leader is not None and len(self._waiting) == self._expected:
            self._complete.set()

    def _collect(self) -> None:
        """Make a group of the waiting jobs; wait a moment for as many as the last group had."""
        with self._mutex:
            self._release_group()
            complete = len(self._waiting) >= self._expected
            if not complete:
                self._complete.clear()
        if not complete:
            self._complete.wait(_COLLECT_TIMEOUT)
        with self._mutex:  # in one statement, which no signal handler can interrupt
            self._group, self._waiting[:] = self._waiting[:_MAX_GROUP], self._waiting[_MAX_GROUP:]
            self._expected = len(self._group)

    def _run(self, group: "list[_Request]") -> None:
        begun = ended = False
        try:
            with self._write() as cursor:
                begun = True
                for request in group:
                    request.result = request.job(cursor)
                ended = True
        except Exception as error:
            if ended and not isinstance(error, JMSError):  # of a signal handler: it may be committed
                raise
            if begun and len(group) > 1 and not isinstance(error, TransactionInDoubtError):
                self._run_alone(group, error)
            else:
                for request in group:
                    request.error, request.done = error, True
        else:
            for request in group:
                request.done = True
                if request.committed is not None:
                    request.committed(request.result)

    def _run_alone(self, group: "list[_Request]", error: Exception) -> None:
        """Run each job in a separate transaction, so that only the faulty job fails.

        Args:
            group: The jobs, which were rolled back.
            error: Raised again if no job fails: then a signal handler raised it, on the thread of the leader.
        """
        for request in group:
            self._run([request])
        if not isinstance(error, JMSError) and all(request.error is None for request in group):
            raise error

    def _hand_over(self, request: "_Request") -> None:
        """Release the threads of the group and appoint the next leader; withdraw a job that was not begun.

        A job is withdrawn when its thread was interrupted.
        """
        with self._mutex:
            if not request.done and request in self._waiting:
                self._waiting.remove(request)
            if self._leader is request:
                self._release_group()
                self._leader = None
                for waiting in self._waiting:
                    if waiting.has_thread:
                        self._leader = waiting
                        break
            if self._leader:  # again, if a signal handler interrupted the call before
                self._leader.set()

    def _release_group(self) -> None:
        """Wake the threads of the group."""
        for request in self._group:
            if not request.done:  # the leader was interrupted; only its own thread raises that exception
                text = "The thread that wrote this unit with its own was interrupted."
                request.error, request.done = TransactionInDoubtError(text), True
            request.set()
        self._group = []


def _do_nothing(_: sqlite3.Cursor) -> None:
    """Do nothing: the job of the writing thread."""


class _Signal:
    """A signal from one thread to another one that waits for it. One thread at a time sets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """End the current wait or, if no thread waits, the next one."""
        if self._lock.locked():
            self._lock.release()

    def wait(self, timeout: float = -1) -> None:
        """Wait for the signal, `timeout` seconds at most; -1 waits forever."""
        self._lock.acquire(timeout=timeout)

    def clear(self) -> None:
        """Discard a signal that no thread has waited for."""
        self._lock.acquire(blocking=False)


class _Request(_Signal):
    """One job and its outcome. The signal is set when the job is done, or when its thread becomes the leader."""

    has_thread = False  # whether a thread waits that can lead
    done = False
    result: object = None
    error: Exception | None = None

    def __init__(self, job: Job[Any], committed: Callable[[Any], object] | None = None) -> None:
        super().__init__()
        self.job = job
        self.committed = committed

    def outcome(self) -> Any:
        """Wait until the job is done, and return its result or raise its error."""
        self.wait()
        self.set()  # for another call
        if self.error is not None:
            raise self.error
        return self.result


class _Transaction:
    """The block of `Store.read` or `Store.write`. A class, since a generator is slower and every claim runs this.

    A signal handler may raise an exception before the first line of ``__exit__``, so rarely that nothing is done about
    it. A ``__del__`` that releases the lock would be worse: Python ignores the exceptions that signal handlers raise
    while it runs.

    Args:
        store: The store.
        begin: Begins a write transaction; None for reads.
    """

    __slots__ = ("_begin", "_lock", "_store")

    def __init__(self, store: "Store", begin: Callable[[], None] | None = None) -> None:
        self._store = store
        self._begin = begin
        self._lock = store.lock  # the block releases this lock, even in a child forked within it

    def __enter__(self) -> sqlite3.Cursor:
        store, database = self._store, self._store.database
        is_nested = True  # in a transaction of this thread, which goes on
        try:
            try:
                self._lock.acquire()
                if store.end is not None:
                    store.end()
                if self._begin is not None:
                    is_nested = database.connection.in_transaction and not database.is_rolling_back
                    self._begin()
            except BaseException:  # also of a signal handler: all other threads would wait for the lock
                with suppress(RuntimeError):  # the thread was interrupted before it had the lock
                    self._roll_back_and_release(is_needed=not is_nested)
                raise
        except TRANSLATED as error:
            raise translate(error, store.path) from error
        return database.cursor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        store, database = self._store, self._store.database
        try:
            try:
                if error is None and self._begin is not None:
                    database.commit()
            finally:
                try:
                    if self._begin is not None and database.connection.in_transaction:
                        database.is_rolling_back = True  # no call of `roll_back`: it could be interrupted at its begin
                        database.cursor.execute("ROLLBACK")
                        database.is_rolling_back = False
                finally:
                    self._lock.release()
        except sqlite3.Error as failed:
            raise translate(failed, store.path) from failed
        if error is not None and isinstance(error, TRANSLATED):
            raise translate(error, store.path) from error

    def _roll_back_and_release(self, *, is_needed: bool) -> None:
        try:
            if is_needed and self._store.database.connection.in_transaction:
                self._store.database.roll_back()
        finally:
            self._lock.release()


class _Postponed(NamedTuple):
    """A release that failed, and is repeated."""

    release: Job[Any]
    released: Callable[[Any], object]
    queue_ids: frozenset[int]
    deadline: float


class Store:
    """A broker's database, opened once per process, and the membership of this process in a shared file.

    Args:
        path: The file; None for memory.
        limits: The limits of the connection that opens it first.
        clock: The source of time.

    Attributes:
        lock: Held during each read and write; hold it to combine several steps.
        database: The SQLite connection.
        end: Raises the error of each use once the store is closed, and in a forked child; else None.
        wakeups: Counts the wakeups of consumers of this process.
        postponed: The releases that failed and are repeated.
        hand_overs: The record of the deliveries that were handed over; None for memory, which no process outlives.
        added: The messages that came to the queues of a memory broker, by their ids. A file has them in its tables,
            which other processes see; in memory that would take a tenth of the time of a send.
    """

    def __init__(self, path: Path | None, limits: Limits, clock: Clock) -> None:
        self.path = path
        self.limits = limits
        self.clock = clock
        self.lock = threading.RLock()
        self.end: Callable[[], NoReturn] | None = None
        self.database = Database(path, limits.lock_timeout)
        self._make_blocks()
        self.wakeups = WakeupCounter()
        self.added: dict[int, int] = {}
        self._tokens = itertools.count(1)
        self._next_release = 0.0
        self.postponed: list[_Postponed] = []
        self._repeating = False  # whether there is a thread that repeats them
        self._closing = threading.Event()
        self._membership: ProcessMembership | None = None
        self.hand_overs: HandOverRecord | None = None
        if path is not None:
            with ExitStack() as undo:
                undo.callback(self._close_files)
                self._register(path)
                undo.pop_all()

    def read(self) -> _Transaction:
        """Return a context manager for reads; it yields the cursor and holds the lock."""
        return self._reading

    def write(self, *, durable: bool = True, wait: bool = True) -> _Transaction:
        """Return a context manager for a short write transaction, which commits, or rolls back on an exception.

        Args:
            durable: True if the commit must be on disk at the end of the block. False only for writes, such as
                claims, that may be lost at a power failure.
            wait: False to fail at once if another process has locked the file.

        Raises:
            ConnectionLostError: The store is closed, or its file was removed.
            ResourceAllocationError: Another process kept the file locked.
            TransactionRolledBackError: The commit failed and did not happen.
            TransactionInDoubtError: The commit failed, and may or may not have happened.
        """
        return self._writing[durable, wait]

    def release_or_postpone(self, job: Job[_T], released: Callable[[_T], object], queue_ids: Iterable[int]) -> bool:
        """Run a release like `submit`; if it fails, `postpone` it. Return False if it is postponed.

        Raises:
            ConnectionLostError: The store is closed, or its file was removed.
        """
        try:
            result = self.submit(job)
        except ConnectionLostError:
            raise
        except JMSError as error:
            self.postpone(job, released, queue_ids, error)
            return False
        released(result)
        return True

    def postpone(
        self, job: Job[_T], released: Callable[[_T], object], queue_ids: Iterable[int], error: BaseException
    ) -> None:
        """Repeat a release until it succeeds. Until then this process claims no message of its queues.

        Args:
            job: The release. It has no effect on a message whose lease has ended, so that it can be repeated.
            released: Called with its result once it is committed, under the lock.
            queue_ids: The queues of the messages.
            error: Why it failed.
        """
        with self.lock:
            if not self.postponed:
                text = "Messages of %s could not be released: %s They stay held; their release is repeated."
                logger.warning(text, self.path or "the embedded broker in memory", error)
            deadline = self.clock.monotonic() + _RELEASE_PATIENCE
            self.postponed.append(_Postponed(job, released, frozenset(queue_ids), deadline))
            if not self._repeating:
                thread = threading.Thread(target=self._repeat_postponed, name="jmsjca-release", daemon=True)
                with suppress(RuntimeError):  # no more threads: a claim repeats it
                    thread.start()
                    self._repeating = True

    def release_postponed(self, queue_id: int | None = None) -> bool:
        """Repeat the postponed releases, of one queue or of all (None); return True if none of them failed.

        Args:
            queue_id: The queue that messages are to be claimed from, after the lock of another process.

        Raises:
            ConnectionLostError: The store is closed, or its file was removed.
            JMSError: A release of the queue has failed for five seconds.
        """
        complete = True
        with self.lock:
            for postponed in [p for p in self.postponed if queue_id is None or queue_id in p.queue_ids]:
                try:
                    with self.write(wait=queue_id is not None) as cursor:
                        result = postponed.release(cursor)
                except JMSError as error:
                    overdue = queue_id is not None and self.clock.monotonic() >= postponed.deadline
                    if overdue or isinstance(error, ConnectionLostError):
                        raise
                    complete = False
                else:
                    self.postponed.remove(postponed)
                    postponed.released(result)
                    if not self.postponed:
                        logger.info("The messages of %s whose release had failed are released.", self.path or "memory")
        return complete

    def _repeat_postponed(self) -> None:
        """Repeat the postponed releases until none is left, or the store is closed."""
        while not self._closing.wait(_RELEASE_INTERVAL):
            with suppress(ConnectionLostError):
                self.release_postponed()
            with self.lock:
                if self.lost or not self.postponed:
                    self._repeating = False
                    return

    def submit(self, job: Job[_T]) -> _T:
        """Run a job in a durable write transaction, shared with the jobs that other threads submit at the same time.

        Do not call it within a block of `read` or `write`: the thread that runs the job may wait for the end of that
        block. It raises the errors of `write` and of the job.
        """
        if self.path is not None:
            return self._groups.submit(job)
        with self.write() as cursor:  # memory: no wait for the disk to share
            return job(cursor)

    def enqueue(self, job: Job[_T], committed: Callable[[_T], object]) -> Callable[[], _T]:
        """Run a job like `submit`, but do not wait for the disk.

        Args:
            job: The job.
            committed: Called with its result once it is committed, on any thread.

        Returns:
            A function that waits until the job is committed, and returns its result or raises its error.
        """
        if self.path is not None:
            if self.end is not None:
                self.end()
            return self._groups.enqueue(job, committed)
        with self.write() as cursor:
            result = job(cursor)
        committed(result)
        return lambda: result

    def forget(self, deliveries: Iterable[EmbeddedDelivery]) -> None:
        """Forget deliveries that are settled or released, and the records of their hand-over."""
        for delivery in deliveries:
            # Another thread may also forget it: its slot is freed once.
            if delivery.unsettled.pop(delivery, delivery) is None and delivery.slot is not None and self.hand_overs:
                self.hand_overs.free(delivery.slot)

    def count_added(self, cursor: sqlite3.Cursor, numbers: Mapping[int, int]) -> None:
        """Count messages that a write transaction adds to queues: their numbers by the ids of the queues."""
        if self.path is not None:
            count_added(cursor, numbers)
            return
        for queue_id, number in numbers.items():
            self.added[queue_id] = self.added.get(queue_id, 0) + number
        if len(self.added) > _ADDED_IN_MEMORY:  # also of removed queues
            count_added(cursor, self.added)
            self.added.clear()

    def check_disk_space(self, size: int) -> None:
        """Check that sends leave enough disk space for consumers, or enough unused pages in the file.

        Args:
            size: Bytes of all bodies to be sent.

        Raises:
            ResourceAllocationError: There is too little disk space.
        """
        if self.path is None or has_disk_space(self.path, size):
            return
        with self.read() as cursor:
            pages, page_size = (cursor.execute(f"PRAGMA {p}").fetchone()[0] for p in ("freelist_count", "page_size"))
        if pages * page_size < 2 * size + page_size:
            raise ResourceAllocationError(
                f"No space left for {self.path}: to send {size} bytes would leave too little to consume with. "
                "Consume, or make room on the disk, and try again."
            )

    @property
    def owner(self) -> int:
        """The owner id of this process, under which it holds messages."""
        return self._membership.id if self._membership else _MEMORY_OWNER

    @property
    def lost(self) -> bool:
        """True if the file was removed, or this process taken for dead: a new connection must open another store."""
        return self.database.lost or (self._membership is not None and self._membership.lost)

    def next_token(self) -> int:
        """Return a token that no other claim of this owner has."""
        return next(self._tokens)

    def now(self) -> int:
        """Return the time in milliseconds since the epoch."""
        return int(self.clock.now() * 1000)

    def wake_consumers(self, wakeup_paths: list[str]) -> None:
        """Wake the consumers of this process, and of those that listen on these wakeup sockets."""
        self.wakeups.notify()
        if self._membership:
            self._membership.wakeup_socket.wake_others(wakeup_paths)

    def other_wakeup_paths(self, cursor: sqlite3.Cursor) -> list[str]:
        """Return the paths of the wakeup sockets of the other processes that use the file."""
        return self._membership.other_wakeup_paths(cursor) if self._membership else []

    def check_owner(self, cursor: sqlite3.Cursor) -> None:
        """Check that this process is registered, so that its claims are released if it dies.

        Raises:
            ConnectionLostError: Another process took this one for dead.
        """
        if self._membership and not self._membership.is_registered(cursor):
            raise ConnectionLostError(
                f"This process was taken for dead, as its lock file in {self._membership.folder} was removed; "
                "connect again."
            )

    def listen_for_wakeups(self) -> None:
        """Start to listen for wakeups of other processes."""
        if self._membership:
            self._membership.wakeup_socket.listen()

    def release_dead_owners(self, *, now: bool = False) -> bool:
        """Release the messages of dead processes; return True if there were any.

        Args:
            now: True to check now; otherwise it checks at most four times a second.
        """
        moment = self.clock.monotonic()
        if moment < self._next_release and not now:
            return False
        self._next_release = moment + _RELEASE_INTERVAL
        if self._membership is None:
            return False
        with self.read() as cursor:
            dead = self._membership.dead_owners(cursor)
        if dead:
            with self.write() as cursor:
                for owner in dead:
                    self._membership.release(cursor, owner)
                wakeup_paths = self.other_wakeup_paths(cursor)
            self._membership.remove_lock_files(dead)
            self.wake_consumers(wakeup_paths)
        return bool(dead)

    def close(self) -> None:
        """Release the messages of this process and close the file. A call that was interrupted can be repeated."""
        if self._membership and self.end is None:
            self._membership.wakeup_socket.stop()
        with self.lock:
            try:
                if self._membership and self.end is None and not self.lost:
                    self._unregister(self._membership)
            finally:
                self._close_files()

    def abandon_after_fork(self) -> None:
        """Close the lock file and the socket in a forked child, and replace the locks; leave the rest to the parent."""
        self.end = _end_in_child
        self.lock = threading.RLock()  # a thread that does not exist in the child may hold the old one
        self._make_blocks()
        if self._membership:
            self._membership.abandon_after_fork()

    def _make_blocks(self) -> None:
        self._groups = GroupCommit(self.write)
        self._reading = _Transaction(self)
        self._writing = {
            (durable, wait): _Transaction(self, partial(self.database.begin, durable=durable, wait=wait))
            for durable in (True, False)
            for wait in (True, False)
        }

    def _register(self, path: Path) -> None:
        self._membership = ProcessMembership(path, self.wakeups)
        with self.write() as cursor:
            version = read_version(cursor, path)
            if version != VERSION:  # another release has converted the file since it was opened
                raise StoreError(f"The format of {path} changed to {version} while it was opened; open it again.")
            self._membership.register(cursor)
        self.hand_overs = self._membership.hand_overs
        self.release_dead_owners()

    def _unregister(self, membership: ProcessMembership) -> None:
        with self.write() as cursor:
            membership.release(cursor, membership.id)
            wakeup_paths = membership.other_wakeup_paths(cursor)
        membership.remove_lock_files([membership.id])
        self.wake_consumers(wakeup_paths)

    def _close_files(self) -> None:
        self.end = _end_of_closed
        self._closing.set()
        try:
            self.database.close()
        finally:  # the lock file would keep this process alive for others
            if self._membership:
                self._membership.close()


def _end_of_closed() -> NoReturn:
    raise ConnectionLostError("This broker was closed; connect again.")


def _end_in_child() -> NoReturn:
    raise forked_error()


class _OpenStores:
    """The stores that this process has open.

    Attributes:
        lock: Held while a store is opened or closed.
        by_place: The stores by their files, or the names of memory brokers.
        used: The stores by the ids of the open connections.
        of_parent: The stores of the parent process: a reference keeps the child from closing them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_place: dict[Path | str, Store] = {}
        self.used: dict[str, Store] = {}
        self.of_parent: list[Store] = []

    def abandon_after_fork(self) -> None:
        """Abandon all stores in a forked child: they belong to the parent process."""
        self.lock = threading.Lock()  # a thread that does not exist in the child may hold the old one
        for store in self.by_place.values():
            store.abandon_after_fork()
        self.of_parent.extend([*self.by_place.values(), *self.used.values()])
        self.by_place.clear()
        self.used.clear()


_open = _OpenStores()
os.register_at_fork(after_in_child=_open.abandon_after_fork)


def open_store(place: Path | str, limits: Limits, clock: Clock, user: str) -> Store:
    """Return the store of a broker, opened if this process has not opened it yet; `close_store` ends its use.

    Args:
        place: The resolved path of a file, or the name of a memory broker.
        limits: Its limits, if it is opened now.
        clock: Its source of time, if it is opened now.
        user: The id of the connection.
    """
    with _open.lock:
        store = _open.by_place.get(place)
        if store is not None and store.database.is_lost():
            store.close()  # SQLite shares the index of a file between the connections of a process, also a removed one
        if store is None or store.lost:
            store = _open.by_place[place] = Store(place if isinstance(place, Path) else None, limits, clock)
        _open.used[user] = store
        return store


def close_store(user: str) -> None:
    """End a connection's use of its store. A file is closed with its last connection; a memory broker stays.

    A call that was interrupted can be repeated. It does nothing if the connection uses no store any more.
    """
    with _open.lock:
        store = _open.used.get(user)
        if store is not None and store.path is not None and list(_open.used.values()).count(store) == 1:
            if _open.by_place.get(store.path) is store:  # otherwise it was lost, and another store has replaced it
                del _open.by_place[store.path]
            store.close()
        _open.used.pop(user, None)


def drop_memory_store(name: str) -> None:
    """Delete a memory broker with all its messages."""
    with _open.lock:
        store = _open.by_place.pop(name, None)
        if store is not None:
            store.close()


@atexit.register
def _close_files() -> None:
    for store in [s for s in _open.by_place.values() if s.path is not None]:
        with suppress(JMSError):  # other processes release the messages when they find this process dead
            store.close()
