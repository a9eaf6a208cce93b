"""The exact, bounded reader of STOMP frames."""

import re

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.heads import MAX_LINE, broken, parse_head

__all__ = ["FrameParser"]

MAX_COMMAND = 32
MAX_HEAD = 1024 * 1024

_WITH_BODY = {"MESSAGE", "ERROR"}
_HEAD_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(r"\d{1,18}\Z", re.ASCII)


class FrameParser:
    """Turns bytes into frames, however they were cut. Whatever breaks the protocol ends the connection.

    Args:
        max_body: The largest body.

    Attributes:
        version: The version spoken; set once the broker has chosen.
    """

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._start = 0  # of the frame that is being read
        self._seen = 0  # how far its end has been looked for
        self._head: tuple[str, dict[str, str], int, int | None] | None = None
        self.version = "1.2"

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes; give the frames that they complete.

        Raises:
            ConnectionLostError: They break the protocol or a limit. What is whole before that is given first, and this
                raised by the next call, which needs no further bytes.
        """
        self._buffer += data
        frames: list[Frame] = []
        try:
            while (frame := self._next()) is not None:
                frames.append(frame)
        except ConnectionLostError:
            if not frames:
                raise
        del self._buffer[: self._start]
        self._seen -= self._start
        if self._head is not None:
            command, headers, body, length = self._head
            self._head = (command, headers, body - self._start, length)
        self._start = 0
        return frames

    @property
    def unfinished(self) -> int:
        """How many bytes have come of a frame that is not complete."""
        return len(self._buffer)

    def _next(self) -> Frame | None:
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None  # noqa: S101  # read just now
        command, headers, begin, length = self._head
        end = self._body_end(begin, length)
        if end is None:
            return None
        body = bytes(memoryview(self._buffer)[begin:end])
        if body and command not in _WITH_BODY:
            raise broken(f"a {command} frame has a body")
        frame = Frame(command, headers, body, end + 1 - self._start)
        self._start = self._seen = end + 1
        self._head = None
        return frame

    def _read_head(self) -> bool:
        self._skip_line_ends()
        found = _HEAD_END.search(self._buffer, max(self._start, self._seen - 2))
        size = (found.start() if found else len(self._buffer)) - self._start
        if size > MAX_HEAD:
            raise broken(f"the head of a frame is longer than {MAX_HEAD} bytes")
        if found is None:
            self._check_unfinished()
            self._seen = len(self._buffer)
            return False
        command, headers = parse_head(bytes(memoryview(self._buffer)[self._start : found.start()]), self.version)
        self._head = (command, headers, found.end(), self._length(headers))
        self._seen = found.end()
        return True

    def _skip_line_ends(self) -> None:
        buffer, end = self._buffer, len(self._buffer)
        while self._start < end:
            if buffer.startswith(b"\n", self._start):
                self._start += 1
            elif buffer.startswith(b"\r\n", self._start):
                self._start += 2
            else:
                break
        self._seen = max(self._seen, self._start)

    def _check_unfinished(self) -> None:
        begins = self._buffer[self._start : self._start + MAX_COMMAND + 1]
        if len(begins) > MAX_COMMAND and b"\n" not in begins:
            raise broken("a frame begins with no command")
        if len(self._buffer) - self._buffer.rfind(b"\n") - 1 > MAX_LINE:
            raise broken(f"a header is longer than {MAX_LINE} bytes")

    def _length(self, headers: dict[str, str]) -> int | None:
        text = headers.get("content-length")
        if text is None:
            return None
        if not _LENGTH.match(text):
            raise broken("a content-length is no number")
        self._check_body(int(text))
        return int(text)

    def _check_body(self, size: int) -> None:
        if size > self._max_body:
            raise broken(f"a body is larger than the limit of {self._max_body} bytes")

    def _body_end(self, begin: int, length: int | None) -> int | None:
        """Where the NUL behind the body is; None if it has not come."""
        if length is None:
            end = self._buffer.find(0, self._seen)
            self._seen = end if end >= 0 else len(self._buffer)
            self._check_body(self._seen - begin)
            return end if end >= 0 else None
        if len(self._buffer) <= begin + length:
            return None
        if self._buffer[begin + length] != 0:
            raise broken("a body does not end where its content-length says")
        return begin + length
