"""Frames: encoded and parsed exactly, within bounds."""

from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.destinations import Queue
from jmsjca.errors import ConfigurationError, ConnectionLostError, InvalidDestinationError, MessageFormatError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol import frames as frames_module
from jmsjca.providers.stomp.protocol.frames import FrameParser, connect_frame, encode_frame
from jmsjca.providers.stomp.provider import dialect_for
from tests.unit.providers.stomp.reference_frames import read, write

hostile = st.text(st.sampled_from("\0\r\n:\\acnr\ud800ä\U0001f600 "), max_size=12) | st.text(max_size=12)
headers = st.dictionaries(hostile.filter(lambda name: name != "content-length"), hostile, max_size=4)
SERVERS = ["ActiveMQ/5.18.3", "ActiveMQ-Artemis/2.56.0", "RabbitMQ/3.10.8", "Other/1"]


@settings(max_examples=4 * settings.default.max_examples)
@given(st.sampled_from(["1.1", "1.2"]), headers, st.none() | st.binary(max_size=20))
def test_headers_cannot_break_out(version, given_headers, body):
    unspeakable = "\0\r" if version == "1.1" else "\0"
    everything = "".join(name + value for name, value in given_headers.items())
    if set(unspeakable) & set(everything) or _surrogates(everything):
        with pytest.raises(MessageFormatError):
            encode_frame("SEND", given_headers, body, version=version)
        return
    data = encode_frame("SEND", given_headers, body, version=version)
    [(command, read_headers, read_body)] = read(data)
    length = [] if body is None else [("content-length", str(len(body)))]
    assert (command, read_headers, read_body) == ("SEND", [*given_headers.items(), *length], body or b"")


def _surrogates(text):
    return any("\ud800" <= character <= "\udfff" for character in text)


@settings(max_examples=4 * settings.default.max_examples)
@given(st.dictionaries(st.sampled_from(["login", "passcode", "client-id", "host"]), hostile))
def test_connect_headers_are_written_as_they_are_or_refused(given_headers):
    if any(set("\0\r\n") & set(value) or _surrogates(value) for value in given_headers.values()):
        with pytest.raises(ConfigurationError) as told:
            connect_frame(given_headers)
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__ or told.value.__context__ is None
        return
    data = connect_frame(given_headers)
    assert read(data, escaped=False) == [("CONNECT", sorted(given_headers.items()), b"")]


@settings(max_examples=4 * settings.default.max_examples)
@given(st.sampled_from(SERVERS), hostile, hostile, st.text("abcd", min_size=1), hostile)
def test_nothing_in_a_message_becomes_another_frame_or_header(server, kind, correlation, name, value):
    dialect = dialect_for(server, "1.2")
    message = TextMessage("body", type=kind, correlation_id=correlation, properties={name: value})
    try:
        data = dialect.send_frame(dialect.encode(message, Queue("q")))
    except MessageFormatError:
        assert _surrogates(kind + correlation + value)
        return
    [(command, found, body)] = read(data)
    assert (command, body) == ("SEND", b"body")
    assert len(dict(found)) == len(found)
    known = {
        "persistent",
        "priority",
        "destination",
        "destination-type",
        "transaction",
        "receipt",
        "_jmsjca",
        "content-type",
    }
    assert set(dict(found)) <= known | {"correlation-id", "type", name}


STOMP_NAMES = ["destination", "receipt", "id", "ack", "transaction", "type", "priority", "persistent", "selector"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "name", [*STOMP_NAMES, "transformation", "subscription", "timestamp", "expires", "_jmsjca", "durable"]
)
def test_properties_never_become_protocol_headers(server, name):
    dialect = dialect_for(server, "1.2")
    plain = dict(read(dialect.send_frame(dialect.encode(TextMessage("b"), Queue("q"))))[0][1])
    message = TextMessage("b", properties={name: "hostile"})
    found = dict(read(dialect.send_frame(dialect.encode(message, Queue("q"))))[0][1])
    assert {**found, "_jmsjca": ""} == {**plain, "_jmsjca": ""}


@pytest.mark.parametrize(
    ("server", "name"),
    [
        *(("ActiveMQ/5", name) for name in ("a,b", "a.*", "a.>", "a?x=1", " a", "a\n")),
        *(("ActiveMQ-Artemis/2", name) for name in ("a::b", "a.#", "a.*")),
        ("RabbitMQ/3", "a%2Fb"),
    ],
)
def test_names_that_a_broker_would_interpret_are_refused(server, name):
    with pytest.raises(InvalidDestinationError):
        dialect_for(server, "1.2").address(Queue(name))


BASE = {"destination": "/queue/q", "message-id": "1", "subscription": "s"}
GOOD = write("MESSAGE", BASE, b"body")
HEAD = GOOD.partition(b"\n\n")[0]

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
names = text.filter(lambda name: name not in {"", "content-length", *BASE})


