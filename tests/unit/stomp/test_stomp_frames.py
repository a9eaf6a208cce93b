"""What is written is read back the same by an independent reader, or is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.destinations import Queue
from jmsjca.errors import ConfigurationError, InvalidDestinationError, MessageFormatError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.brokers.registry import dialect_for
from jmsjca.providers.stomp.protocol.frames import connect_frame, encode_frame
from tests.unit.stomp.letters import read

hostile = st.text(st.sampled_from("\0\r\n:\\acnr\ud800ä\U0001f600 "), max_size=12) | st.text(max_size=12)
headers = st.dictionaries(hostile.filter(lambda name: name != "content-length"), hostile, max_size=4)
SERVERS = ["ActiveMQ/5.18.3", "ActiveMQ-Artemis/2.56.0", "RabbitMQ/3.10.8", "Other/1"]


@settings(max_examples=1000)
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


@settings(max_examples=1000)
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


@settings(max_examples=300)
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
