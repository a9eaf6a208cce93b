"""Names, values, destinations, ids and logins cannot inject headers or frames."""

import random

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import ConfigurationError, JMSError, MessageFormatError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol.frames import connect_frame, encode_frame
from jmsjca.providers.stomp.provider import dialect_for
from tests.unit.providers.stomp.reference_parser import BrokenError, head_lines, read_header, read_line

MANY = 10_000
COMMANDS = ["SEND", "SUBSCRIBE", "UNSUBSCRIBE", "BEGIN", "ACK", "NACK", "COMMIT", "ABORT", "DISCONNECT"]
ALPHABET = [
    "\r",
    "\n",
    "\0",
    ":",
    "\\",
    "\\n",
    "\\c",
    "a",
    " ",
    "\t",
    "é",
    "\u2028",
    "\x85",
    "😀",
    "content-length",
    "\n\nx\0",
]
WEIGHTS = [1 if "\0" in sign or sign == "\r" else 20 for sign in ALPHABET]  # what is often refused is rare
SERVERS = ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1"]


def _text(chances, least=0):
    return "".join(chances.choices(ALPHABET, WEIGHTS, k=chances.randint(least, 5)))


def _name(chances):
    """Of a destination, which may not be blank."""
    return f"{_text(chances)}a{_text(chances)}"


def _said(frame, version):
    """What an independent reader makes of a frame; it must be one frame and nothing else."""
    assert frame.endswith(b"\0")
    lines, rest = head_lines(frame)
    headers = [tuple(read_header(read_line(line, version), lines[0].decode(), version)) for line in lines[1:]]
    length = dict(headers).get("content-length")
    body = rest[:-1]
    assert b"\0" not in body or (length is not None and int(length) == len(body))
    return lines[0].decode(), [header for header in headers if header[0] != "content-length"], body


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_every_frame_says_what_it_was_given(version, capsys):
    chances, refused = random.Random(7), 0
    for _ in range(MANY):
        command, body = chances.choice(COMMANDS), _text(chances).encode() if chances.random() < 0.3 else None
        headers = {_text(chances, 1): _text(chances) for _ in range(3)}
        headers.pop("content-length", None)
        try:
            frame = encode_frame(command, headers, body, version=version)
        except MessageFormatError:
            refused += 1
            unspeakable = "\0\r" if version == "1.1" else "\0"
            assert any(sign in text for pair in headers.items() for text in pair for sign in unspeakable)
        else:
            assert _said(frame, version) == (command, list(headers.items()), body or b"")
    with capsys.disabled():
        print(f"\nSTOMP {version}: {MANY} frames, {refused} refused")
    assert 0 < refused < MANY


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_every_request_says_what_it_was_given(line, version):
    """Those are written by stomp.py, which leaves the names of headers as they are."""
    chances, refused, line = random.Random(11), 0, line(version=version)
    session = line.connection._session
    for _ in range(MANY // 10):
        headers = {_text(chances, 1): _text(chances) for _ in range(2)}
        headers.pop("content-length", None)
        special = {sign for name in headers for sign in "\0\r\n:\\" if sign in name}
        unspeakable = "\0\r" if version == "1.1" else "\0"
        special |= {sign for value in headers.values() for sign in unspeakable if sign in value}
        line.channel.written.clear()
        try:
            session.request("SUBSCRIBE", headers)
        except MessageFormatError:
            refused += 1
            assert special
            assert not line.channel.written
        else:
            assert not special
            command, said, body = _said(bytes(line.channel.written), version)
            assert (command, body) == ("SUBSCRIBE", b"")
            receipt = dict(said)["receipt"]
            assert sorted(said) == sorted([*headers.items(), ("receipt", receipt)])
    assert 0 < refused < MANY // 10


@pytest.mark.parametrize("headers", [{"a": "\ud800"}, {"\udfff": "a"}])
def test_request_with_half_a_surrogate_pair_is_refused(line, headers):
    """stomp.py would write a question mark."""
    line = line()
    with pytest.raises(MessageFormatError):
        line.connection._session.send("SUBSCRIBE", headers)
    assert not line.channel.written


def test_login_says_what_it_was_given_or_is_refused():
    """CONNECT is not escaped, in any version."""
    chances, refused = random.Random(8), 0
    for _ in range(MANY):
        headers = {name: _text(chances) for name in ("login", "passcode", "client-id", "host")}
        if any(sign in text for text in headers.values() for sign in "\r\n\0"):
            refused += 1
            with pytest.raises(ConfigurationError):
                connect_frame(headers)
        else:
            lines, rest = head_lines(connect_frame(headers))
            assert rest == b"\0"
            assert [line.decode().split(":", 1) for line in lines] == [["CONNECT"], *map(list, sorted(headers.items()))]
    assert 0 < refused < MANY


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("server", SERVERS)
def test_names_of_destinations_and_of_properties_add_no_header(server, version):
    """Nor do ids, types, and where to reply to."""
    chances, dialect, sent = random.Random(9), dialect_for(server, version), 0
    for _ in range(1000):
        message = TextMessage(
            _text(chances), correlation_id=_text(chances), type=_text(chances), reply_to=Queue(_name(chances))
        )
        message.properties = {_identifier(chances): _text(chances)}
        try:
            frame = dialect.send_frame(dialect.encode(message, Topic(_name(chances))))
        except JMSError:
            continue
        sent += 1
        command, headers, body = _said(frame, version)
        assert (command, body) == ("SEND", message.body.encode())
        assert len({name for name, _ in headers}) == len(headers)
    assert sent


@pytest.mark.parametrize("server", SERVERS)
def test_names_of_subscriptions_add_no_header(server):
    chances, dialect, written = random.Random(10), dialect_for(server, "1.2"), 0
    for _ in range(1000):
        source = Subscription(Topic(_name(chances)), _text(chances, 1), _text(chances, 1))
        try:
            headers = dialect.subscribe(source, 10)
            frame = encode_frame("SUBSCRIBE", headers, version="1.2")
        except JMSError:
            continue
        written += 1
        assert _said(frame, "1.2") == ("SUBSCRIBE", list(headers.items()), b"")
    assert written


def test_the_reader_of_this_test_finds_injected_headers():
    with pytest.raises((AssertionError, BrokenError)):
        assert _said(b"SEND\na:b\nc:d\n\n\0", "1.2") == ("SEND", [("a", "b\nc:d")], b"")


def _identifier(chances):
    return "p" + "".join(chances.choices("abc_$", k=3))