@st.composite
def messages(draw):
    """Frames as they stand on the wire, and what they say."""
    headers = {**BASE, **draw(st.dictionaries(names, text, max_size=5))}
    body = draw(st.binary(max_size=50))
    if draw(st.booleans()) or b"\0" in body:
        headers["content-length"] = str(len(body))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return write("MESSAGE", headers, body, end=end), (headers, body)


def feed(data, pieces=()):
    reader, frames, begin = FrameParser(1000), [], 0
    for end in [*sorted(pieces), len(data)]:
        frames += reader.feed(data[begin:end]) + reader.feed(b"")
        begin = end
    return frames


@given(
    st.lists(messages(), max_size=4),
    st.lists(st.integers(0, 600), max_size=8),
    st.sampled_from([b"", b"\n", b"\r\n\n"]),
)
def test_any_cut_gives_the_same_frames(sent, pieces, between):
    data = b"".join(raw + between for raw, _ in sent)
    frames = feed(data, [min(piece, len(data)) for piece in pieces])
    assert [(dict(frame.headers), frame.body) for frame in frames] == [said for _, said in sent]
    assert sum(frame.size for frame in frames) == len(data) - len(between) * len(sent)


@pytest.mark.parametrize("size", [1, 7])
def test_bytes_that_trickle_in(size):
    data = GOOD * 3
    assert len(feed(data, range(0, len(data), size))) == 3


