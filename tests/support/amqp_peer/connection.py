"""One accepted connection, frame by frame, and the point where a test cuts it."""

import socket
import struct
import threading
from contextlib import contextmanager, suppress
from typing import NamedTuple

from amqp_peer.frames import Frame, frame, read_frames

__all__ = ["Cut", "Gone", "Line"]

_RESET = struct.pack("ii", 1, 0)


class Gone(Exception):  # noqa: N818  # nothing went wrong
    """The connection is over: the client closed it, or it was cut."""


class Cut(NamedTuple):
    """Where a connection ends.

    A frame of the client (``up``) that is cut before never arrives; after, it is carried out and its answers are lost.
    Of one to the client (``down``) nothing, a half (``inside``) or all is written; after all of it the end is in order.
    ``silent`` ends nothing: from there on the client is heard, and nothing more is written.
    """

    direction: str
    index: int
    moment: str


class Line:
    """Reads and writes frames, and remembers them.

    Args:
        sock: The accepted socket.
        cut: Where it ends; None if the client ends it.

    Attributes:
        log: What passed or was cut, one line each.
        frames: The same as frames.
        counts: How many frames passed in each direction.
        heartbeats: Can be acquired once for each of the client's.
    """

    def __init__(self, sock, cut=None):
        self._socket = sock
        self._cut = cut
        self._buffer = bytearray()
        self._frames = iter(())
        self._dying = self._muted = False
        self.log = []
        self.frames = []
        self.counts = {"up": 0, "down": 0}
        self.heartbeats = threading.Semaphore(0)

    def read(self):
        """Give the client's next frame, heartbeats left out."""
        while True:
            if self._dying:
                self.end()
            found = next(self._frames, None)
            if found is None:
                self._receive()
            elif isinstance(found, bytes) or found.body is not None:
                return self._arrived(found)
            else:
                self.heartbeats.release()

    def write(self, body, channel=0, payload=b""):
        """Write a frame; bytes are written as they are."""
        if self._dying or self._muted:
            return
        data = body if isinstance(body, bytes) else frame(body, channel, payload)
        moment = self._moment("down")
        if moment == "silent":
            self.mute()
            return
        self.log.append(f"← {f'{len(body)} bytes' if isinstance(body, bytes) else body}"[:200])
        self.frames.append(Frame(None if isinstance(body, bytes) else body, channel, payload))
        if moment == "before":
            self.end(reset=True)
        self._send(data[: len(data) // 2] if moment == "inside" else data)
        if moment:
            self.end()

    @contextmanager
    def together(self):
        """Let the client read at once what is written meanwhile."""
        pieces, send = [], self._send
        self._send = pieces.append
        yield
        self._send = send
        send(b"".join(pieces))

    def mute(self):
        """Write nothing more: what the client does is done, and its answers are lost."""
        self._muted = True

    def end(self, *, reset=False):
        """End the connection, by default in order: what was written is read before the end.

        Raises:
            Gone: Always.
        """
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        else:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
                while self._socket.recv(65536):  # unread bytes would make it a reset
                    pass
        self._socket.close()
        raise Gone

    def _receive(self):
        try:
            data = self._socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            raise Gone
        self._buffer += data
        self._frames = read_frames(self._buffer)

    def _arrived(self, found):
        moment = self._moment("up")
        self.log.append(f"→ {found}")
        self.frames.append(found if isinstance(found, Frame) else Frame(None))
        if moment == "before":
            self.end(reset=True)
        if moment == "silent":
            self.mute()
        self._dying = moment == "after"
        return found

    def _moment(self, direction):
        index = self.counts[direction]
        self.counts[direction] += 1
        return self._cut.moment if self._cut and self._cut[:2] == (direction, index) else None

    def _send(self, data):
        try:
            self._socket.sendall(data)
        except OSError:
            raise Gone from None
