"""Group commit: jobs that come at the same time share one transaction, and so one wait for the disk.

Threads wait here on locks of their own. A condition would be shorter, but a thread that is interrupted while it waits
for one (Ctrl-C, a signal handler that raises) can leave it broken for all others.
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
# A leader waits so long, in seconds, for as many jobs as came last time: threads that were just told need a moment to
# come again, and without it their next group would be cut in two.
_COLLECT_TIMEOUT = 0.0005


class GroupCommit:
    """Runs jobs in write transactions. Whoever finds nobody at it leads: it runs all jobs that wait, for everybody.

    Args:
        write: Begins a write transaction, commits it at the end, rolls it back on an exception.
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

        A job that fails undoes nothing but itself.

        Raises:
            TransactionInDoubtError: It may or may not have been committed.
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
        except Exception as error:  # noqa: BLE001  # whatever it is, it is raised where the job came from
            if begun and len(group) > 1 and not isinstance(error, TransactionInDoubtError):
                self._run_alone(group)
            else:
                for request in group:
                    request.finish(error=error)
        else:
            for request, result in zip(group, results, strict=True):
                request.finish(result)

    def _run_alone(self, group: "list[_Request]") -> None:
        """Give each job a transaction of its own, so that the one that failed fails alone."""
        for request in group:
            self._run([request])

    def _hand_over(self, request: "_Request") -> None:
        """Tell the group, and let the next one lead. An interrupted thread leaves no job behind that nobody began."""
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
    """Lets one thread wait for another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """End the wait, or the next one."""
        if self._lock.locked():
            self._lock.release()

    def wait(self, timeout: float = -1) -> None:
        """Wait for so many seconds at most; -1 waits for ever."""
        self._lock.acquire(timeout=timeout)

    def clear(self) -> None:
        """Let the next wait be one, if nobody waited for the last signal."""
        self._lock.acquire(blocking=False)


class _Request:
    """One job, and what became of it. Its signal is given when it is done, or when it is to lead."""

    __slots__ = ("done", "error", "job", "result", "signal")

    def __init__(self, job: Job[Any]) -> None:
        self.job = job
        self.signal = _Signal()
        self.done = False
        self.result: object = None
        self.error: Exception | None = None

    def finish(self, result: object = None, error: Exception | None = None) -> None:
        """Note what became of the job."""
        self.result, self.error, self.done = result, error, True

    def release(self) -> None:
        """Let its thread go on."""
        if not self.done:  # the leader was interrupted; that exception is its own
            self.finish(error=TransactionInDoubtError("The thread that wrote this unit with its own was interrupted."))
        self.signal.set()