MALFORMED = {
    "negative content-length": HEAD + b"\ncontent-length:-1\n\nbody\0",
    "no number": HEAD + b"\ncontent-length:4x\n\nbody\0",
    "empty number": HEAD + b"\ncontent-length:\n\nbody\0",
    "signed": HEAD + b"\ncontent-length:+4\n\nbody\0",
    "padded": HEAD + b"\ncontent-length: 4\n\nbody\0",
    "other digits": HEAD + "\ncontent-length:٤\n\nbody\0".encode(),
    "overflowing": HEAD + b"\ncontent-length:99999999999999999999999\n\nbody\0",
    "over the limit": HEAD + b"\ncontent-length:1001\n\n",
    "too small": HEAD + b"\ncontent-length:3\n\nbody\0",
    "twice": HEAD + b"\ncontent-length:4\ncontent-length:5\n\nbody\0",
    "twice the same": HEAD + b"\ncontent-length:4\ncontent-length:4\n\nbody\0",
    "body without end": HEAD + b"\n\n" + b"x" * 1001,
    "undefined escape": HEAD + b"\nname:a\\tb\n\n\0",
    "escape at the end": HEAD + b"\nname:a\\\n\n\0",
    "invalid UTF-8": HEAD + b"\nname:\xff\n\n\0",
    "overlong UTF-8": HEAD + b"\nname:\xc0\x8a\n\n\0",
    "NUL in a header": HEAD + b"\nna\0me:x\n\n\0",
    "bare carriage return": HEAD + b"\nname:a\rb\n\n\0",
    "no colon": HEAD + b"\nname\n\n\0",
    "no name": HEAD + b"\n:value\n\n\0",
    "unknown command": b"HELLO\n\n\0",
    "lower case": GOOD.lower(),
    "a client's frame": b"SEND\ndestination:/queue/q\n\n\0",
    "blank before the command": b" " + GOOD,
    "no command": b"x" * 40,
    "HTTP": b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n",
    "no destination": b"MESSAGE\nmessage-id:1\nsubscription:s\n\n\0",
    "no message-id": b"MESSAGE\ndestination:d\nsubscription:s\n\n\0",
    "no subscription": b"MESSAGE\ndestination:d\nmessage-id:1\n\n\0",
    "no receipt-id": b"RECEIPT\n\n\0",
    "no version": b"CONNECTED\n\n\0",
    "receipt with a body": b"RECEIPT\nreceipt-id:1\n\nbody\0",
    "too many headers": HEAD + b"\na:b" * (frames_module.MAX_HEADERS + 1) + b"\n\n\0",
    "endless header": HEAD + b"\n" + b"x" * (frames_module.MAX_LINE + 1),
    "long header": HEAD + b"\na:" + b"x" * frames_module.MAX_LINE + b"\n\n\0",
    "endless headers": HEAD + b"\na:b" * (frames_module.MAX_HEAD // 4 + 1),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_malformed_frames_end_the_connection(data):
    with pytest.raises(ConnectionLostError, match="STOMP protocol"):
        feed(GOOD + data)


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_came_before_a_malformed_frame_is_given_first(data):
    reader = FrameParser(1000)
    assert len(reader.feed(GOOD + GOOD + data)) == 2
    for _ in range(2):
        with pytest.raises(ConnectionLostError, match="STOMP protocol"):
            reader.feed(b"")


@given(messages(), st.integers(0, 600))
def test_what_is_unfinished_is_counted(message, end):
    raw, _ = message
    reader = FrameParser(1000)
    assert reader.unfinished == 0
    frames = reader.feed(raw + raw[:end])
    assert reader.unfinished == (2 - len(frames)) * len(raw) - len(raw[end:])


def test_length_counts_not_the_nul():
    [frame] = feed(HEAD + b"\ncontent-length:5\n\na\0b\0c\0")
    assert frame.body == b"a\0b\0c"


def test_first_of_two_equal_headers_counts():
    [frame] = feed(HEAD + b"\nname:first\nname:second\n\n\0")
    assert frame.headers["name"] == "first"


def test_carriage_return_is_a_character_in_1_1():
    reader = FrameParser(1000)
    reader.version = "1.1"
    [frame] = reader.feed(HEAD + b"\nname:a\rb\n\n\0")
    assert frame.headers["name"] == "a\rb"


def test_error_is_read_whatever_it_escapes():
    [frame] = feed(b"ERROR\nmessage:C:\\temp\n\n\0")
    assert frame.headers["message"] == "C:\\temp"


def test_connected_is_not_escaped():
    [frame] = feed(b"CONNECTED\nversion:1.2\nsession:a\\b:c\n\n\0")
    assert frame.headers["session"] == "a\\b:c"


def test_text_form_shows_nothing():
    [frame] = feed(write("MESSAGE", {**BASE, "secret": "hush"}, b"hush"))
    assert "hush" not in repr(frame)


def nul_parser():
    """A parser as it is after the login to a broker that writes a line end behind each frame."""
    parser = FrameParser(1000)
    parser.text_may_hold_nul = True
    return parser


TEXTS_WITH_NUL = [b"a\0b", b"\0", b"\0\0\0", b"a\0\nb", b"\0\nMESSAGER\n", b"a\0\n\n\0b\nMESS\0", b"\0 \0\r\n \0\r"]


@pytest.mark.parametrize("text", TEXTS_WITH_NUL)
def test_text_with_nul_is_read_to_the_end_of_its_frame(text):
    data = HEAD + b"\n\n" + text + b"\0\n"
    frames = nul_parser().feed(data + data + b"RECEIPT\nreceipt-id:1\n\n\0\n")
    assert [(frame.cmd, frame.body) for frame in frames] == [("MESSAGE", text), ("MESSAGE", text), ("RECEIPT", b"")]


@pytest.mark.parametrize("text", [text for text in TEXTS_WITH_NUL if b"\0\n" not in text])
def test_text_with_nul_that_trickles_in_is_read_whole(text):
    parser, data = nul_parser(), (HEAD + b"\n\n" + text + b"\0\n") * 2
    frames = [frame for place in range(len(data)) for frame in parser.feed(data[place : place + 1])]
    assert [frame.body for frame in frames] == [text, text]


HEAD_WITH_NUL = HEAD + b"\ncorrelation-id:\0a\0"


def test_headers_of_a_message_with_nul_are_read():
    data = HEAD_WITH_NUL + b"\n\nbody\0\n"
    parser = nul_parser()
    frames = [frame for place in range(2 * len(data)) for frame in parser.feed((data * 2)[place : place + 1])]
    assert [(frame.headers["correlation-id"], frame.body) for frame in frames] == [("\0a\0", b"body")] * 2


@pytest.mark.parametrize(
    ("parser", "head"), [(FrameParser(1000), HEAD_WITH_NUL), (nul_parser(), b"RECEIPT\nreceipt-id:\0")]
)
def test_nul_in_headers_of_others_ends_the_connection(parser, head):
    with pytest.raises(ConnectionLostError, match="head holds NUL"):
        parser.feed(head + b"\n\n\0\n")


def test_receipt_does_not_wait_for_the_line_end_behind_it():
    [frame] = nul_parser().feed(b"RECEIPT\nreceipt-id:1\n\n\0")
    assert frame.headers["receipt-id"] == "1"


def test_error_without_its_line_end_is_read_when_the_stream_ends():
    parser = nul_parser()
    assert parser.feed(b"ERROR\nmessage:refused\n\na\0b\0") == []
    [frame] = parser.finish()
    assert (frame.headers["message"], frame.body) == ("refused", b"a\0b")


@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"\n\ntext\0", b"ERROR\nmessage:refused\n\ntext"])
def test_nothing_else_is_finished_by_the_end_of_the_stream(data):
    parser = nul_parser()
    parser.feed(data)
    assert parser.finish() == []


def test_text_over_the_limit_is_refused_whatever_nul_it_holds():
    with pytest.raises(ConnectionLostError, match="limit"):
        nul_parser().feed(HEAD + b"\n\n" + b"a\0" * 501)


@pytest.mark.parametrize(("behind", "told"), [(b"\n", True), (b"", False)])
def test_the_line_end_behind_connected_is_noted(behind, told):
    parser = FrameParser(1000)
    parser.feed(b"CONNECTED\nversion:1.2\n\n\0" + behind)
    assert parser.connected_ends_line is told


class Login(str, Enum):  # noqa: UP042  # StrEnum has the text as its format
    USER = "guest"


def test_a_login_is_written_by_its_value():
    assert b"\nlogin:guest\n" in connect_frame({"login": Login.USER})
