"""Wakeup of consumers when there may be a message for them, in this process and in others."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

__all__ = ["WakeupCounter", "WakeupSocket", "remove_wakeup_socket"]

_PREFIX, _NAME = "jmsjca-", "bell"  # earlier releases, which may use the same file, expect this name


class WakeupCounter:
    """Counts wakeups. A consumer waits for a value other than the one it has seen, so it misses no wakeup."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._value = 0

    @property
    def value(self) -> int:
        """The number of wakeups; read it before the check for messages."""
        return self._value

    def notify(self) -> None:
        """Wake all waiting consumers of this process."""
        with self._condition:
            self._value += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Wait until the value differs from `seen`, `timeout` seconds at most."""
        with self._condition:
            self._condition.wait_for(lambda: self._value != seen, timeout)


class WakeupSocket:
    """The datagram socket of this process, through which other processes wake its consumers.

    Args:
        counter: Notified of each datagram.

    Raises:
        OSError: There is no folder for temporary files that can be written and has a short name.
    """

    def __init__(self, counter: WakeupCounter) -> None:
        self._counter = counter
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        # Not beside the broker's file: the path of a UNIX socket is limited to about 100 bytes.
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        self.path = f"{folder}/{_NAME}"
        try:
            self._socket.bind(self.path)
        except BaseException:  # also of a signal handler
            self.close()
            with contextlib.suppress(OSError):  # which it has removed if the socket was made
                Path(folder).rmdir()
            raise

    def listen(self) -> None:
        """Start the thread that listens, if it does not run; the first consumer that waits calls this."""
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._listen, name="jmsjca-wakeup", daemon=True)
                self._thread.start()

    def wake_others(self, paths: Iterable[str]) -> None:
        """Wake other processes. A socket that is full or gone is ignored: its process polls anyway."""
        for path in paths:
            with contextlib.suppress(OSError):
                self._sender.sendto(b"r", path)

    def stop(self) -> None:
        """Stop listening; other processes can still be woken.

        Call it before `close`: the thread is woken through the socket.
        """
        with self._lock:  # a thread that `listen` creates at this moment has started when the lock is free
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
        """Close the file descriptors only; for a forked child: its parent still uses the socket."""
        self._socket.close()
        self._sender.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stopped:
                self._socket.recv(1)
                self._counter.notify()


def remove_wakeup_socket(path: str) -> None:
    """Remove the wakeup socket of a process with its folder, if it exists.

    The path comes from a file that other processes write, so only a socket of the expected name is removed, and its
    folder only if it is empty after that.
    """
    place = Path(path)
    if place.name != _NAME or not place.parent.name.startswith(_PREFIX):
        return
    with contextlib.suppress(OSError):
        if place.is_socket():
            place.unlink()
            place.parent.rmdir()
