"""Messages encoded from templates equal those of the general encoder."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.destinations import Queue, TemporaryQueue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, DeliveryMode, MapMessage, Message, ObjectMessage, TextMessage
from jmsjca.providers.amqp.codec.encoder import encode, encode_message, template_for

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
QUEUE = Queue("q")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
sizes = st.sampled_from([0, 1, 254, 255, 256, 257, 70_000])
messages = st.one_of(
    st.builds(lambda size: TextMessage(size * "x"), sizes),
    st.builds(lambda size: BytesMessage(size * b"\xff"), sizes),
    st.builds(TextMessage, texts),
    st.builds(BytesMessage, st.binary(max_size=300)),
)
destinations = st.builds(lambda make, name: make(name), st.sampled_from([Queue, Topic]), texts.filter(bool))
headers = st.tuples(
    texts | sizes.map(lambda size: size * "i"),
    st.integers(-(1 << 40), 1 << 47).map(lambda milliseconds: EPOCH + timedelta(milliseconds=milliseconds)),
    st.sampled_from(DeliveryMode),
    st.integers(0, 9),
)


def plain(message, number="ID:1"):
    message.message_id, message.timestamp = number, NOW
    return message


@given(
    messages,
    headers,
    destinations,
    st.sampled_from(["capability", "exchange", "path", "scheme"]),
)
def test_the_bytes_are_the_same(message, headers, to, naming):
    message.message_id, message.timestamp, message.delivery_mode, message.priority = headers
    assert template_for(to, naming)(message) in {encode_message(message, to, 0, naming), None}


@pytest.mark.parametrize("message", [TextMessage("a"), TextMessage(1000 * "ß"), BytesMessage(b""), BytesMessage(b"a")])
@pytest.mark.parametrize("number", ["ID:1", "ID:" + 1000 * "x"])
def test_it_is_done_for_what_most_send(message, number):
    assert template_for(QUEUE, "capability")(plain(message, number))


def test_what_was_written_piece_by_piece():
    message = plain(BytesMessage())
    message.write_int(7)
    assert template_for(QUEUE, "capability")(message) == encode_message(message, QUEUE, 0, "capability")


@pytest.mark.parametrize(
    "message",
    [
        plain(TextMessage()),
        plain(MapMessage({"a": 1})),
        plain(ObjectMessage(range(3))),
        plain(Message()),
        plain(type("Mine", (TextMessage,), {"__slots__": ()})("a")),
        plain(TextMessage("a", properties={"a": 1})),
        plain(TextMessage("a", correlation_id="")),
        plain(TextMessage("a", reply_to=QUEUE)),
        plain(TextMessage("a", type="")),
        plain(TextMessage("a"), "ID:AMQP_ULONG:7"),
        plain(TextMessage("a"), None),
    ],
    ids=[
        "null",
        "map",
        "object",
        "none",
        "subclass",
        "property",
        "correlation",
        "reply",
        "type",
        "ulong",
        "no-id",
    ],
)
def test_what_has_more_is_left_to_the_encoder(message):
    assert template_for(QUEUE, "capability")(message) is None


@pytest.mark.parametrize("header", ["expiration", "delivery_time"])
def test_times_are_left_to_the_encoder(header):
    message = plain(TextMessage("a"))
    setattr(message, header, NOW)
    assert template_for(QUEUE, "capability")(message) is None


def test_a_message_without_a_time_is_left_to_the_encoder():
    message = plain(TextMessage("a"))
    message.timestamp = None
    assert template_for(QUEUE, "capability")(message) is None


def test_temporary_destinations_are_left_to_the_encoder():
    assert template_for(TemporaryQueue("a"), "capability")(plain(TextMessage("a"))) is None


@pytest.mark.parametrize("size", [127, 128, 129, 254, 255, 256, 257, 70_000])
@pytest.mark.parametrize("naming", ["capability", "path"])
def test_names_of_every_size(size, naming):
    message, to = plain(TextMessage("a")), Queue(size * "ß")
    assert template_for(to, naming)(message) == encode_message(message, to, 0, naming)


@pytest.mark.parametrize("message", [plain(TextMessage("a"), "\ud800"), plain(TextMessage("\ud800"))])
def test_what_cannot_be_encoded_is_no_message(message):
    with pytest.raises(MessageFormatError, match="surrogates"):
        encode(message, QUEUE, 0)
    assert template_for(QUEUE, "capability")(message) is None


def test_a_name_that_cannot_be_encoded_is_left_to_the_encoder():
    message, to = plain(TextMessage("a")), Queue("\ud800")
    assert template_for(to, "capability")(message) is None
    with pytest.raises(MessageFormatError, match="surrogates"):
        encode(message, to, 0)


def test_messages_of_several_shapes_take_turns():
    cast = template_for(QUEUE, "capability")
    shapes = [plain(TextMessage("a")), plain(BytesMessage(300 * b"a"), "ID:10"), plain(TextMessage("b"))]
    assert [cast(each) for each in shapes] == [encode_message(each, QUEUE, 0, "capability") for each in shapes]


def test_a_number_in_place_of_a_mode_changes_nothing_for_others():
    """It is equal to a mode."""
    shortly, lasting = plain(TextMessage("a")), plain(TextMessage("a"))
    shortly.delivery_mode = int(DeliveryMode.PERSISTENT)
    cast = template_for(Queue("numbered"), "capability")
    for message in (shortly, lasting, shortly):
        assert cast(message) == encode_message(message, Queue("numbered"), 0, "capability")


@pytest.mark.parametrize(("header", "wrong"), [("priority", "4"), ("priority", [4]), ("message_id", b"ID:1")])
def test_a_header_of_another_type_is_left_to_the_encoder_which_refuses_it(header, wrong):
    message = plain(TextMessage("a"))
    setattr(message, header, wrong)
    assert template_for(QUEUE, "capability")(message) is None
    with pytest.raises(MessageFormatError):
        encode(message, QUEUE, 0)


@pytest.mark.parametrize("priority", range(10))
def test_each_priority_is_written_also_the_default(priority):
    """RabbitMQ takes a message without a priority for one of the lowest."""
    message = TextMessage("a")
    message.priority = priority
    header = bytes([0x00, 0x53, 0x70, 0xC0, 0x04, 0x02, 0x41, 0x50, priority])
    assert encode(message, Queue("q"), 0.0).startswith(header)
