"""STOMP frames: written, and read exactly and within bounds."""

# stomp.py has no annotations.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from jmsjca.arguments import plain_text
from jmsjca.config.connection_url import check_unicode
from jmsjca.errors import ConfigurationError, ConnectionLostError, MessageFormatError
from jmsjca.providers.stomp.protocol.stomp_py import StompFrame, convert_frame, pack

__all__ = [
    "ESCAPES",
    "MAX_LINE",
    "Frame",
    "FrameParser",
    "check_headers",
    "connect_frame",
    "encode_frame",
    "parse_head",
    "protocol_error",
    "with_headers",
]


class Frame(NamedTuple):
    """A received frame, with the attributes of stomp.py's frames. Of a repeated header the first one counts.

    Its text form shows neither headers nor body, which may hold secrets.
    """

    cmd: str
    headers: Mapping[str, str]
    body: bytes
    size: int  #: bytes on the wire

    def __repr__(self) -> str:
        return f"<Frame {self.cmd}, {self.size} bytes>"


ESCAPES = {
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"},
}
"""The escapes in headers, by version of STOMP."""

_LINE_BREAKING = re.compile("[\0\r\n]")
_NEEDS_ESCAPE = re.compile(r"[\0\r\n:\\]")
# Characters that a header cannot hold: STOMP 1.1 has no escape for a carriage return.
_FORBIDDEN = {"1.1": re.compile("[\0\r]"), "1.2": re.compile("\0")}


def encode_frame(command: str, headers: Mapping[str, str], body: bytes | None = None, *, version: str) -> bytes:
    """Encode a frame, every header name and value escaped.

    Batches of a unit are encoded here, because stomp.py's encoder sorts the headers of each frame, leaves their names
    unescaped, and writes NUL and half surrogate pairs as they are (docs/how-to/providers.md has the measurements).

    Args:
        command: The command.
        headers: Its headers, without content-length, which is added for a body.
        body: The body; None for a frame without one.
        version: The version of STOMP of the connection.

    Raises:
        MessageFormatError: A header holds a character that this version cannot carry, or is not Unicode text.
    """
    special = _NEEDS_ESCAPE.search
    lines = [command]
    for name, value in headers.items():
        if special(name) or special(value):
            lines.append(f"{_escaped(name, name, version)}:{_escaped(name, value, version)}")
        else:
            lines.append(name + ":" + value)  # an f-string would write the name of an enum's member, not its value
    if body is not None:
        lines.append(f"content-length:{len(body)}")
    return _joined(lines, body or b"")


def _escaped(name: str, text: str, version: str) -> str:
    """Return the name or the value of a header with its escapes. `str.translate` would take ten times as long."""
    if _FORBIDDEN[version].search(text):
        raise _not_carried(name, version)
    for character, escape in ESCAPES[version].items():  # the backslash first
        text = text.replace(character, escape)
    return text


def with_headers(frame: bytes, headers: Mapping[str, str]) -> bytes:
    """Return an encoded frame with more headers.

    Args:
        frame: An encoded frame without those headers.
        headers: Headers that need no escapes.
    """
    command, _, rest = frame.partition(b"\n")
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return b"%b\n%b%b" % (command, lines.encode(), rest)


def connect_frame(headers: Mapping[str, str]) -> bytes:
    """Encode a CONNECT frame by stomp.py, which escapes nothing in it, as the specification wants it.

    It is not sent through stomp.py's `transmit`, which logs the password.

    Raises:
        ConfigurationError: A value would break its line. The value is not shown: it may be a password.
    """
    for name, value in headers.items():
        check_unicode(value, f"The header {name} of CONNECT", ConfigurationError)
        if _LINE_BREAKING.search(value):
            raise ConfigurationError(f"The header {name} of CONNECT cannot hold line breaks or NUL.")
    plain = {name: plain_text(value) for name, value in headers.items()}
    encoded: bytes = pack(convert_frame(StompFrame("CONNECT", plain)))
    return encoded


