"""Group commit: jobs submitted at the same time share one transaction, and so one wait for the disk.

Each thread waits on a lock of its own. A condition would be shorter, but a thread that is interrupted while it waits
for a condition (Ctrl-C, a signal handler that raises) can leave it broken for all others.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar, cast

from jmsjca.errors import JMSError, TransactionInDoubtError

__all__ = ["GroupCommit", "Job"]

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
        self._writing = False  # whether there is a writing thread
        self._complete = _Signal()

    def submit(self, job: Job[_T]) -> _T:
        """Run a job and return its result when it is committed; raise its error when it was rolled back.

        A job that fails rolls back only itself.

        Raises:
            TransactionInDoubtError: The job may or may not have been committed.
        """
        request = _Request(job)
        try:
            if not self._becomes_leader(request):
                request.signal.wait()
            while not request.done:  # once, but for requests of `enqueue` that wait before it
                self._collect()
                self._run(self._group)
                self._release_group()
        finally:
            try:
                self._hand_over(request)
            except BaseException:  # of a signal handler: a leader that is gone would stop all others
                self._hand_over(request)
                raise
        return cast("_T", request.outcome())

    def enqueue(self, job: Job[_T], committed: Callable[[_T], object]) -> Callable[[], _T]:
        """Submit a job without waiting. Jobs are committed in the order in which they are submitted or enqueued.

        Args:
            job: The job.
            committed: Called with its result once it is committed, on the thread that wrote it.

        Returns:
            A function that waits for the job, and returns or raises as `submit` does.
        """
        request = _Request(job, committed)
        try:
            with self._mutex:
                self._append(request)
                self._enqueued = True
                start, self._writing = not self._writing, True
            if start:
                self._start_writing()
        except BaseException:  # of a signal handler, perhaps before the start; one writing thread more does no harm
            self._start_writing()
            raise
        return request.wait

    def _start_writing(self) -> None:
        try:
            threading.Thread(target=self._write_enqueued, name="jmsjca-writer", daemon=True).start()
        except RuntimeError:  # no more threads
            self._write_enqueued()

    def _write_enqueued(self) -> None:
        """Commit all enqueued jobs: an empty job behind them is committed with the last of them."""
        while self._has_enqueued():
            with suppress(Exception):  # each job has its own outcome
                self.submit(_do_nothing)

    def _has_enqueued(self) -> bool:
        """Return True if jobs were enqueued since the last call; otherwise the writing thread ends."""
        with self._mutex:
            self._writing, self._enqueued = self._enqueued, False
            return self._writing

    def _becomes_leader(self, request: "_Request") -> bool:
        with self._mutex:
            request.has_thread = True
            self._append(request)
            if self._leader is None:
                self._leader = request
            return self._leader is request

    def _append(self, request: "_Request") -> None:
        self._waiting.append(request)
        if self._leader is not None and len(self._waiting) == self._expected:
            self._complete.set()

    def _collect(self) -> None:
        with self._mutex:
            self._complete.clear()
            complete = len(self._waiting) >= self._expected
        if not complete:
            self._complete.wait(_COLLECT_TIMEOUT)
        with self._mutex:  # in one statement, which no signal handler can interrupt
            self._group, self._waiting[:] = self._waiting[:_MAX_GROUP], self._waiting[_MAX_GROUP:]
            self._expected = len(self._group)

    def _run(self, group: "list[_Request]") -> None:
        begun, results = False, None
        try:
            with self._write() as cursor:
                begun = True
                results = [request.job(cursor) for request in group]
        except Exception as error:
            if results is not None and not isinstance(error, JMSError):  # of a signal handler: it may be committed
                raise
            if begun and len(group) > 1 and not isinstance(error, TransactionInDoubtError):
                self._run_alone(group, error)
            else:
                for request in group:
                    request.finish(error=error)
        else:
            for request, result in zip(group, results, strict=True):
                request.finish(result)
                if request.committed is not None:
                    request.committed(result)

    def _run_alone(self, group: "list[_Request]", error: Exception) -> None:
        """Run each job in a transaction of its own, so that only the faulty job fails.

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
                self._leader = self._next_leader()
            if self._leader:  # again, if a signal handler interrupted the call before
                self._leader.signal.set()

    def _next_leader(self) -> "_Request | None":
        for request in self._waiting:  # no generator: Python ignores exceptions of signal handlers while it closes one
            if request.has_thread:
                return request
        return None

    def _release_group(self) -> None:
        for request in self._group:
            request.release()
        self._group = []


def _do_nothing(_: sqlite3.Cursor) -> None:
    """Do nothing: the job of the writing thread."""


class _Signal:
    """A signal from one thread to another one that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """End the current wait or, if no thread waits, the next one."""
        try:  # noqa: SIM105  # `suppress` takes longer than the rest
            self._lock.release()
        except RuntimeError:  # it is set already
            pass

    def wait(self, timeout: float = -1) -> None:
        """Wait for the signal, `timeout` seconds at most; -1 waits forever."""
        self._lock.acquire(timeout=timeout)

    def clear(self) -> None:
        """Discard a signal that no thread has waited for."""
        self._lock.acquire(blocking=False)


class _Request:
    """One job and its outcome. Its signal is set when the job is done, or when its thread becomes the leader."""

    __slots__ = ("committed", "done", "error", "has_thread", "job", "result", "signal")

    def __init__(self, job: Job[Any], committed: Callable[[Any], object] | None = None) -> None:
        self.job = job
        self.committed = committed
        self.signal = _Signal()
        self.has_thread = False  # whether a thread waits that can lead
        self.done = False
        self.result: object = None
        self.error: Exception | None = None

    def finish(self, result: object = None, error: Exception | None = None) -> None:
        """Record the outcome of the job."""
        self.result, self.error, self.done = result, error, True

    def outcome(self) -> Any:
        """Return the result of the job, which is done, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.result

    def wait(self) -> Any:
        """Wait until the job is done, and return or raise its outcome."""
        self.signal.wait()
        self.signal.set()  # for another call
        return self.outcome()

    def release(self) -> None:
        """Wake the thread of the job."""
        if not self.done:  # the leader was interrupted; only its own thread raises that exception
            self.finish(error=TransactionInDoubtError("The thread that wrote this unit with its own was interrupted."))
        self.signal.set()
