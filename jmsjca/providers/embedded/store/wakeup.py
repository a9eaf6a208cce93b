"""Wakes consumers when there may be a message for them, in this process and in others."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

__all__ = ["WakeupCounter", "WakeupSocket"]

_PREFIX, _NAME = "jmsjca-", "bell"


class WakeupCounter:
    """Counts rings; a waiter that has seen the latest ring waits for the next, so no ring is missed."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._value = 0

    @property
    def value(self) -> int:
        """How often it rang; read it before looking for work."""
        return self._value

    def notify(self) -> None:
        """Wake all waiters of this process."""
        with self._condition:
            self._value += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return at a ring later than those seen, or after so many seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._value != seen, timeout)


class WakeupSocket:
    """One datagram socket per process that lets other processes ring a `Bell`.

    Args:
        bell: What a datagram rings.

    Raises:
        OSError: There is no folder for temporary files that can be written and has a short name.
    """

    def __init__(self, counter: WakeupCounter) -> None:
        self._counter = counter
        # Not beside the broker's file: the path of a UNIX socket is limited to about 100 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.path = str(self._folder / _NAME)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.bind(self.path)
        except OSError:
            self._socket.close()
            self._folder.rmdir()
            raise
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Start to listen; called by the first consumer that waits."""
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._listen, name="jmsjca-wakeup", daemon=True)
                self._thread.start()

    def wake_others(self, paths: Iterable[str]) -> None:
        """Ring the doorbells of other processes. One that is full or gone is left alone: it will look by itself."""
        for path in paths:
            with contextlib.suppress(OSError):
                self._sender.sendto(b"r", path)

    def stop(self) -> None:
        """Stop listening; others can still be rung. Before the socket is removed, or the thread could not be told."""
        with self._lock:  # a thread that is set up just now has been started when we have the lock
            self._stopped = True
            thread = self._thread
        if thread is not None:
            self.wake_others([self.path])
            thread.join(timeout=5)

    def close(self) -> None:
        """Remove the socket."""
        self.abandon_after_fork()
        remove_wakeup_socket(self.path)

    def abandon_after_fork(self) -> None:
        """Let go of the file descriptors without a word; for forked children."""
        self._socket.close()
        self._sender.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stopped:
                self._socket.recv(1)
                self._counter.notify()


def remove_wakeup_socket(path: str) -> None:
    """Remove a doorbell with its folder, if it is there.

    The path stands in a file that others may write, so nothing is removed but a socket of its name, and its folder
    only when that is empty then.
    """
    place = Path(path)
    if place.name != _NAME or not place.parent.name.startswith(_PREFIX):
        return
    with contextlib.suppress(OSError):
        if place.is_socket():
            place.unlink()
            place.parent.rmdir()
