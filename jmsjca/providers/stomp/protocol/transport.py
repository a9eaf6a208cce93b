"""The connection to a broker: a non-blocking socket, heart-beats, and a bounded reader in stomp.py's transport."""

# stomp.py has no annotations.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

import math
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from time import monotonic

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.common.network import connection_error, request_quick_ack, spoken_protocol
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser, protocol_error
from jmsjca.providers.stomp.protocol.stomp_py import BaseTransport, calculate_heartbeats

__all__ = [
    "FrameDeadline",
    "Heartbeat",
    "STOMPTransport",
    "SocketChannel",
    "WriteError",
    "agreed_heartbeat",
    "heartbeat_of",
]

_CHUNK = 256 * 1024

_MIN_BYTES_PER_SECOND = 1000


class WriteError(OSError):
    """The connection broke during a write.

    Attributes:
        written: Number of bytes of it that the broker may have received.
    """

    def __init__(self, written: int, reason: str) -> None:
        super().__init__(f"{reason}, {written} bytes into a write")
        self.written = written


class StalledWriteError(WriteError):
    """The broker is connected and reads nothing: for example because it is short of memory or disk space."""


class SocketChannel:
    """A non-blocking socket. Its reads never wait for writes.

    A lock guards each call, because OpenSSL allows one call at a time.

    Args:
        connected: The socket, after its TLS handshake.
        patience: Seconds that a write waits while the broker reads nothing.
    """

    def __init__(self, connected: socket.socket, patience: float) -> None:
        connected.setblocking(False)
        self._patience = patience
        self._end_of_writes = math.inf  # on the monotonic clock
        self._socket = connected
        self._calls = threading.Lock()
        self._writers = threading.Lock()
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connected, select.POLLIN)
        self._writable.register(connected, select.POLLOUT)
        self._closed = False
        self._in_frame = False

    def read(self, timeout: float) -> bytes | None:
        """Wait for bytes; return b"" if the broker closed the connection, None after `timeout` seconds.

        Raises:
            OSError: The connection broke.
        """
        data = self._receive()
        if data is None and self._readable.poll(timeout * 1000):
            data = self._receive()
        return data

    def write(self, data: bytes) -> None:
        """Write all of the data, without bytes of other writers in between.

        Raises:
            StalledWriteError: The broker reads nothing.
            WriteError: The connection broke.
        """
        with self._writers:
            if self._in_frame:
                raise WriteError(0, "A write was interrupted before")
            self._in_frame = True  # until all is written: nothing may follow a part of a frame
            self._write(memoryview(data))
            self._in_frame = False

    def limit_writes(self, timeout: float) -> None:
        """End all writes of all threads that take longer than a number of seconds from now."""
        self._end_of_writes = monotonic() + timeout

    def write_if_idle(self, data: bytes) -> None:
        """Write a few bytes, unless another thread is writing or the broker does not read."""
        if self._writers.acquire(blocking=False):
            try:
                if self._writable.poll(0) and not self._in_frame:
                    with self._calls, suppress(OSError):  # the receiver thread notices a broken connection
                        self._socket.send(data)
            finally:
                self._writers.release()

    def shutdown(self) -> None:
        """End the connection in both directions: reads end, writes fail. The socket stays open until `close`."""
        self._closed = True
        with suppress(OSError):
            # Not SSLSocket.shutdown(), after which a concurrent writer would send clear text.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket. The receiver thread calls it."""
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

    def _write(self, view: memoryview) -> None:
        written, last = 0, monotonic()
        while written < len(view):
            left = min(last + self._patience, self._end_of_writes) - monotonic()
            try:
                size = self._send(view[written:], max(left, 0))
            except OSError as error:
                raise WriteError(written, str(error)) from error
            written += size
            if left <= 0 and written < len(view):
                waited = f"The broker has read nothing for {self._patience:g} seconds"
                raise StalledWriteError(written, waited if last + self._patience <= monotonic() else "It took too long")
            if size:
                last = monotonic()

    def _send(self, view: memoryview, timeout: float) -> int:
        """Write what the socket takes; return the number of bytes, 0 after a wait for it."""
        try:
            with self._calls:
                if self._closed:
                    raise ConnectionAbortedError("The connection was closed")
                return self._socket.send(view)
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            self._writable.poll(1000 * min(timeout, 1))
        except ssl.SSLWantReadError:  # the receiver thread reads the data that OpenSSL waits for
            self._writable.poll(1)
        return 0


