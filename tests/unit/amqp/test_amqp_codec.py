"""Messages as AMQP: what was sent comes back."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message as WireMessage

from jmsjca.destinations import Queue, Topic
from jmsjca.messages import (
    Byte,
    BytesMessage,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    Message,
    Short,
    TextMessage,
    type_name,
)
from jmsjca.providers.amqp.codec.addresses import AddressStyle, ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from tests.unit.amqp.coding import NOW, QUEUE, through, wire


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


@given(st.sampled_from(get_args(AddressStyle)), destinations, destinations)
def test_names_come_back_however_the_broker_writes_them(naming, reply_to, to):
    got = decode(encode(Message(reply_to=reply_to), to, NOW, naming), ReceiveContext(QUEUE, naming))
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
