"""A second STOMP parser, slow and simple, to compare results with."""

LONGEST_COMMAND = 32
MOST_HEADERS = 1000
NEEDED = {
    "CONNECTED": {"version"},
    "MESSAGE": {"destination", "message-id", "subscription"},
    "RECEIPT": {"receipt-id"},
    "ERROR": set(),
}
MEANINGS = {"1.1": {"\\": "\\", "n": "\n", "c": ":"}, "1.2": {"\\": "\\", "n": "\n", "c": ":", "r": "\r"}}
BINARY = b"x-amqp-1.0-"  # RabbitMQ's headers whose bytes stand for a character each


class BrokenError(Exception):
    """This is no STOMP."""


def read_all(data, version, max_body):
    """The frames as tuples of command, headers and body, and whether what follows them is no STOMP."""
    frames = []
    while True:
        while data.startswith((b"\n", b"\r\n")):
            data = data[data.index(b"\n") + 1 :]
        try:
            frame, data = read_one(data, version, max_body)
        except BrokenError:
            return frames, True
        if frame is None:
            return frames, False
        frames.append(frame)


def read_one(data, version, max_body):
    """The first frame and what is behind it; None if it is not whole."""
    lines, rest = head_lines(data)
    if rest is None:
        require(len(data.split(b"\n")[0]) <= LONGEST_COMMAND)
        return None, data
    command, headers = read_head(lines, version)
    body, rest = read_body(rest, headers.get("content-length"), max_body)
    if body is None:
        return None, data
    require(not body or command in {"MESSAGE", "ERROR"})
    return (command, headers, body), rest


def head_lines(data):
    """The lines up to the empty one, and what is behind that; None if there is no empty one."""
    lines = []
    while b"\n" in data:
        line, _, data = data.partition(b"\n")
        if line in {b"", b"\r"}:
            return lines, data
        lines.append(line)
    return lines, None


def read_head(lines, version):
    command = read_line(lines[0], version)
    require(command in NEEDED)
    require(len(lines) - 1 <= MOST_HEADERS)
    headers = {}
    for line in lines[1:]:
        name, value = read_header(read_line(line, version), command, version)
        require(not (name == "content-length" and name in headers))
        headers.setdefault(name, value)
    require(NEEDED[command] <= headers.keys())
    return command, headers


def read_line(line, version):
    """As text; a carriage return at its end belongs to the line end from version 1.2 on."""
    if line.startswith(BINARY):
        text = line.decode("latin-1")
    else:
        require(b"\0" not in line)
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise BrokenError from None
    if version != "1.1" and text.endswith("\r"):
        text = text[:-1]
    return text


def read_header(text, command, version):
    require(":" in text)
    require(version == "1.1" or "\r" not in text)
    name, value = text.split(":", 1)
    require(name != "")
    if command == "CONNECTED":
        return name, value
    return (unescaped(part, version, lenient=command == "ERROR") for part in (name, value))


def unescaped(text, version, *, lenient):
    result, position = "", 0
    while position < len(text):
        sign = text[position]
        if sign != "\\":
            result += sign
            position += 1
            continue
        escape = text[position : position + 2]
        meaning = MEANINGS[version].get(escape[1:])
        require(meaning is not None or lenient)
        result += escape if meaning is None else meaning
        position += 2
    return result


def read_body(rest, length, max_body):
    """The body and what is behind its NUL; None if it is not whole."""
    if length is None:
        body, end, behind = rest.partition(b"\0")
        require(len(body) <= max_body)
        return (body, behind) if end else (None, rest)
    require(1 <= len(length) <= 18 and all(digit in "0123456789" for digit in length))
    size = int(length)
    require(size <= max_body)
    if len(rest) <= size:
        return None, rest
    require(rest[size] == 0)
    return rest[:size], rest[size + 1 :]


def require(condition):
    if not condition:
        raise BrokenError