def check_headers(headers: Mapping[str, str], version: str) -> None:
    """Refuse headers that stomp.py would not write as they are.

    Args:
        headers: The headers of one frame.
        version: The version of STOMP of the connection.

    Raises:
        MessageFormatError: A name needs an escape, or a value holds what this version cannot carry.
    """
    for name, value in headers.items():
        if _NEEDS_ESCAPE.search(name) or _FORBIDDEN[version].search(value):
            raise _not_carried(name, version)
        check_unicode(f"{name}{value}", "A header", MessageFormatError)


def _not_carried(name: str, version: str) -> MessageFormatError:
    return MessageFormatError(f"The header {name[:100]!r} holds a character that STOMP {version} cannot carry.")


def _joined(lines: list[str], body: bytes) -> bytes:
    try:
        return b"%b\n\n%b\0" % ("\n".join(lines).encode(), body)
    except UnicodeEncodeError:  # without the cause: its text shows the whole frame
        raise MessageFormatError("A header holds half of a surrogate pair, which is no Unicode text.") from None


MAX_LINE = 256 * 1024
MAX_HEADERS = 1000

_REQUIRED = {
    "CONNECTED": ("version",),
    "MESSAGE": ("destination", "message-id", "subscription"),
    "RECEIPT": ("receipt-id",),
    "ERROR": (),
}
_SHOWN = 32  # characters of an unknown command
# Headers in which RabbitMQ shows sections of AMQP 1.0 as bytes; each byte is read as a character.
_BINARY = b"x-amqp-1.0-"
_UNESCAPES = {version: {new: old for old, new in table.items()} for version, table in ESCAPES.items()}
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


def protocol_error(what: str) -> ConnectionLostError:
    """Return the error of a broken protocol, which ends the connection."""
    return ConnectionLostError(f"The broker broke the STOMP protocol: {what}. The connection was ended.")


def parse_head(head: bytes, version: str, *, may_hold_nul: bool = False) -> tuple[str, dict[str, str]]:
    """Read the head of a frame. Of a repeated header the first one counts.

    Args:
        head: The lines before the empty line.
        version: The version of STOMP of the connection.
        may_hold_nul: True to accept NUL in the headers of a MESSAGE.

    Raises:
        ConnectionLostError: It breaks the protocol or a limit.
    """
    text = _text(head, may_hold_nul=may_hold_nul and head.startswith(b"MESSAGE"))
    if "\r\n" in text and version != "1.1":  # in 1.1 a carriage return is like any other character
        text = text.replace("\r\n", "\n")
    lines = text.removesuffix("\r" if version != "1.1" else "").split("\n")
    command = lines.pop(0)
    if command not in _REQUIRED:
        raise protocol_error(f"there is no frame {command[:_SHOWN]!r}")
    if len(lines) > MAX_HEADERS:
        raise protocol_error(f"a {command} frame has more than {MAX_HEADERS} headers")
    headers = _parse_headers_fast(text, lines, command, version) or _parse_headers(lines, command, version)
    for name in _REQUIRED[command]:
        if name not in headers:
            raise protocol_error(f"a {command} frame has no header {name}")
    return command, headers


def _text(head: bytes, *, may_hold_nul: bool) -> str:
    if _BINARY in head:
        return "\n".join(
            line.decode("latin-1") if line.startswith(_BINARY) else _plain(line, may_hold_nul=may_hold_nul)
            for line in head.split(b"\n")
        )
    return _plain(head, may_hold_nul=may_hold_nul)


def _plain(text: bytes, *, may_hold_nul: bool) -> str:
    if b"\0" in text and not may_hold_nul:
        raise protocol_error("a head holds NUL")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise protocol_error("a header is no UTF-8 text") from None


def _parse_headers_fast(text: str, lines: list[str], command: str, version: str) -> dict[str, str] | None:
    """Read headers fast, which works for nearly all frames; return None if anything about them is unusual."""
    try:
        headers = dict([line.split(":", 1) for line in lines])
    except ValueError:
        return None
    if "" in headers or len(headers) < len(lines) or len(text) > MAX_LINE or "\r" in text:
        return None
    if "\\" in text and command != "CONNECTED":
        return _unescape_fast(headers, version)
    return headers


