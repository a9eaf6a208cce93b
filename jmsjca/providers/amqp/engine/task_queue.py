"""Queue of tasks that other threads submit to a connection's event loop."""

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
_COALESCING_SECONDS = 0.001


class Task(NamedTuple):
    """A function to run on the engine thread.

    Args:
        function: The function.
        reply: Fails if the function fails or will not run; None if no thread waits for it.
        flush_after: True if its output is written before any later task runs.
        urgent: False if the task can wait while the loop coalesces.
    """

    function: Callable[[], object]
    reply: "Future[Any] | None"
    flush_after: bool
    urgent: bool = True


class TaskQueue:
    """FIFO of tasks. Wakes the event loop through a socket pair, only while it is blocked in `select()`.

    Attributes:
        wakeup_socket: Readable after a wakeup.
        error: Why no more tasks are accepted; None while they are.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector, which runs on any thread, may close an abandoned browser.
        self._lock = threading.RLock()
        self._tasks: deque[Task] = deque()
        self._waiting = self._coalescing = False
        self._more_expected = False  # whether the last run had tasks that are not urgent: more will follow
        self._urgent_put = self._urgent_run = 0  # two counters, since two threads write them
        self._wakeup_sender, self.wakeup_socket = socket.socketpair()
        self.error: JMSError | None = None
        for sock in (self._wakeup_sender, self.wakeup_socket):
            sock.setblocking(False)

    def put(self, task: Task) -> None:
        """Add a task.

        Raises:
            ConnectionLostError: The queue is closed; the task will not run.
        """
        if self.error is not None:  # before the lock, which a forked child may never get
            self.check_open()
        with self._lock:
            if self.error is not None:
                self.check_open()
            self._urgent_put += task.urgent
            self._tasks.append(task)
            wake = self._waiting and (task.urgent or not self._coalescing)
            if wake:
                self._waiting = False
        if wake:  # without the lock, for which the woken thread would wait
            self.wake()

    def run_pending(self, write: Callable[[], bool]) -> None:
        """Run queued tasks, until the socket does not accept their output.

        Args:
            write: Writes pending output, and returns True if some is left.
        """
        self._more_expected = False
        while self._tasks:
            task = self._tasks.popleft()
            self._more_expected |= not task.urgent
            self._urgent_run += task.urgent
            _run_task(task)
            if task.flush_after and write():
                return

    def prepare_wait(self, seconds: float | None) -> float | None:
        """Prepare to block in `select()`: from now on a new task wakes the loop.

        After tasks that are not urgent the loop blocks only briefly, and further tasks of that kind do not wake it: a
        wakeup for each of them costs more than the tasks themselves.

        Args:
            seconds: The longest time to block; None for no limit.

        Returns:
            The time to block: 0 if an urgent task is queued; None for no limit.
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
        """Mark the loop as running, whatever ended the wait: no wakeup is needed until the next wait."""
        self._waiting = False

    def wake(self) -> None:
        """Wake the event loop."""
        with suppress(OSError):  # full: the loop is awake anyway; closed: the loop fails the tasks
            self._wakeup_sender.send(b"\0")

    def clear_wakeup(self) -> None:
        """Read the wakeups, so that the socket is not readable any more."""
        with suppress(BlockingIOError):
            self.wakeup_socket.recv(_WAKEUP_BYTES)

    def close_with(self, error: JMSError) -> None:
        """Accept no more tasks. The first error is kept."""
        with self._lock:
            self.error = error if self.error is None else self.error

    def check_open(self) -> None:
        """Raise `ConnectionLostError` if the queue is closed."""
        if self.error is not None:
            raise ConnectionLostError(str(self.error)) from self.error

    def abandon_after_fork(self, error: ConnectionLostError) -> None:
        """Close the queue in a forked child, without its lock: a thread of the parent may hold it."""
        self.error = error
        self._wakeup_sender.close()
        self.wakeup_socket.close()

    def close(self) -> None:
        """Close the queue and fail the tasks that are left."""
        self.close_with(ConnectionLostError("The connection is closed."))
        while self._tasks:
            _fail_task(self._tasks.popleft(), ConnectionLostError(str(self.error)))
        self._wakeup_sender.close()
        self.wakeup_socket.close()


def _run_task(task: Task) -> None:
    try:
        task.function()
    except JMSError as error:
        _fail_task(task, error)
    except Exception as error:  # how much of its output is written is unknown: the connection ends with it
        lost = ConnectionLostError(f"A task on the connection failed, and the connection was aborted: {error!r:.500}")
        lost.__cause__ = error
        _fail_task(task, lost)
        raise


def _fail_task(task: Task, error: JMSError) -> None:
    """Fail the reply of a task. Without one, the users of a link that ended see the link's own error."""
    if task.reply is not None and not task.reply.done():
        task.reply.set_exception(error)
