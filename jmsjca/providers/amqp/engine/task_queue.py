"""Tasks that other threads hand to the thread of a connection."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from jmsjca.errors import ConnectionLostError, JMSError

__all__ = ["Errand", "Mailbox"]

_RINGS = 4096
_DOZE = 0.001  # seconds


class Errand(NamedTuple):
    """A function to run.

    Args:
        function: What to do.
        reply: Hears of it if that fails or is never done; None if nobody waits for it.
        alone: True if what it writes is written before anything that comes later.
        urgent: False if it can wait while the thread dozes.
    """

    function: Callable[[], object]
    reply: "Future[Any] | None"
    alone: bool
    urgent: bool = True


class Mailbox:
    """Errands in order, and a bell that rings only for a thread that sleeps.

    Attributes:
        bell: Can be read when somebody rang.
        error: Why nothing is taken any more; None as long as something is.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector, which comes anywhere, may let a forgotten browser post
        self._errands: deque[Errand] = deque()
        self._asleep = self._dozing = False
        self._busy = False  # whether the last errands were some that can wait: more will come
        self._urgent_posted = self._urgent_run = 0  # two counts, as two threads write them
        self._button, self.bell = socket.socketpair()
        self.error: JMSError | None = None
        for end in (self._button, self.bell):
            end.setblocking(False)

    def post(self, errand: Errand) -> None:
        """Add an errand.

        Raises:
            ConnectionLostError: Nothing is taken any more; it will not run.
        """
        self.check()  # a forked child may not get the lock
        with self._lock:
            self.check()
            self._errands.append(errand)
            self._urgent_posted += errand.urgent
            ring = self._asleep and (errand.urgent or not self._dozing)
            if ring:
                self._asleep = False
        if ring:  # without the lock, for which the thread that wakes would wait
            self._wake()

    def run(self, write: Callable[[], bool]) -> None:
        """Run what was posted; not further than the socket takes what it writes.

        Args:
            write: Writes, and is true if not all was taken.
        """
        self._busy = False
        while self._errands:
            errand = self._errands.popleft()
            self._busy |= not errand.urgent
            self._urgent_run += errand.urgent
            _do(errand)
            if errand.alone and write():
                return

    def rest(self, seconds: float | None) -> float | None:
        """Prepare for sleep: the next errand rings.

        After errands that can wait the thread only dozes, and more of them do not ring: to wake it for each one of
        them costs more than what they do.

        Args:
            seconds: How long to sleep at most; None for ever.

        Returns:
            How long to sleep at most: not at all if there is an errand that cannot wait.
        """
        with self._lock:
            self._asleep = self._urgent_posted == self._urgent_run
            self._dozing = self._busy or bool(self._errands)
        if not self._asleep:
            return 0
        if self._dozing:
            return _DOZE if seconds is None else min(_DOZE, seconds)
        return seconds

    def rise(self) -> None:
        """Sleep is over: until the next one nobody needs to ring, whatever ended it."""
        self._asleep = False

    def _wake(self) -> None:
        try:
            self.ring()
        except BaseException:  # of a signal handler, say: the next one rings
            self._asleep = True
            raise

    def ring(self) -> None:
        """Wake the thread."""
        with suppress(OSError):  # full: it is awake anyway; closed: it will fail the errands
            self._button.send(b"\0")

    def hear(self) -> None:
        """Let the bell be silent again."""
        with suppress(BlockingIOError):
            self.bell.recv(_RINGS)

    def refuse(self, error: JMSError) -> None:
        """Take nothing more; the first reason holds."""
        with self._lock:
            self.error = self.error or error

    def check(self) -> None:
        """Raise `ConnectionLostError` if nothing is taken any more."""
        if self.error is not None:
            raise ConnectionLostError(str(self.error)) from self.error

    def leave(self, error: ConnectionLostError) -> None:
        """Take nothing more, without the lock, which a thread may hold that is not in this forked child."""
        self.error = error
        self._button.close()
        self.bell.close()

    def close(self) -> None:
        """Tell those who wait for an errand that it will not run."""
        self.refuse(ConnectionLostError("The connection is closed."))
        while self._errands:
            _fail(self._errands.popleft(), ConnectionLostError(str(self.error)))
        self._button.close()
        self.bell.close()


def _do(errand: Errand) -> None:
    try:
        errand.function()
    except JMSError as error:
        _fail(errand, error)
    except Exception as error:  # how much of it was written nobody knows: the connection ends with it
        lost = ConnectionLostError(f"A step on the connection failed, and it was given up: {error!r:.500}")
        lost.__cause__ = error
        _fail(errand, lost)
        raise


def _fail(errand: Errand, error: JMSError) -> None:
    """Tell who waits; if nobody does, the error of a link that has ended is told to all who use it."""
    if errand.reply is not None and not errand.reply.done():
        errand.reply.set_exception(error)
