"""The connection to a broker: socket and TLS, exact frames, bounded memory, no secrets in logs.

Of stomp.py, which has no types, the connection life cycle is used: the receiver thread, its end, the notice of it. Its
parser, writer and TLS are not: they know no limits, escape no header names, write passwords into the log and may fall
back to clear text.
"""

import os
import select
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.common.network import connection_error, request_quick_ack
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser
from jmsjca.providers.stomp.protocol.heartbeat import FrameDeadline, Heartbeat

__all__ = ["Lifecycle", "ReceiverThread", "SocketChannel", "WriteError"]

_CHUNK = 256 * 1024


class WriteError(OSError):
    """The connection broke while something was written.

    Attributes:
        written: How many bytes of it the broker may have.
    """

    def __init__(self, written: int, reason: str) -> None:
        super().__init__(f"{reason}, {written} bytes into a write")
        self.written = written


class SocketChannel:
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

    def shutdown(self) -> None:
        """End the connection for both sides: reads end, writes fail. The socket itself stays until `close`."""
        self._closed = True
        with suppress(OSError):
            # Not SSLSocket.shutdown(), which makes the socket a clear-text one under the feet of a writer.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket; for the thread that reads."""
        self.shutdown()
        with self._calls, suppress(OSError):
            self._socket.close()

    def _receive(self) -> bytes | None:
        try:
            with self._calls:
                data = self._socket.recv(_CHUNK)
                request_quick_ack(self._socket)
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


# stomp.py asks the name service for this host's names when it is imported, which can take seconds and serves nothing.
_SCAN = "STOMP_SKIP_HOSTNAME_SCAN"
_before = os.environ.get(_SCAN)
os.environ[_SCAN] = "1"
try:
    from stomp.transport import BaseTransport  # type: ignore[import-untyped]
finally:
    if _before is None:
        del os.environ[_SCAN]
    else:
        os.environ[_SCAN] = _before

if TYPE_CHECKING:

    class Lifecycle:
        """What of stomp.py's transport is used, as types see it."""

        running: bool
        io_thread: threading.Thread | None

        def __init__(self, *, auto_decode: bool) -> None: ...

        def override_threading(self, create_thread_fc: Callable[[Callable[[], None]], Any]) -> None:
            """Choose how the receiver thread is made."""

        def start(self) -> None:
            """Begin to receive."""

        def set_listener(self, name: str, listener: object) -> None:
            """Name who is told of the end."""

else:
    Lifecycle = BaseTransport

_HANDLED = b"\n"  # looks like a heart-beat to stomp.py: nothing is left for its own parser


class ReceiverThread(Lifecycle):
    """Keeps stomp.py's receiver thread and its life cycle, and replaces what it reads and writes with.

    Its own parser knows no limits and guesses, its writer escapes no header names and logs passwords, and its TLS falls
    back to clear text when a host name is spelled differently; so `receive` hands whole frames on by itself, and only
    `write` writes.

    Args:
        channel: The connected socket.
        parser: What reads frames.
        clock: Where time comes from.
        patience: Seconds that any frame may take from its first byte to its last.
        received: Told of every chunk of frames, on the receiver thread.
        ended: Told once why the connection ended, on the receiver thread.
    """

    def __init__(
        self,
        channel: SocketChannel,
        parser: FrameParser,
        clock: Clock,
        *,
        patience: float,
        received: Callable[[Sequence[Frame]], None],
        ended: Callable[[JMSError], None],
    ) -> None:
        super().__init__(auto_decode=False)
        self._channel = channel
        self._parser = parser
        self._received = received
        self._ended = ended
        self._reason: JMSError | None = None
        self._clock = clock
        self._heartbeat = Heartbeat(clock)
        self._frame_deadline = FrameDeadline(clock, patience)
        self.override_threading(_start_thread)
        self.set_listener("jmsjca", self)

    def start_heartbeat(self, write: float, read: float) -> None:
        """Turn heart-beats on: seconds until this side must write, and in which the broker will; 0 for never."""
        self._heartbeat = Heartbeat(self._clock, write, 2 * read)

    def write(self, data: bytes) -> None:
        """Write whole frames at once.

        Raises:
            WriteError: The connection broke.
        """
        self._channel.write(data)
        self._heartbeat.on_write()

    def end(self, reason: JMSError) -> None:
        """End the connection for a reason; the first one counts."""
        self._reason = self._reason or reason
        self.running = False
        self._channel.shutdown()
        if self.io_thread is None:  # nobody reads who would release the socket
            self._channel.close()

    def attempt_connection(self) -> None:
        """Nothing to do for stomp.py: the socket is connected and verified."""

    def receive(self) -> bytes:
        """Read and hand on what came, for stomp.py's receiver loop; nothing once the connection ended."""
        try:
            return self._receive()
        except JMSError as error:
            self._reason = self._reason or error
        except OSError as error:
            self._reason = self._reason or connection_error("The connection to the broker broke", error)
        except Exception as error:  # noqa: BLE001  # stomp.py would swallow it
            self._reason = self._reason or ConnectionLostError("A frame could not be handled.")
            self._reason.__cause__ = error
        return b""

    def cleanup(self) -> None:
        """Close the socket: stomp.py's receiver loop is over."""
        self._channel.close()

    def on_disconnected(self) -> None:
        """Tell why it ended; called once by stomp.py."""
        self._ended(self._reason or ConnectionLostError("The broker closed the connection."))

    def _receive(self) -> bytes:
        data = self._channel.read(self._heartbeat.poll_interval)
        if self._heartbeat.is_write_due:
            self._channel.write_if_idle(b"\n")
            self._heartbeat.on_write()
        if data is None:
            self._check_silence()
        else:
            self._heartbeat.on_read()
            self._dispatch(data)
        if self._parser.unfinished:
            self._frame_deadline.check(self._parser.unfinished)
        return b"" if data == b"" else _HANDLED

    def _dispatch(self, data: bytes) -> None:
        """Let everything be handled that is whole, also before what breaks the protocol."""
        if not self._parser.unfinished:
            self._frame_deadline.restart()
        frames = self._parser.feed(data)
        while frames:
            self._frame_deadline.restart()
            self._received(frames)
            frames = self._parser.feed(b"")

    def _check_silence(self) -> None:
        if self._heartbeat.is_peer_silent:
            raise ConnectionLostError("The broker was silent for longer than it promised; it is taken for dead.")


def _start_thread(loop: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=loop, name="jmsjca-stomp", daemon=True)
    thread.start()
    return thread
