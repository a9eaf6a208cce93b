"""The exact reader of a frame's head: its command and its headers."""

import re

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.frames import ESCAPES

__all__ = ["MAX_LINE", "broken", "parse_head"]

MAX_LINE = 256 * 1024
MAX_HEADERS = 1000

_REQUIRED = {
    "CONNECTED": ("version",),
    "MESSAGE": ("destination", "message-id", "subscription"),
    "RECEIPT": ("receipt-id",),
    "ERROR": (),
}
_SHOWN = 32  # characters of an unknown command
# Headers in which RabbitMQ shows what came over AMQP 1.0: bytes, each of which stands for a character.
_BINARY = b"x-amqp-1.0-"
_UNESCAPES = {version: {new: old for old, new in table.items()} for version, table in ESCAPES.items()}
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


def broken(what: str) -> ConnectionLostError:
    """Tell how the protocol was broken, which ends the connection."""
    return ConnectionLostError(f"The broker broke the STOMP protocol: {what}. The connection was ended.")


def parse_head(head: bytes, version: str) -> tuple[str, dict[str, str]]:
    """Read a head; of a header given twice the first counts.

    Args:
        head: All lines before the empty one.
        version: The version of STOMP that is spoken.

    Raises:
        ConnectionLostError: It breaks the protocol or a limit.
    """
    text = _text(head)
    if "\r\n" in text and version != "1.1":  # where a carriage return was like any other character
        text = text.replace("\r\n", "\n")
    lines = text.removesuffix("\r" if version != "1.1" else "").split("\n")
    command = lines.pop(0)
    if command not in _REQUIRED:
        raise broken(f"there is no frame {command[:_SHOWN]!r}")
    if len(lines) > MAX_HEADERS:
        raise broken(f"a {command} frame has more than {MAX_HEADERS} headers")
    headers = _usual_headers(text, lines, command, version) or _any_headers(lines, command, version)
    for name in _REQUIRED[command]:
        if name not in headers:
            raise broken(f"a {command} frame has no header {name}")
    return command, headers


def _text(head: bytes) -> str:
    if _BINARY in head:
        return "\n".join(
            line.decode("latin-1") if line.startswith(_BINARY) else _plain(line) for line in head.split(b"\n")
        )
    return _plain(head)


def _plain(text: bytes) -> str:
    if b"\0" in text:
        raise broken("a head holds NUL")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise broken("a header is no UTF-8 text") from None


def _usual_headers(text: str, lines: list[str], command: str, version: str) -> dict[str, str] | None:
    """The headers of nearly all frames, read quickly; None if there is anything unusual about them."""
    try:
        headers = dict([line.split(":", 1) for line in lines])
    except ValueError:
        return None
    if "" in headers or len(headers) < len(lines) or len(text) > MAX_LINE or "\r" in text:
        return None
    if "\\" in text and command != "CONNECTED":
        return _unescaped_once(headers, version)
    return headers


def _unescaped_once(headers: dict[str, str], version: str) -> dict[str, str] | None:
    """The same, each escape looked for on its own; None if a backslash is left, which then stood for itself."""
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


def _any_headers(lines: list[str], command: str, version: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _parse_line(line, command, version)
        if name == "content-length" and name in headers:
            raise broken(f"a {command} frame has two content-lengths")
        headers.setdefault(name, value)
    return headers


def _parse_line(line: str, command: str, version: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or len(line) > MAX_LINE:
        raise broken(f"a {command} frame has a line that is no header")
    if "\r" in line and version != "1.1":
        raise broken(f"a header of a {command} frame holds a bare carriage return")
    if "\\" in line and command != "CONNECTED":  # which is written without escapes
        return _unescape(name, command, version), _unescape(value, command, version)
    return name, value


def _unescape(text: str, command: str, version: str) -> str:
    known = _UNESCAPES[version]

    def meaning(found: re.Match[str]) -> str:
        """The character that an escape stands for."""
        plain = known.get(found[0])
        if plain is not None:
            return plain
        if command == "ERROR":  # the connection ends anyway: its reason is worth more than its form
            return found[0]
        raise broken(f"a header of a {command} frame has an undefined escape")

    return _ESCAPE.sub(meaning, text) if "\\" in text else text
