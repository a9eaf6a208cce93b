"""Tasks that other threads hand to the thread of a connection."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from jmsjca.errors import ConnectionLostError, JMSError

__all__ = ["Task", "TaskQueue"]

_WAKEUP_BYTES = 4096
_COALESCING_SECONDS = 0.001  # seconds


class Task(NamedTuple):
    """A function to run.

    Args:
        function: What to do.
        reply: Hears of it if that fails or is never done; None if nobody waits for it.
        alone: True if what it writes is written before anything that comes later.
        urgent: False if it can wait while the thread dozes.
    """

    function: Callable[[], object]
    reply: "Future[Any] | None"
    flush_after: bool
    urgent: bool = True


class TaskQueue:
    """Errands in order, and a bell that rings only for a thread that sleeps.

    Attributes:
        bell: Can be read when somebody rang.
        error: Why nothing is taken any more; None as long as something is.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector, which comes anywhere, may let a forgotten browser post
        self._tasks: deque[Task] = deque()
        self._waiting = self._coalescing = False
        self._more_expected = False  # whether the last errands were some that can wait: more will come
        self._urgent_put = self._urgent_run = 0  # two counts, as two threads write them
        self._wakeup_sender, self.wakeup_socket = socket.socketpair()
        self.error: JMSError | None = None
        for end in (self._wakeup_sender, self.wakeup_socket):
            end.setblocking(False)

    def put(self, errand: Task) -> None:
        """Add an errand.

        Raises:
            ConnectionLostError: Nothing is taken any more; it will not run.
        """
        self.check_open()  # a forked child may not get the lock
        with self._lock:
            self.check_open()
            self._tasks.append(errand)
            self._urgent_put += errand.urgent
            ring = self._waiting and (errand.urgent or not self._coalescing)
            if ring:
                self._waiting = False
        if ring:  # without the lock, for which the thread that wakes would wait
            self._wake_or_restore()

    def run_pending(self, write: Callable[[], bool]) -> None:
        """Run what was posted; not further than the socket takes what it writes.

        Args:
            write: Writes, and is true if not all was taken.
        """
        self._more_expected = False
        while self._tasks:
            errand = self._tasks.popleft()
            self._more_expected |= not errand.urgent
            self._urgent_run += errand.urgent
            _run_task(errand)
            if errand.flush_after and write():
                return

    def prepare_wait(self, seconds: float | None) -> float | None:
        """Prepare for sleep: the next errand rings.

        After errands that can wait the thread only dozes, and more of them do not ring: to wake it for each one of
        them costs more than what they do.

        Args:
            seconds: How long to sleep at most; None for ever.

        Returns:
            How long to sleep at most: not at all if there is an errand that cannot wait.
        """
        with self._lock:
            self._waiting = self._urgent_put == self._urgent_run
            self._coalescing = self._more_expected or bool(self._tasks)
        if not self._waiting:
            return 0
        if self._coalescing:
            return _COALESCING_SECONDS if seconds is None else min(_COALESCING_SECONDS, seconds)
        return seconds

    def end_wait(self) -> None:
        """Sleep is over: until the next one nobody needs to ring, whatever ended it."""
        self._waiting = False

    def _wake_or_restore(self) -> None:
        try:
            self.wake()
        except BaseException:  # of a signal handler, say: the next one rings
            self._waiting = True
            raise

    def wake(self) -> None:
        """Wake the thread."""
        with suppress(OSError):  # full: it is awake anyway; closed: it will fail the errands
            self._wakeup_sender.send(b"\0")

    def clear_wakeup(self) -> None:
        """Let the bell be silent again."""
        with suppress(BlockingIOError):
            self.wakeup_socket.recv(_WAKEUP_BYTES)

    def close_with(self, error: JMSError) -> None:
        """Take nothing more; the first reason holds."""
        with self._lock:
            self.error = self.error or error

    def check_open(self) -> None:
        """Raise `ConnectionLostError` if nothing is taken any more."""
        if self.error is not None:
            raise ConnectionLostError(str(self.error)) from self.error

    def abandon_after_fork(self, error: ConnectionLostError) -> None:
        """Take nothing more, without the lock, which a thread may hold that is not in this forked child."""
        self.error = error
        self._wakeup_sender.close()
        self.wakeup_socket.close()

    def close(self) -> None:
        """Tell those who wait for an errand that it will not run."""
        self.close_with(ConnectionLostError("The connection is closed."))
        while self._tasks:
            _fail_task(self._tasks.popleft(), ConnectionLostError(str(self.error)))
        self._wakeup_sender.close()
        self.wakeup_socket.close()


def _run_task(errand: Task) -> None:
    try:
        errand.function()
    except JMSError as error:
        _fail_task(errand, error)
    except Exception as error:  # how much of it was written nobody knows: the connection ends with it
        lost = ConnectionLostError(f"A step on the connection failed, and it was given up: {error!r:.500}")
        lost.__cause__ = error
        _fail_task(errand, lost)
        raise


def _fail_task(errand: Task, error: JMSError) -> None:
    """Tell who waits; if nobody does, the error of a link that has ended is told to all who use it."""
    if errand.reply is not None and not errand.reply.done():
        errand.reply.set_exception(error)
