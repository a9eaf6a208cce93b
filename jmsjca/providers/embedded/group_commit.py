"""Group commit: jobs that come at the same time share one transaction, and so one wait for the disk."""

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
_INTERRUPTED = "The thread that committed this unit with its own was interrupted; it may or may not be on disk."


class _Turn:
    """One job in the queue, and what became of it."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Job[Any]) -> None:
        self.job = job
        self.done = False
        self.result: object = None
        self.error: Exception | None = None

    def end(self, result: object = None, error: Exception | None = None) -> None:
        self.result, self.error, self.done = result, error, True


class GroupCommit:
    """Runs jobs in write transactions. Whoever finds nobody at it leads: it runs all jobs that wait, for everybody.

    Args:
        write: Begins a write transaction, commits it at the end, rolls it back on an exception.
    """

    def __init__(self, write: Callable[[], AbstractContextManager[sqlite3.Cursor]]) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._finished = threading.Condition(self._mutex)
        self._complete = threading.Condition(self._mutex)
        self._waiting: list[_Turn] = []
        self._group: list[_Turn] = []
        self._led = False
        self._expected = 1

    def submit(self, job: Job[_T]) -> _T:
        """Run a job and return its result when it is committed; raise its error when it was rolled back.

        A job that fails undoes nothing but itself.

        Raises:
            TransactionInDoubtError: It may or may not have been committed.
        """
        turn = _Turn(job)
        with self._mutex:
            self._waiting.append(turn)
            if len(self._waiting) == self._expected:
                self._complete.notify()
        while self._must_lead(turn):
            self._lead()
        if turn.error is not None:
            raise turn.error
        return cast("_T", turn.result)

    def _must_lead(self, turn: _Turn) -> bool:
        """Wait until somebody has led the turn's group, or nobody leads: then it is for us to do so."""
        with self._mutex:
            try:
                self._finished.wait_for(lambda: turn.done or not self._led)
            except BaseException:  # an interrupted thread takes its job back, if nobody has begun it
                if turn in self._waiting:
                    self._waiting.remove(turn)
                raise
            if not turn.done:
                self._led = True
            return not turn.done

    def _lead(self) -> None:
        try:
            self._gather()
            self._run(self._group)
        except BaseException:  # this thread was interrupted, which is no business of the others
            for turn in self._group:
                if not turn.done:
                    turn.end(error=TransactionInDoubtError(_INTERRUPTED))
            raise
        finally:
            with self._mutex:
                self._led = False
                self._finished.notify_all()

    def _gather(self) -> None:
        with self._mutex:
            self._complete.wait_for(lambda: len(self._waiting) >= self._expected, _PATIENCE)
            self._group = self._waiting[:_MOST]
            del self._waiting[:_MOST]
            self._expected = len(self._group)

    def _run(self, group: list[_Turn]) -> None:
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

    def _run_alone(self, group: list[_Turn]) -> None:
        """Give each job a transaction of its own, so that the one that fails fails alone."""
        for turn in group:
            self._run([turn])
