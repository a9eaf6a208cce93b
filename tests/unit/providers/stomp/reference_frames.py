"""An independent STOMP encoder and decoder that follows the specification literally."""

import re

UNESCAPES = {rb"\n": b"\n", rb"\r": b"\r", rb"\c": b":", rb"\\": b"\\"}


def unescape(text: bytes) -> bytes:
    return re.sub(rb"\\.", lambda found: UNESCAPES[found[0]], text, flags=re.DOTALL)


def escape(text: str) -> bytes:
    return b"".join({v: k for k, v in UNESCAPES.items()}.get(c.encode(), c.encode()) for c in text)


def read(data: bytes, *, escaped: bool = True) -> list[tuple[str, list[tuple[str, str]], bytes]]:
    """All frames in the data, headers in order."""
    frames = []
    data = data.lstrip(b"\n")
    while data:
        head, _, rest = data.partition(b"\n\n")
        command, *lines = head.split(b"\n")
        pairs = [line.split(b":", 1) for line in lines]
        headers = [tuple((unescape(p) if escaped else p).decode() for p in pair) for pair in pairs]
        length = dict(headers).get("content-length")
        end = rest.index(0) if length is None else int(length)
        assert rest[end] == 0
        frames.append((command.decode(), headers, rest[:end]))
        data = rest[end + 1 :].lstrip(b"\n")
    return frames


def write(command: str, headers: dict[str, str], body: bytes = b"", *, end: bytes = b"\n") -> bytes:
    lines = [command.encode(), *(escape(name) + b":" + escape(value) for name, value in headers.items())]
    return end.join([*lines, b"", b""]) + body + b"\0"