def _unescape_fast(headers: dict[str, str], version: str) -> dict[str, str] | None:
    """Replace escapes one kind at a time; return None if a backslash is left, which was escaped itself."""
    known = [(new, old) for new, old in _UNESCAPES[version].items() if old != "\\"]
    for name, value in headers.items():
        if "\\" in value:
            plain = value
            for escape, meaning in known:
                plain = plain.replace(escape, meaning)
            if "\\" in plain:
                return None
            headers[name] = plain
    return None if any("\\" in name for name in headers) else headers


def _parse_headers(lines: list[str], command: str, version: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _parse_line(line, command, version)
        if name == "content-length" and name in headers:
            raise protocol_error(f"a {command} frame has two content-lengths")
        headers.setdefault(name, value)
    return headers


def _parse_line(line: str, command: str, version: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or len(line) > MAX_LINE:
        raise protocol_error(f"a {command} frame has a line that is no header")
    if "\r" in line and version != "1.1":
        raise protocol_error(f"a header of a {command} frame holds a bare carriage return")
    if "\\" in line and command != "CONNECTED":  # which is written without escapes
        return _unescape(name, command, version), _unescape(value, command, version)
    return name, value


def _unescape(text: str, command: str, version: str) -> str:
    known = _UNESCAPES[version]

    def meaning(found: re.Match[str]) -> str:
        """Return the character of an escape."""
        plain = known.get(found[0])
        if plain is not None:
            return plain
        if command == "ERROR":  # the connection ends anyway, and the reason matters more than its form
            return found[0]
        raise protocol_error(f"a header of a {command} frame has an undefined escape")

    return _ESCAPE.sub(meaning, text) if "\\" in text else text


MAX_COMMAND = 32
MAX_HEAD = 1024 * 1024

_WITH_BODY = {"MESSAGE", "ERROR"}
_HEAD_END = re.compile(rb"\n\r?\n")
_LINE_ENDS = re.compile(rb"(?:\r?\n)+")
_COMMANDS = frozenset(command.encode() for command in _REQUIRED)
_LENGTH = re.compile(r"\d{1,18}\Z", re.ASCII)


_Head: TypeAlias = tuple[str, dict[str, str], int, int | None]  #: command, headers, begin and length of the body


class FrameParser:
    """Incremental parser of frames, without I/O. Anything that breaks the protocol ends the connection.

    Args:
        max_body: The largest body that is accepted, in bytes.

    Attributes:
        version: The version of STOMP; set when the broker has chosen it.
        text_may_hold_nul: True if a body without content-length, and the headers of a MESSAGE, may hold NUL, because
            the broker writes a line end behind each frame. ActiveMQ sends text without a content-length, and the
            correlation id and type of a Java client, whatever they hold.
        connected_ends_line: True if a line end followed CONNECTED at once.
    """

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._start = 0  # offset of the frame that is being read
        self._seen: int = 0  # offset up to which its end has been searched
        self._head: _Head | None = None
        self.version = "1.2"
        self.text_may_hold_nul = self.connected_ends_line = False

    def feed(self, data: bytes) -> list[Frame]:
        """Parse the next bytes; return the frames that they complete.

        Raises:
            ConnectionLostError: They break the protocol or a limit. Complete frames before the error are returned
                first; the next call raises it, and needs no further bytes.
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

    def finish(self) -> list[Frame]:
        """Return the ERROR that lacks only the line end behind its NUL: the stream has ended.

        A MESSAGE in that state stays unfinished, because its text may go on behind the NUL.
        """
        if self._head is None or self._head[0] != "ERROR":
            return []
        self.text_may_hold_nul = False
        return self.feed(b"")

    @property
    def unfinished(self) -> int:
        """Number of bytes received of a frame that is not complete."""
        return len(self._buffer)

    @property
    def beginning(self) -> bytes:
        """The first bytes of the frame that is not complete, or that broke the protocol."""
        return bytes(self._buffer[self._start : self._start + MAX_COMMAND])

    def _next(self) -> Frame | None:
        head = self._head or self._read_head()
        if head is None:
            return None
        command, headers, begin, length = head
        end = self._body_end(command, begin, length)
        if end is None:
            return None
        body = bytes(memoryview(self._buffer)[begin:end])
        if body and command not in _WITH_BODY:
            raise protocol_error(f"a {command} frame has a body")
        if command == "CONNECTED":
            self.connected_ends_line = self._buffer.startswith(b"\n", end + 1)
        frame = Frame(command, headers, body, end + 1 - self._start)
        self._start = self._seen = end + 1
        self._head = None
        return frame

    def _read_head(self) -> _Head | None:
        self._skip_line_ends()
        found = _HEAD_END.search(self._buffer, max(self._start, self._seen - 2))
        size = (found.start() if found else len(self._buffer)) - self._start
        if size > MAX_HEAD:
            raise protocol_error(f"the head of a frame is longer than {MAX_HEAD} bytes")
        if found is None:
            begins = self._buffer[self._start : self._start + MAX_COMMAND + 1]
            if len(begins) > MAX_COMMAND and b"\n" not in begins:
                raise protocol_error("a frame begins with no command")
            if len(self._buffer) - self._buffer.rfind(b"\n") - 1 > MAX_LINE:
                raise protocol_error(f"a header is longer than {MAX_LINE} bytes")
            self._seen = len(self._buffer)
            return None
        head = bytes(memoryview(self._buffer)[self._start : found.start()])
        command, headers = parse_head(head, self.version, may_hold_nul=self.text_may_hold_nul)
        self._head = (command, headers, found.end(), self._length(headers))
        self._seen = found.end()
        return self._head

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

    def _length(self, headers: dict[str, str]) -> int | None:
        text = headers.get("content-length")
        if text is None:
            return None
        if not _LENGTH.match(text):
            raise protocol_error("a content-length is no number")
        self._check_body(int(text))
        return int(text)

    def _check_body(self, size: int) -> None:
        if size > self._max_body:
            raise ConnectionLostError(
                f"A body is larger than the limit of {self._max_body} bytes, and the STOMP protocol cannot refuse a"
                " single message: the connection was ended. Raise Limits.message_bytes, or remove the message at the"
                " broker."
            )

    def _body_end(self, command: str, begin: int, length: int | None) -> int | None:
        """Return the offset of the NUL after the body; None if it has not been received."""
        if length is None:
            end = self._unsized_end(may_hold_nul=self.text_may_hold_nul and command in _WITH_BODY)
            self._check_body(self._seen - begin)
            return end
        if len(self._buffer) <= begin + length:
            return None
        if self._buffer[begin + length] != 0:
            raise protocol_error("a body does not end where its content-length says")
        return begin + length

    def _unsized_end(self, *, may_hold_nul: bool) -> int | None:
        """Return the offset of the NUL that ends a frame without content-length; None if it has not been received."""
        while (end := self._buffer.find(0, self._seen)) >= 0:
            self._seen = end
            ends = not may_hold_nul or self._is_frame_end(end)
            if ends or ends is None:
                return end if ends else None
            self._seen = end + 1
        self._seen = len(self._buffer)
        return None

    def _is_frame_end(self, nul: int) -> bool | None:
        """Return True if line ends follow a NUL, and then nothing or a frame; None while nothing follows it at all."""
        if len(self._buffer) == nul + 1:
            return None
        found = _LINE_ENDS.match(self._buffer, nul + 1)
        if found is None:
            return False
        line, complete, _ = bytes(self._buffer[found.end() : found.end() + MAX_COMMAND]).partition(b"\n")
        command = line.removesuffix(b"\r")
        return command in _COMMANDS if complete else any(each.startswith(command) for each in _COMMANDS)
