"""Shared state of connections and sessions: the threading rule, started or stopped, closing."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Self

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError
from jmsjca.forking import ForkGuard
from jmsjca.hooks import HookChain

__all__ = ["Closeable", "ConnectionContext", "ConnectionState", "SessionLock"]


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


class ConnectionState:
    """Started and stopped by the connection, waited for by its consumers (JMS 3.1, sections 6.1.4 and 6.1.5).

    Attributes:
        started: True while the connection is started.
    """

    def __init__(self, *, started: bool = False) -> None:
        self._changed = threading.Condition()
        self.started = started

    def start(self) -> None:
        """Let consumers go on."""
        self.started = True
        self.notify()

    def stop(self) -> None:
        """Let consumers wait from now on."""
        self.started = False

    def wait(self, timeout: float | None, ended: Callable[[], bool]) -> bool:
        """Wait for the start.

        Args:
            timeout: Seconds to wait; None waits for ever.
            ended: Tells whether the waiting consumer was closed meanwhile.

        Returns:
            True if the connection is started.
        """
        if not self.started:
            with self._changed:
                self._changed.wait_for(lambda: self.started or ended(), timeout)
        return self.started

    def notify(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What a session stands on.

    Args:
        connection: The provider's connection.
        limits: The bounds of what its consumers take ahead.
        state: Whether the connection is started.
        client_id: What durable subscriptions belong to; None if the connection has none.
        hooks: What surrounds sends.
    """

    connection: spi.Connection
    limits: Limits
    state: ConnectionState
    client_id: str | None = None
    hooks: HookChain = field(default_factory=HookChain)


class Closeable(ABC):
    """Leaving it closes it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
