"""The threading rule of sessions: one thread at a time, and no use after close (JMS 3.1, section 6.2.5)."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

from jmsjca.errors import IllegalStateError
from jmsjca.forking import ForkGuard

__all__ = ["SessionLock"]


class SessionLock:
    """Entered for every use of a session or of what it made (JMS 3.1, section 6.2.5).

    Whoever is inside may enter again. Another thread is refused, not kept waiting: to use a session from two threads at
    the same time is an error, one after the other is fine. Only closing waits.

    Attributes:
        home: The process whose session it is; forked children are refused.
        closed: True as soon as somebody began to close the session.
    """

    __slots__ = ("_lock", "_owner", "closed", "fork_guard")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0
        self.fork_guard = ForkGuard()
        self.closed = False

    def __enter__(self) -> None:
        if not self._lock.acquire(False):  # by its name it would cost half of all this
            self.check_open()  # whoever closes the session is in it, or was when this process was forked
            raise self._conflict()
        self._owner = get_ident()
        if self.closed or self.fork_guard.in_child:
            self._lock.release()
            self.check_open()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def check_open(self) -> None:
        """Refuse the use of a closed session.

        Raises:
            IllegalStateError: It is closed.
            ConnectionLostError: It is another process's.
        """
        self.fork_guard.check()
        if self.closed:
            raise IllegalStateError("The session is closed.")

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Wait until the last call has ended, and keep everybody out during the block. For closing."""
        with self._lock:
            yield

    def _conflict(self) -> IllegalStateError:
        return IllegalStateError(
            f"Thread {threading.current_thread().name!r} cannot use this session while thread {_name(self._owner)!r} "
            "does: a session is for one thread at a time (JMS 3.1, section 6.2.5). Make one session for each thread; "
            "they may share the connection."
        )


def _name(ident: int) -> str:
    return next((thread.name for thread in threading.enumerate() if thread.ident == ident), f"number {ident}")
