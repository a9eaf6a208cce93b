"""The exact, bounded reader of STOMP frames."""

import re

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.frames import ESCAPES, Frame

__all__ = ["FrameParser"]

MAX_COMMAND = 32
MAX_HEAD = 1024 * 1024
MAX_LINE = 256 * 1024
MAX_HEADERS = 1000

_REQUIRED = {
    "CONNECTED": ("version",),
    "MESSAGE": ("destination", "message-id", "subscription"),
    "RECEIPT": ("receipt-id",),
    "ERROR": (),
}
_WITH_BODY = {"MESSAGE", "ERROR"}
_HEAD_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(r"\d{1,18}\Z", re.ASCII)
# Headers in which RabbitMQ shows what came over AMQP 1.0: bytes, each of which stands for a character.
_BINARY = b"x-amqp-1.0-"
_UNESCAPES = {version: {new: old for old, new in table.items()} for version, table in ESCAPES.items()}
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


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
            ConnectionLostError: They break the protocol or a limit.
        """
        self._buffer += data
        frames: list[Frame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        del self._buffer[: self._start]
        self._seen -= self._start
        if self._head is not None:
            command, headers, body, length = self._head
            self._head = (command, headers, body - self._start, length)
        self._start = 0
        return frames

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
            raise _broken(f"a {command} frame has a body")
        frame = Frame(command, headers, body, end + 1 - self._start)
        self._start = self._seen = end + 1
        self._head = None
        return frame

    def _read_head(self) -> bool:
        self._skip_line_ends()
        found = _HEAD_END.search(self._buffer, max(self._start, self._seen - 2))
        size = (found.start() if found else len(self._buffer)) - self._start
        if size > MAX_HEAD:
            raise _broken(f"the head of a frame is longer than {MAX_HEAD} bytes")
        if found is None:
            self._check_unfinished()
            self._seen = len(self._buffer)
            return False
        command, headers = self._parse_head(bytes(memoryview(self._buffer)[self._start : found.start()]))
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
        line = self._buffer.rfind(b"\n") + 1
        if line <= self._start and len(self._buffer) - self._start > MAX_COMMAND:
            raise _broken("a frame begins with no command")
        if len(self._buffer) - line > MAX_LINE:
            raise _broken(f"a header is longer than {MAX_LINE} bytes")

    def _parse_head(self, head: bytes) -> tuple[str, dict[str, str]]:
        binary: list[bytes] = []
        if _BINARY in head:
            plain = head.split(b"\n")
            binary = [line for line in plain if line.startswith(_BINARY)]
            head = b"\n".join(line for line in plain if not line.startswith(_BINARY))
        try:
            lines = head.decode().split("\n") + [line.decode("latin-1") for line in binary]
        except UnicodeDecodeError:
            raise _broken("a header is no UTF-8 text") from None
        if self.version != "1.1":  # before 1.2 a carriage return was like any other character
            lines = [line.removesuffix("\r") for line in lines]
        command = lines[0]
        if command not in _REQUIRED:
            raise _broken(f"there is no frame {command[:MAX_COMMAND]!r}")
        if len(lines) - 1 > MAX_HEADERS:
            raise _broken(f"a {command} frame has more than {MAX_HEADERS} headers")
        if b"\0" in head:
            raise _broken(f"a header of a {command} frame holds NUL")
        return command, self._parse_headers(command, lines)

    def _parse_headers(self, command: str, lines: list[str]) -> dict[str, str]:
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, value = self._parse_line(command, line)
            if name == "content-length" and name in headers:
                raise _broken(f"a {command} frame has two content-lengths")
            headers.setdefault(name, value)
        missing = [name for name in _REQUIRED[command] if name not in headers]
        if missing:
            raise _broken(f"a {command} frame has no header {missing[0]}")
        return headers

    def _parse_line(self, command: str, line: str) -> tuple[str, str]:
        name, colon, value = line.partition(":")
        if not colon or not name or len(line) > MAX_LINE:
            raise _broken(f"a {command} frame has a line that is no header")
        if "\r" in line and self.version != "1.1":
            raise _broken(f"a header of a {command} frame holds a bare carriage return")
        if "\\" in line and command != "CONNECTED":  # which is written without escapes
            return self._unescape(command, name), self._unescape(command, value)
        return name, value

    def _unescape(self, command: str, text: str) -> str:
        known = _UNESCAPES[self.version]

        def meaning(found: re.Match[str]) -> str:
            """The character that an escape stands for."""
            plain = known.get(found[0])
            if plain is not None:
                return plain
            if command == "ERROR":  # the connection ends anyway: its reason is worth more than its form
                return found[0]
            raise _broken(f"a header of a {command} frame has an undefined escape")

        return _ESCAPE.sub(meaning, text) if "\\" in text else text

    def _length(self, headers: dict[str, str]) -> int | None:
        text = headers.get("content-length")
        if text is None:
            return None
        if not _LENGTH.match(text):
            raise _broken("a content-length is no number")
        self._check_body(int(text))
        return int(text)

    def _check_body(self, size: int) -> None:
        if size > self._max_body:
            raise _broken(f"a body is larger than the limit of {self._max_body} bytes")

    def _body_end(self, begin: int, length: int | None) -> int | None:
        """Where the NUL behind the body is; None if it has not come."""
        if length is None:
            end = self._buffer.find(0, self._seen)
            self._seen = len(self._buffer)
            self._check_body((end if end >= 0 else self._seen) - begin)
            return end if end >= 0 else None
        if len(self._buffer) <= begin + length:
            return None
        if self._buffer[begin + length] != 0:
            raise _broken("a body does not end where its content-length says")
        return begin + length


def _broken(what: str) -> ConnectionLostError:
    return ConnectionLostError(f"The broker broke the STOMP protocol: {what}. The connection was ended.")
