"""Messages as AMQP: what was sent comes back, what others send can be read, and they can read what we send."""

import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message as WireMessage
from proton import byte, decimal64, float32, int32, short, symbol, timestamp, ubyte, uint, ulong, ushort

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    Message,
    ObjectMessage,
    Short,
    TextMessage,
    type_name,
)
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.codec import decode, encode
from jmsjca.providers.amqp.encoding.reading import MALFORMED
from jmsjca.providers.amqp.header import header_of
from jmsjca.providers.amqp.sections import split

QUEUE = Queue("q")
NOW = 1_700_000_000.0


def bits(number):
    return st.integers(-(1 << number - 1), (1 << number - 1) - 1)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values = st.one_of(
    st.none(),
    st.booleans(),
    bits(8).map(Byte),
    bits(16).map(Short),
    bits(32).map(Int),
    bits(64).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False).map(Double),
    text,
)
moments = st.integers(1, 253_402_300_799_999).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
destinations = st.builds(lambda make, name: make(name), st.sampled_from([Queue, Topic]), text.filter(str.strip))


def read(encoded, source=QUEUE):
    message = decode(encoded, source)
    assert message.priority is not None  # its headers are decoded now, too
    return message


def through(message, to=QUEUE):
    return read(encode(message, to, NOW))


@given(st.dictionaries(st.sampled_from(["a", "B_1", "$c", "JMS_group", "größe"]), values))
def test_properties_keep_their_types(properties):
    got = through(Message(properties=properties)).properties
    assert dict(got) == properties
    assert {n: v if v is None else type_name(v) for n, v in got.items()} == {
        n: v if v is None else type_name(v) for n, v in properties.items()
    }


@given(st.none() | text, st.none() | text, st.none() | text, st.none() | destinations, destinations)
def test_headers_come_back(message_id, correlation_id, kind, reply_to, to):
    message = Message(correlation_id=correlation_id, reply_to=reply_to, type=kind)
    message.message_id = None if message_id is None else f"ID:{message_id}"
    got = through(message, to)
    assert (got.message_id, got.correlation_id, got.type) == (message.message_id, correlation_id, kind)
    assert (got.reply_to, got.destination) == (reply_to, to)


@given(st.sampled_from(get_args(Naming)), destinations, destinations)
def test_names_come_back_however_the_broker_writes_them(naming, reply_to, to):
    got = decode(encode(Message(reply_to=reply_to), to, NOW, naming), QUEUE, naming=naming)
    assert (got.reply_to, got.destination) == (reply_to, to)


@pytest.mark.parametrize(
    ("naming", "queue", "topic"),
    [
        ("capability", "a", "a"),
        ("scheme", "queue://a", "topic://a"),
        ("exchange", "a", "amq.topic/a"),
        ("path", "/queue/a", "/topic/a"),
    ],
)
def test_destinations_in_messages_are_addresses_of_the_broker(naming, queue, topic):
    """Others answer to what they read there."""
    wire = WireMessage()
    wire.decode(encode(Message(reply_to=Topic("a")), Queue("a"), NOW, naming))
    assert (wire.address, wire.reply_to) == (queue, topic)


@given(st.integers(0, 9), st.sampled_from(DeliveryMode), moments, moments, moments)
def test_times_come_back_to_the_millisecond(priority, mode, sent, expires, due):
    message = Message()
    message.priority, message.delivery_mode = priority, mode
    message.timestamp, message.expiration, message.delivery_time = sent, expires, due
    got = through(message)
    assert (got.priority, got.delivery_mode) == (priority, mode)
    assert (got.timestamp, got.expiration, got.delivery_time) == (sent, expires, due)


@given(st.none() | text)
def test_texts(body):
    got = through(TextMessage(body))
    assert (type(got), got.body) == (TextMessage, body)


@given(st.none() | st.binary(max_size=100))
def test_bytes(body):
    got = through(BytesMessage(body))
    assert (type(got), got.body) == (BytesMessage, body or b"")


def test_plain():
    assert type(through(Message())) is Message


def test_what_is_received_is_read_only():
    with pytest.raises(Exception, match="read-only"):
        through(TextMessage("x")).body = "y"


def test_time_to_live_counts_from_now_and_is_never_for_ever():
    message = Message()
    message.expiration = datetime.fromtimestamp(NOW + 5, UTC)
    assert wire(message).ttl == 5
    message.expiration = datetime.fromtimestamp(NOW - 5, UTC)
    assert wire(message).ttl == 0.001
    message.expiration = datetime.fromtimestamp(NOW + 60 * 86_400, UTC)
    assert wire(message).ttl == 0  # the header has room for 50 days
    assert wire(message).expiry_time == NOW + 60 * 86_400


def test_long_ago_and_far_away_can_be_sent():
    message = Message()
    message.timestamp = datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)
    message.expiration = datetime(9999, 12, 31, tzinfo=UTC)
    assert through(message).expiration == message.expiration


def wire(message, to=QUEUE):
    """What we send, as proton's own users see it."""
    read = WireMessage()
    read.decode(encode(message, to, NOW))
    return read


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
    assert {str(n): int(v) for n, v in read.annotations.items()} == annotations
    assert all(type(value) is byte for value in read.annotations.values())
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


@given(st.integers(0, 1000), st.booleans(), st.none() | st.booleans())
def test_header_is_read_alone(count, first, durable):
    message = WireMessage(body="x", delivery_count=count, first_acquirer=first, durable=bool(durable))
    head = bytes(message.encode())
    assert header_of(head) == (count, first)
    assert header_of(head + b"poison") == (count, first)
    assert decode(head, QUEUE).delivery_count == count + 1


HEADER = bytes(WireMessage(body="x", delivery_count=3, first_acquirer=True, ttl=1, durable=True).encode())


def assert_harmless(header):
    assert isinstance(header.before, int)
    assert isinstance(header.first, bool)
    assert header.before >= 0


@given(st.binary(max_size=80))
def test_header_of_noise_does_no_harm(noise):
    assert_harmless(header_of(noise))


@given(st.integers(0, 20), st.binary(min_size=1, max_size=4))
def test_damaged_header_does_no_harm(position, damage):
    assert_harmless(header_of(HEADER[:position] + damage + HEADER[position + len(damage) :]))


WHOLE = encode(TextMessage("text", properties={"a": Int(1), "b": "x"}, correlation_id="c"), QUEUE, NOW)


def test_every_cut_is_noticed():
    split(WHOLE)
    ends = []
    for length in range(len(WHOLE)):
        try:
            read(WHOLE[:length], QUEUE)
            ends.append(length)
        except MessageFormatError:
            pass
    assert len(ends) <= 5  # where one of the sections before the body ends


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_damage_is_a_message_or_a_format_error(position, value):
    damaged = WHOLE[:position] + bytes([value]) + WHOLE[position + 1 :]
    with suppress(MessageFormatError):
        read(damaged, QUEUE)


@given(st.binary(max_size=200))
def test_noise_is_a_format_error(noise):
    try:
        split(noise)
    except MALFORMED:
        with pytest.raises(MessageFormatError):
            read(noise, QUEUE)


@pytest.mark.parametrize("body", ["\ud800", "x\ud800"])
def test_what_cannot_be_encoded_says_so(body):
    with pytest.raises(MessageFormatError):
        encode(TextMessage(body), QUEUE, NOW)