class STOMPTransport(BaseTransport):
    """stomp.py's transport over a socket that is connected and verified already.

    stomp.py's base class keeps the listeners, hands them each frame (`notify`) and writes frames one at a time
    (`transmit`, which calls `send`). Its socket and its receiver loop are not used: the loop buffers without a limit,
    accepts malformed frames and logs bodies. `start` runs another loop in their place.

    Args:
        channel: The connected socket.
        parser: Reads frames.
        clock: Source of time.
        frame_timeout: Seconds that any frame may take from its first byte to its last.
        on_messages: Called on the receiver thread with each run of MESSAGE frames of one subscription.

    Attributes:
        reason: Why the connection ended; None while it has not, or if the broker just closed it.
    """

    def __init__(
        self,
        channel: SocketChannel,
        parser: FrameParser,
        clock: Clock,
        *,
        frame_timeout: float,
        on_messages: Callable[[str, Sequence[Frame]], None],
    ) -> None:
        super().__init__(auto_decode=False)
        self._channel = channel
        self._parser = parser
        self._on_messages = on_messages
        self._clock = clock
        self._heartbeat = Heartbeat(clock)
        self._frame_deadline = FrameDeadline(clock, frame_timeout)
        self.io_thread: threading.Thread | None = None
        self.reason: JMSError | None = None

    def start(self) -> None:
        """Start the receiver thread."""
        self.running = True
        thread = threading.Thread(target=self._run, name="jmsjca-stomp", daemon=True)
        thread.start()
        self.io_thread = thread

    def start_heartbeat(self, write: float, read: float) -> None:
        """Start heart-beats.

        Args:
            write: Seconds within which this side must write; 0 for never.
            read: Seconds within which the broker promised to write; 0 for never.
        """
        self._heartbeat = Heartbeat(self._clock, write, 2 * read)

    def send(self, encoded_frame: bytes) -> None:
        """Write one or more whole frames at once.

        Raises:
            WriteError: The connection broke.
        """
        try:
            self._channel.write(encoded_frame)
        except StalledWriteError as error:  # the receiver thread does not notice it, as it does other errors
            self.end(ConnectionLostError(f"{error}."))
            raise
        self._heartbeat.on_write()

    def limit_writes(self, timeout: float) -> None:
        """End writes that take longer from now on, as `SocketChannel.limit_writes` does."""
        self._channel.limit_writes(timeout)

    def end(self, reason: JMSError) -> None:
        """End the connection. Of several reasons the first one is kept."""
        self._keep(reason)
        self.running = False
        self._channel.shutdown()
        if self.io_thread is None:  # there is no receiver thread that would release the socket
            self._channel.close()

    def _keep(self, reason: JMSError) -> JMSError:
        """Record the reason of the end, unless another one is known; return the one that is kept."""
        self.reason = reason if self.reason is None else self.reason
        return self.reason

    def _run(self) -> None:
        """Receive until the connection ends; then release the socket, and notify the listeners."""
        try:
            while self.running and self._receive():
                pass
        except JMSError as error:
            self._keep(error)
        except OSError as error:
            self._keep(connection_error("The connection to the broker broke", error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the connection cannot go on
            self._keep(ConnectionLostError("A frame could not be handled.")).__cause__ = error
        finally:
            self.running = False
            self._channel.close()
            self.notify("disconnected")

    def _receive(self) -> bool:
        """Read once and handle the frames that are complete; False once the broker has closed the connection."""
        data = self._channel.read(self._heartbeat.poll_interval)
        if self._heartbeat.is_write_due:
            self._channel.write_if_idle(b"\n")
            self._heartbeat.on_write()
        if data is not None:
            self._heartbeat.on_read()
            self._parse(data)
        elif self._heartbeat.is_peer_silent:
            raise ConnectionLostError("The broker was silent for longer than it promised; it is taken for dead.")
        if data == b"":
            self._dispatch(self._parser.finish())
        if self._parser.unfinished:
            spoken = spoken_protocol(self._parser.beginning)
            if spoken not in {None, "STOMP"}:  # such a server may wait for more, and never complete a frame
                raise protocol_error(f"it speaks {spoken}")
            self._frame_deadline.check(self._parser.unfinished)
        return data != b""

    def _parse(self, data: bytes) -> None:
        """Handle every complete frame, also those in front of a frame that breaks the protocol."""
        if not self._parser.unfinished:
            self._frame_deadline.restart()
        frames = self._parser.feed(data)
        while frames:
            self._frame_deadline.restart()
            self._dispatch(frames)
            frames = self._parser.feed(b"")

    def _dispatch(self, frames: Sequence[Frame]) -> None:
        """Hand messages over in runs, and every other frame to the listeners, in the order of receipt."""
        for subscription, group in groupby(frames, _subscription_of):
            if subscription is not None:
                self._on_messages(subscription, list(group))
            else:
                for frame in group:
                    self.notify(frame.cmd.lower(), frame)


def _subscription_of(frame: Frame) -> str | None:
    return frame.headers["subscription"] if frame.cmd == "MESSAGE" else None


class Heartbeat:
    """Times of the last write and the last read of a connection.

    Args:
        clock: Source of time.
        write: Seconds without a write after which the broker gives up; 0 for never.
        read: Seconds without a byte after which the broker is taken for dead; 0 for never.
    """

    def __init__(self, clock: Clock, write: float = 0.0, read: float = 0.0) -> None:
        self._clock = clock
        self._write = write
        self._read = read
        self._last_write = self._last_read = clock.monotonic()

    @property
    def poll_interval(self) -> float:
        """Seconds that may pass until `is_write_due` and `is_peer_silent` must be checked again."""
        intervals = [seconds for seconds in (self._write / 2, self._read / 4) if seconds]
        return min(intervals, default=60.0)

    def on_write(self) -> None:
        """Record a write."""
        self._last_write = self._clock.monotonic()

    def on_read(self) -> None:
        """Record a read."""
        self._last_read = self._clock.monotonic()

    @property
    def is_write_due(self) -> bool:
        """True if a heart-beat should be written now."""
        return bool(self._write) and self._clock.monotonic() - self._last_write >= self._write / 2

    @property
    def is_peer_silent(self) -> bool:
        """True if the broker has been silent for too long."""
        return bool(self._read) and self._clock.monotonic() - self._last_read > self._read


class FrameDeadline:
    """Deadline for the rest of a frame, for a peer that sends single bytes and never a whole frame.

    Args:
        clock: Source of time.
        seconds: Seconds that any frame may take; a longer one may take as many more as its bytes need at the lowest
            rate.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._started = clock.monotonic()

    def restart(self) -> None:
        """Restart the time: the next frame begins now at the earliest."""
        self._started = self._clock.monotonic()

    def check(self, unfinished: int) -> None:
        """Check the frame that has been received in part.

        Args:
            unfinished: Bytes of it that have been received.

        Raises:
            ConnectionLostError: The frame arrives too slowly.
        """
        waited = self._clock.monotonic() - self._started
        if waited > self._seconds + unfinished / _MIN_BYTES_PER_SECOND:
            raise ConnectionLostError(
                f"The broker sent {unfinished} bytes of a frame in {waited:.0f} seconds and not the rest; it is taken"
                " for dead."
            )


def heartbeat_of(answer: Mapping[str, str], offer: int) -> tuple[int, int]:
    """Return the heart-beats that the CONNECTED frame agrees to.

    Args:
        answer: The headers of CONNECTED.
        offer: Milliseconds that this side offered, for both directions.

    Returns:
        Milliseconds within which this side must write, and within which the broker will; 0 for never.

    Raises:
        ConnectionLostError: The header heart-beat is malformed.
    """
    try:
        return agreed_heartbeat(answer.get("heart-beat", "0,0"), offer)
    except ValueError as error:
        raise ConnectionLostError("The broker broke the STOMP protocol: its heart-beat header is none.") from error


def agreed_heartbeat(theirs: str, ours: int) -> tuple[int, int]:
    """Return the heart-beats that follow from the headers of both sides, by stomp.py's negotiation.

    stomp.py is given checked numbers only: it would take "00" for a heart-beat, and a sign or a fraction for a number.

    Args:
        theirs: The header of the CONNECTED frame.
        ours: Milliseconds that this side offered, for both directions.

    Returns:
        Milliseconds within which this side must write, and within which the broker will; 0 for never.

    Raises:
        ValueError: The header is malformed.
    """
    sends, expects = theirs.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() for part in (sends, expects)):
        raise ValueError(theirs)
    write, read = calculate_heartbeats((str(int(sends)), str(int(expects))), (ours, ours))
    return write, read
