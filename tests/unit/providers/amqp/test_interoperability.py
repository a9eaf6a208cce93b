"""Messages as proton's and Java's clients see and write them."""

import uuid
from contextlib import suppress

import pytest
from proton import Message as WireMessage
from proton import byte, decimal64, float32, int32, short, symbol, timestamp, ubyte, uint, ulong, ushort

from jmsjca.destinations import Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, Float, Int, Long, Message, ObjectMessage, Short, TextMessage
from tests.unit.providers.amqp.codec_helpers import NOW, QUEUE, read, through, wire

# As Java's JMS client maps messages (AMQP JMS Mapping): types of messages 0, 3 and 5, of destinations 0 and 1.


@pytest.mark.parametrize(
    ("message", "kind", "body", "content"),
    [
        (Message(), 0, None, None),
        (TextMessage("text"), 5, "text", None),
        (TextMessage(None), 5, None, None),
        (BytesMessage(b"bytes"), 3, b"bytes", "application/octet-stream"),
        (BytesMessage(b""), 3, b"", "application/octet-stream"),
    ],
)
def test_others_read_what_we_send(message, kind, body, content):
    message.reply_to = Topic("answers")
    message.properties["n"] = Short(7)
    read = wire(message)
    assert bytes(read.body) == body if isinstance(body, bytes) else read.body == body
    annotations = {"x-opt-jms-msg-type": kind, "x-opt-jms-dest": 0, "x-opt-jms-reply-to": 1}
    told = {str(name): value for name, value in read.annotations.items()}
    assert told.pop("x-opt-jmsjca") == '{"t":{"n":"short"}}'  # for our own reader over STOMP
    assert told == annotations
    assert all(type(value) is byte for value in told.values())
    assert (read.address, read.reply_to, read.durable, read.properties) == ("q", "answers", True, {"n": short(7)})
    assert type(read.properties["n"]) is short
    if content:
        assert read.content_type == content


def java(kind, body, **more):
    """A message as Java's client makes it."""
    annotations = {symbol("x-opt-jms-msg-type"): byte(kind), symbol("x-opt-jms-dest"): byte(1)}
    fields = {"address": "there", "id": "ID:java:1", "durable": True, "creation_time": NOW, **more}
    return bytes(WireMessage(body=body, annotations=annotations, **fields).encode())


@pytest.mark.parametrize(
    ("kind", "body", "more", "expected", "value"),
    [
        (0, None, {}, Message, None),
        (3, b"bytes", {"inferred": True, "content_type": symbol("application/octet-stream")}, BytesMessage, b"bytes"),
        (3, b"", {"inferred": True, "content_type": symbol("application/octet-stream")}, BytesMessage, b""),
        (5, "text", {}, TextMessage, "text"),
        (5, None, {}, TextMessage, None),
        (5, "", {}, TextMessage, ""),
    ],
)
def test_we_read_what_java_sends(kind, body, more, expected, value):
    got = read(java(kind, body, **more), QUEUE)
    assert (type(got), got.body) == (expected, value)
    assert (got.message_id, got.destination, got.timestamp.timestamp()) == ("ID:java:1", Topic("there"), NOW)


@pytest.mark.parametrize(
    ("body", "more", "expected", "value"),
    [
        ("text", {}, TextMessage, "text"),
        (b"data", {"inferred": True}, BytesMessage, b"data"),
        (b"value", {}, BytesMessage, b"value"),
        (b"text", {"inferred": True, "content_type": symbol("text/plain")}, TextMessage, "text"),
        (None, {}, BytesMessage, None),
    ],
)
def test_messages_without_annotations(body, more, expected, value):
    got = read(bytes(WireMessage(body=body, **more).encode()), QUEUE)
    assert (type(got), got.body) == (expected, value)
    assert (got.destination, got.message_id, got.timestamp, got.expiration) == (QUEUE, None, None, None)


@pytest.mark.parametrize(
    "body", [1, 1.5, True, ["list", ["of", {"lists": None}]], {"map": 1}, uuid.UUID(int=1), timestamp(1), ulong(7)]
)
def test_values_that_are_no_text_are_objects_of_plain_data(body):
    got = read(bytes(WireMessage(body=body).encode()))
    assert (type(got), got.body) == (ObjectMessage, body)
    assert dict(got.properties) == {"JMS_AMQP_TYPED_ENCODING": True}
    assert through(got).body == body


def test_a_symbol_is_a_text():
    assert read(bytes(WireMessage(body=symbol("s")).encode())).body == "s"


@pytest.mark.parametrize(
    ("wire_id", "told"),
    [
        ("ID:1", "ID:1"),
        (ulong(7), "ID:AMQP_ULONG:7"),
        (ulong((1 << 64) - 1), f"ID:AMQP_ULONG:{(1 << 64) - 1}"),
        (uuid.UUID(int=5), f"ID:AMQP_UUID:{uuid.UUID(int=5)}"),
        (b"\x00\xff", "ID:AMQP_BINARY:00FF"),
        (None, None),
    ],
)
def test_ids_of_every_type(wire_id, told):
    got = read(bytes(WireMessage(id=wire_id, correlation_id=wire_id).encode()), QUEUE)
    assert (got.message_id, got.correlation_id) == (told, told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (ubyte(255), Short(255)),
        (ushort(65535), Int(65535)),
        (uint((1 << 32) - 1), Long((1 << 32) - 1)),
        (ulong(5), Long(5)),
        (timestamp(1000), Long(1000)),
        (symbol("s"), "s"),
        (uuid.UUID(int=5), str(uuid.UUID(int=5))),
        (float32(0.5), Float(0.5)),
        (int32(-1), Int(-1)),
        (None, None),
    ],
)
def test_properties_of_types_that_jms_has_not(value, told):
    got = read(bytes(WireMessage(properties={"p": value}).encode()), QUEUE).properties["p"]
    assert (type(got), got) == (type(told), told)


@pytest.mark.parametrize("value", [ulong((1 << 64) - 1), decimal64(1), b"bytes", ["list"], {"map": 1}])
def test_properties_that_jms_cannot_hold_do_no_harm_or_say_so(value):
    encoded = bytes(WireMessage(properties={"p": value}).encode())
    with suppress(MessageFormatError):
        assert read(encoded, QUEUE).properties["p"] is not None
