"""A connected socket that one thread reads while others write, TLS included."""

import select
import socket
import ssl
import threading
from contextlib import suppress

from jmsjca.providers.network import acknowledge_quickly

__all__ = ["Channel", "WriteError"]

_CHUNK = 256 * 1024


class WriteError(OSError):
    """The connection broke while something was written.

    Attributes:
        written: How many bytes of it the broker may have.
    """

    def __init__(self, written: int, reason: str) -> None:
        super().__init__(f"{reason}, {written} bytes into a write")
        self.written = written


class Channel:
    """Reads never wait for writes. OpenSSL allows one call at a time: the socket does not block, and a lock guards it.

    Args:
        connected: The socket, its handshake done.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._calls = threading.Lock()
        self._writers = threading.Lock()
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connected, select.POLLIN)
        self._writable.register(connected, select.POLLOUT)
        self._closed = False

    def read(self, timeout: float) -> bytes | None:
        """Wait for bytes; none if the other side closed, None if so many seconds passed.

        Raises:
            OSError: The connection broke.
        """
        data = self._receive()
        if data is None and self._readable.poll(timeout * 1000):
            data = self._receive()
        return data

    def write(self, data: bytes) -> None:
        """Write all of it at once, nothing of other writers in between.

        Raises:
            WriteError: The connection broke.
        """
        view, written = memoryview(data), 0
        with self._writers:
            while written < len(data):
                try:
                    written += self._send(view[written:])
                except OSError as error:
                    raise WriteError(written, str(error)) from error

    def write_if_idle(self, data: bytes) -> None:
        """Write a few bytes unless somebody writes already, or the other side does not read."""
        if self._writers.acquire(blocking=False):
            try:
                if self._writable.poll(0):
                    with self._calls, suppress(OSError):  # the reader learns of a broken connection
                        self._socket.send(data)
            finally:
                self._writers.release()

    def shut(self) -> None:
        """End the connection for both sides: reads end, writes fail. The socket itself stays until `close`."""
        self._closed = True
        with suppress(OSError):
            # Not SSLSocket.shutdown(), which makes the socket a clear-text one under the feet of a writer.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket; for the thread that reads."""
        self.shut()
        with self._calls, suppress(OSError):
            self._socket.close()

    def _receive(self) -> bytes | None:
        try:
            with self._calls:
                data = self._socket.recv(_CHUNK)
                acknowledge_quickly(self._socket)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        return data

    def _send(self, view: memoryview) -> int:
        try:
            with self._calls:
                if self._closed:
                    raise ConnectionAbortedError("The connection was closed")
                return self._socket.send(view)
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            self._writable.poll(1000)
        except ssl.SSLWantReadError:  # the reader fetches what OpenSSL waits for
            self._writable.poll(1)
        return 0
