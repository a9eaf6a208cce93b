"""Group commit: jobs submitted at the same time share one transaction, and so one wait for the disk.

Each thread waits on a lock of its own. A condition would be shorter, but a thread that is interrupted while it waits
for a condition (Ctrl-C, a signal handler that raises) can leave it broken for all others.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from jmsjca.errors import TransactionInDoubtError

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
            if not request.done:
                self._collect()
                self._run(self._group)
        finally:
            self._hand_over(request)
        if request.error is not None:
            raise request.error
        return cast("_T", request.result)

    def _becomes_leader(self, request: "_Request") -> bool:
        with self._mutex:
            self._waiting.append(request)
            if self._leader is None:
                self._leader = request
            elif len(self._waiting) == self._expected:
                self._complete.set()
            return self._leader is request

    def _collect(self) -> None:
        with self._mutex:
            self._complete.clear()
            complete = len(self._waiting) >= self._expected
        if not complete:
            self._complete.wait(_COLLECT_TIMEOUT)
        with self._mutex:
            self._group = self._waiting[:_MAX_GROUP]
            del self._waiting[:_MAX_GROUP]
            self._expected = len(self._group)

    def _run(self, group: "list[_Request]") -> None:
        begun = False
        try:
            with self._write() as cursor:
                begun = True
                results = [request.job(cursor) for request in group]
        except Exception as error:  # noqa: BLE001  # submit raises it on the threads of the jobs
            if begun and len(group) > 1 and not isinstance(error, TransactionInDoubtError):
                self._run_alone(group)
            else:
                for request in group:
                    request.finish(error=error)
        else:
            for request, result in zip(group, results, strict=True):
                request.finish(result)

    def _run_alone(self, group: "list[_Request]") -> None:
        """Run each job in a transaction of its own, so that only the faulty job fails."""
        for request in group:
            self._run([request])

    def _hand_over(self, request: "_Request") -> None:
        """Release the threads of the group and appoint the next leader; withdraw a job that was not begun.

        A job is withdrawn when its thread was interrupted.
        """
        with self._mutex:
            if not request.done and request in self._waiting:
                self._waiting.remove(request)
            if self._leader is request:
                for other in self._group:
                    other.release()
                self._group = []
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader:
                    self._leader.signal.set()


class _Signal:
    """A signal from one thread to another one that waits for it."""

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


class _Request:
    """One job and its outcome. Its signal is set when the job is done, or when its thread becomes the leader."""

    __slots__ = ("done", "error", "job", "result", "signal")

    def __init__(self, job: Job[Any]) -> None:
        self.job = job
        self.signal = _Signal()
        self.done = False
        self.result: object = None
        self.error: Exception | None = None

    def finish(self, result: object = None, error: Exception | None = None) -> None:
        """Record the outcome of the job."""
        self.result, self.error, self.done = result, error, True

    def release(self) -> None:
        """Wake the thread of the job."""
        if not self.done:  # the leader was interrupted; only its own thread raises that exception
            self.finish(error=TransactionInDoubtError("The thread that wrote this unit with its own was interrupted."))
        self.signal.set()
