"""The threading rule of sessions: one thread at a time, and no use after close (JMS 3.1, section 6.2.5)."""

import threading
from _thread import RLock
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import get_ident

from jmsjca.errors import IllegalStateError
from jmsjca.forking import ForkGuard

__all__ = ["SessionLock"]


class SessionLock(RLock):  # type: ignore[misc]  # it is no final class
    """Reentrant lock that is entered for every use of a session or of an object that it created.

    A second thread gets an error instead of waiting: two threads may use a session one after the other, but not at the
    same time. Only `exclusive` waits. A signal handler that raises an exception leaves it unlocked: its ``__exit__``
    is inherited, as one that is written in Python can be interrupted before its first line.

    Attributes:
        fork_guard: Refuses the use of the session in a forked child.
        closed: True as soon as closing the session has begun.
    """

    __slots__ = ("_owner", "closed", "fork_guard")

    def __init__(self) -> None:
        self._owner = 0
        self.fork_guard = ForkGuard()
        self.closed = False

    def __enter__(self) -> bool:  # type: ignore[override]
        try:
            if not self.acquire(False):  # positional: the keyword would cost half as much as this method
                self._refuse()
            self._owner = get_ident()
            if self.closed or self.fork_guard.in_child:
                self.check_open()
        except BaseException:
            self._release()
            raise
        return True

    def check_open(self) -> None:
        """Raise an error if the session is closed.

        Raises:
            IllegalStateError: The session is closed.
            ConnectionLostError: The session belongs to the parent of this process.
        """
        self.fork_guard.check()
        if self.closed:
            raise IllegalStateError("The session is closed.")

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Wait until the call in progress has ended, and refuse other threads during the block.

        A session is closed in such a block, and its message listeners are called in one.
        """
        try:
            self.acquire()
            self._owner = get_ident()
            yield
        finally:
            try:  # noqa: SIM105  # a signal handler may raise an exception before the first line of a function
                self.release()
            except RuntimeError:  # this thread does not have it
                pass

    def _release(self) -> None:
        """Release the lock, unless this thread does not have it."""
        with suppress(RuntimeError):
            self.release()

    def _refuse(self) -> None:
        """Raise the error for a lock that is not free.

        The closing thread holds it, or another one that uses the session, or it was held when this process was forked.
        """
        self.check_open()
        raise IllegalStateError(
            f"Thread {threading.current_thread().name!r} cannot use this session while thread "
            f"{_thread_name(self._owner)!r} does: a session is for one thread at a time (JMS 3.1, section 6.2.5). "
            "Make one session for each thread; they may share the connection."
        )


def _thread_name(ident: int) -> str:
    return next((thread.name for thread in threading.enumerate() if thread.ident == ident), f"number {ident}")
