"""Messages as AMQP: round trips, bounded caches, and damaged messages."""

import gc
import pkgutil
import weakref
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message as WireMessage

from jmsjca.destinations import Queue, TemporaryQueue, Topic
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
    Short,
    TextMessage,
    type_name,
)
from jmsjca.providers import amqp
from jmsjca.providers.amqp.codec import decoder
from jmsjca.providers.amqp.codec.addresses import AddressStyle, ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode, template_for
from jmsjca.providers.amqp.codec.jms_mapping import MESSAGE_TYPE
from jmsjca.providers.amqp.codec.sections import find_sections, read_header
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.common.amqp_types import MALFORMED, Symbol, write
from tests.unit.providers.amqp.codec_helpers import NOW, QUEUE, read, through, wire
from tests.unit.providers.amqp.wire.memory_growth import MIB, growth_below


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


MOST = 4096
CACHED_QUEUE = Queue("q")


def test_every_cache_has_a_bound():
    modules = [import_module(found.name) for found in pkgutil.walk_packages(amqp.__path__, f"{amqp.__name__}.")]
    bounds = {
        f"{module.__name__}.{name}": cached.cache_info().maxsize
        for module in modules
        for name, cached in vars(module).items()
        if hasattr(cached, "cache_info")
    }
    assert bounds
    assert {name: bound for name, bound in bounds.items() if bound is None or bound > MOST} == {}


def test_long_names_are_not_kept():
    """Strangers choose those of properties and of the queues for replies, and who passes a message on writes them."""
    with growth_below(16 * MIB):
        for number in range(20):
            name = f"p{number}" + MIB * "x"
            encode(TextMessage("a", properties={name: 1}, reply_to=Queue(name)), CACHED_QUEUE, 0.0)
            template_for(Queue(name), "capability")


def annotated(**told):
    """A bytes message with annotations, the same for whoever delivers it and for whoever gets it."""
    annotations = {Symbol(name): value for name, value in told.items()}
    return b"".join(
        (
            b"\0\x53\x71",
            write(annotations),
            b"\0\x53\x72",
            write({Symbol(MESSAGE_TYPE): Byte(3), **annotations}),
            b"\0\x53\x73\x45\0\x53\x75\xa0\x01a",
        )
    )


def test_long_annotations_are_not_kept():
    with growth_below(16 * MIB):
        for number in range(20):
            assert decode(annotated(**{f"x{number}": MIB * "x"}), ReceiveContext(CACHED_QUEUE)).body == b"a"


def test_only_a_short_beginning_of_a_message_is_cached():
    assert decode(annotated(x=100 * "x"), ReceiveContext(CACHED_QUEUE)).body == b"a"
    kept = decoder._last_prefix[0][0]
    assert decode(annotated(x=200 * "x"), ReceiveContext(CACHED_QUEUE)).body == b"a"
    assert decoder._last_prefix[0][0] == kept != b""


def test_a_connection_is_not_kept_for_its_temporary_destinations():
    class Connection:
        def remove(self, what):
            """Never called."""

    connection = Connection()
    known = weakref.ref(connection)
    own = TemporaryQueue("temporary", connection.remove)
    encode(TextMessage("a", reply_to=own), own, 0.0)
    del connection, own
    gc.collect()
    assert known() is None


@given(st.integers(0, 1000), st.booleans(), st.none() | st.booleans())
def test_header_is_read_alone(count, first, durable):
    message = WireMessage(body="x", delivery_count=count, first_acquirer=first, durable=bool(durable))
    head = bytes(message.encode())
    for raw in (head, head + b"poison"):
        header = read_header(raw)
        assert (header.delivery_count, header.first_acquirer) == (count, first)
    assert decode(head, ReceiveContext(QUEUE)).delivery_count == count + 1


@given(st.integers(0, 1000), st.booleans(), st.integers(0, 3), st.booleans())
def test_a_message_tells_how_often_it_came_as_its_delivery_does(before, first, failures, counts):
    """What the broker does not count, and failures that it does not know of, are counted here."""
    raw = bytes(WireMessage(body="x", delivery_count=before, first_acquirer=first).encode())
    found = ReceivedMessage(raw, ReceiveContext(QUEUE, counts_deliveries=counts), failures)
    assert found.count == (before + 1 + failures if counts or failures else None)
    assert found.redelivered == (failures > 0 or (before > 0 if counts else not first))
    assert (found.message.delivery_count, found.message.redelivered) == (found.count or 0, found.redelivered)


HEADER = bytes(WireMessage(body="x", delivery_count=3, first_acquirer=True, ttl=1, durable=True).encode())


def assert_harmless(header):
    assert isinstance(header.delivery_count, int)
    assert isinstance(header.first_acquirer, bool)
    assert header.delivery_count >= 0


@given(st.binary(max_size=80))
def test_header_of_noise_does_no_harm(noise):
    assert_harmless(read_header(noise))


@given(st.integers(0, 20), st.binary(min_size=1, max_size=4))
def test_damaged_header_does_no_harm(position, damage):
    assert_harmless(read_header(HEADER[:position] + damage + HEADER[position + len(damage) :]))


WHOLE = encode(TextMessage("text", properties={"a": Int(1), "b": "x"}, correlation_id="c"), QUEUE, NOW)


def test_every_cut_is_noticed():
    find_sections(WHOLE)
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
        find_sections(noise)
    except MALFORMED:
        with pytest.raises(MessageFormatError):
            read(noise, QUEUE)


@pytest.mark.parametrize("body", ["\ud800", "x\ud800"])
def test_what_cannot_be_encoded_says_so(body):
    with pytest.raises(MessageFormatError):
        encode(TextMessage(body), QUEUE, NOW)


def read_headers(message):
    return message.message_id, message.priority, message.type, message.correlation_id, dict(message.properties)


def test_after_many_headers_were_read_those_of_the_next_messages_are_decoded_at_once():
    context = ReceiveContext(QUEUE)
    raws = [encode(TextMessage("t", type=str(n), properties={"n": n}), QUEUE, NOW) for n in range(100)]
    one_by_one = [read_headers(decode(raw, ReceiveContext(QUEUE))) for raw in raws]
    assert [read_headers(decode(raw, context)) for raw in raws] == one_by_one
    assert context.habit.ahead


def test_after_few_headers_were_read_those_of_the_next_messages_are_not_decoded():
    context = ReceiveContext(QUEUE)
    got = decode(encode(TextMessage("t"), QUEUE, NOW), context)
    assert (got.message_id, got.reply_to, got.correlation_id, dict(got.properties)) == (None, None, None, {})
    assert not context.habit.ahead


def test_when_the_next_messages_were_decoded_at_once_another_is_decoded_on_access():
    context = ReceiveContext(QUEUE)
    raw = encode(TextMessage("t"), QUEUE, NOW)
    read_headers(decode(raw, context))
    for _ in range(context.habit.ahead):
        decode(raw, context)
    assert context.habit.ahead == 0
    assert decode(raw, context).priority == 4


def test_a_damaged_header_is_an_error_of_its_own_although_headers_are_decoded_at_once():
    context = ReceiveContext(QUEUE)
    read_headers(decode(encode(TextMessage("t"), QUEUE, NOW), context))
    assert context.habit.ahead
    damaged = encode(TextMessage("t", correlation_id="correlation"), QUEUE, NOW).replace(
        b"correlation", b"correlat\xffon"
    )
    got = decode(damaged, context)
    assert (got.body, got.priority) == ("t", 4)
    with pytest.raises(MessageFormatError):
        _ = got.correlation_id
