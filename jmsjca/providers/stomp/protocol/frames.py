"""Frames, and their form on the wire."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from jmsjca.config.texts import check_unicode
from jmsjca.errors import ConfigurationError, MessageFormatError

__all__ = ["ESCAPES", "Frame", "connect_frame", "encode_frame", "with_headers"]


class Frame(NamedTuple):
    """A frame that the broker sent; of a header given twice the first counts.

    Its text form shows neither headers nor body: they may hold secrets.
    """

    command: str
    headers: Mapping[str, str]
    body: bytes
    size: int  #: bytes on the wire

    def __repr__(self) -> str:
        return f"<Frame {self.command}, {self.size} bytes>"


ESCAPES = {
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"},
}
"""How each version writes what would break a header line."""

_TABLES = {version: str.maketrans(escapes) for version, escapes in ESCAPES.items()}
_BREAKING = re.compile("[\0\r\n]")
# What no version can carry in a header: STOMP 1.1 knows no way to write a carriage return.
_UNSPEAKABLE = {"1.1": re.compile("[\0\r]"), "1.2": re.compile("\0")}


def encode_frame(command: str, headers: Mapping[str, str], body: bytes | None = None, *, version: str) -> bytes:
    """Write a frame, every header name and value escaped.

    Args:
        command: The command.
        headers: Its headers; no content-length, which is added if there is a body.
        body: The body; None for a frame without one.
        version: The version of STOMP that the connection speaks.

    Raises:
        MessageFormatError: A header holds what this version cannot carry, or is no Unicode text.
    """
    table, unspeakable = _TABLES[version], _UNSPEAKABLE[version]
    lines = [command]
    for name, value in headers.items():
        if unspeakable.search(name) or unspeakable.search(value):
            raise MessageFormatError(f"The header {name[:100]!r} holds a character that STOMP {version} cannot carry.")
        lines.append(f"{name.translate(table)}:{value.translate(table)}")
    if body is not None:
        lines.append(f"content-length:{len(body)}")
    return _joined(lines, body or b"")


def with_headers(frame: bytes, headers: Mapping[str, str]) -> bytes:
    """The same frame with more headers.

    Args:
        frame: A whole frame without those headers.
        headers: Plain letters and digits.
    """
    command, _, rest = frame.partition(b"\n")
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return b"%b\n%b%b" % (command, lines.encode(), rest)


def connect_frame(headers: Mapping[str, str]) -> bytes:
    """Write a CONNECT frame, in which nothing is escaped.

    Raises:
        ConfigurationError: A value would break its line. The value is not shown: it may be a password.
    """
    for name, value in headers.items():
        check_unicode(value, f"The header {name} of CONNECT", ConfigurationError)
        if _BREAKING.search(value):
            raise ConfigurationError(f"The header {name} of CONNECT cannot hold line breaks or NUL.")
    return _joined(["CONNECT", *(f"{name}:{value}" for name, value in headers.items())], b"")


def _joined(lines: list[str], body: bytes) -> bytes:
    try:
        return b"%b\n\n%b\0" % ("\n".join(lines).encode(), body)
    except UnicodeEncodeError:  # without its cause, which would show the whole frame
        raise MessageFormatError("A header holds half of a surrogate pair, which is no Unicode text.") from None
