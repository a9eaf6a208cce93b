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

_MOST = 64
# A leader waits so long, in seconds, for as many jobs as came last time: threads that were just told need a moment to
# come again, and without it their next group would be cut in two.
_PATIENCE = 0.0005


class GroupCommit:
    """Runs jobs in write transactions. Whoever finds nobody at it leads: it runs all jobs that wait, for everybody.

    Args:
        write: Begins a write transaction, commits it at the end, rolls it back on an exception.
    """

    def __init__(self, write: Callable[[], AbstractContextManager[sqlite3.Cursor]]) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._waiting: list[_Turn] = []
        self._leader: _Turn | None = None
        self._group: list[_Turn] = []
        self._expected = 1
        self._complete = _Signal()

    def submit(self, job: Job[_T]) -> _T:
        """Run a job and return its result when it is committed; raise its error when it was rolled back.

        A job that fails undoes nothing but itself.

        Raises:
            TransactionInDoubtError: It may or may not have been committed.
        """
        turn = _Turn(job)
        try:
            if not self._leads_at_once(turn):
                turn.signal.wait()
            if not turn.done:
                self._gather()
                self._run(self._group)
        finally:
            self._leave(turn)
        if turn.error is not None:
            raise turn.error
        return cast("_T", turn.result)

    def _leads_at_once(self, turn: "_Turn") -> bool:
        with self._mutex:
            self._waiting.append(turn)
            if self._leader is None:
                self._leader = turn
            elif len(self._waiting) == self._expected:
                self._complete.give()
            return self._leader is turn

    def _gather(self) -> None:
        with self._mutex:
            self._complete.forget()
            complete = len(self._waiting) >= self._expected
        if not complete:
            self._complete.wait(_PATIENCE)
        with self._mutex:
            self._group = self._waiting[:_MOST]
            del self._waiting[:_MOST]
            self._expected = len(self._group)

    def _run(self, group: "list[_Turn]") -> None:
        begun = False
        try:
            with self._write() as cursor:
                begun = True
                results = [turn.job(cursor) for turn in group]
        except Exception as error:  # noqa: BLE001  # whatever it is, it is raised where the job came from
            if begun and len(group) > 1 and not isinstance(error, TransactionInDoubtError):
                self._run_alone(group)
            else:
                for turn in group:
                    turn.end(error=error)
        else:
            for turn, result in zip(group, results, strict=True):
                turn.end(result)

    def _run_alone(self, group: "list[_Turn]") -> None:
        """Give each job a transaction of its own, so that the one that failed fails alone."""
        for turn in group:
            self._run([turn])

    def _leave(self, turn: "_Turn") -> None:
        """Tell the group, and let the next one lead. An interrupted thread leaves no job behind that nobody began."""
        with self._mutex:
            if not turn.done and turn in self._waiting:
                self._waiting.remove(turn)
            if self._leader is turn:
                for other in self._group:
                    other.tell()
                self._group = []
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader:
                    self._leader.signal.give()


class _Signal:
    """Lets one thread wait for another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self) -> None:
        """End the wait, or the next one."""
        if self._lock.locked():
            self._lock.release()

    def wait(self, timeout: float = -1) -> None:
        """Wait for so many seconds at most; -1 waits for ever."""
        self._lock.acquire(timeout=timeout)

    def forget(self) -> None:
        """Let the next wait be one, if nobody waited for the last signal."""
        self._lock.acquire(blocking=False)


class _Turn:
    """One job, and what became of it. Its signal is given when it is done, or when it is to lead."""

    __slots__ = ("done", "error", "job", "result", "signal")

    def __init__(self, job: Job[Any]) -> None:
        self.job = job
        self.signal = _Signal()
        self.done = False
        self.result: object = None
        self.error: Exception | None = None

    def end(self, result: object = None, error: Exception | None = None) -> None:
        """Note what became of the job."""
        self.result, self.error, self.done = result, error, True

    def tell(self) -> None:
        """Let its thread go on."""
        if not self.done:  # the leader was interrupted; that exception is its own
            self.end(error=TransactionInDoubtError("The thread that wrote this unit with its own was interrupted."))
        self.signal.give()
