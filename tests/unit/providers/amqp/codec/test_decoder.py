"""Received messages: types, ids, times and destinations."""

from datetime import UTC, datetime

import pytest
from proton import byte, symbol, ubyte, uint

from jmsjca import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    StreamMessage,
    TemporaryTopic,
    TextMessage,
    Topic,
)
from jmsjca.errors import MessageFormatError
from tests.unit.providers.amqp.codec.proton_sections import (
    DATA,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    annotated,
    listed,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import NOW, received

JAVA = "application/x-java-serialized-object"
NOTHING = section(PROPERTIES, [])


def told(content_type):
    return listed(PROPERTIES, content_type=symbol(content_type))


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (section(VALUE, "x"), TextMessage),
        (section(VALUE, None), TextMessage),
        (section(VALUE, b"x"), BytesMessage),
        (section(VALUE, {"a": 1}), ObjectMessage),
        (section(SEQUENCE, [1]), ObjectMessage),
        (section(DATA, b"x"), BytesMessage),
        (told("text/plain") + section(DATA, b"x"), TextMessage),
        (told("application/json") + section(DATA, b"x"), TextMessage),
        (told("application/soap+xml; charset=us-ascii") + section(DATA, b"x"), TextMessage),
        (told(JAVA) + section(DATA, b"x"), ObjectMessage),
        (told("image/png") + section(DATA, b"x"), BytesMessage),
        (told("image/png"), Message),
        (told("text/plain"), TextMessage),
        (told(JAVA), ObjectMessage),
        (NOTHING, BytesMessage),
    ],
)
def test_a_message_without_annotations_is_what_its_body_says(raw, kind):
    assert type(received(raw)) is kind


@pytest.mark.parametrize("kind", ["application/json", "text/plain; charset=latin-1", "image/png", JAVA, None])
@pytest.mark.parametrize("number", [None, 1, 3, 5])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "base64"])
def test_data_with_a_content_encoding_are_bytes(kind, number, coding):
    """The content type holds after decoding (AMQP 1.0, section 3.2.4)."""
    annotations = b"" if number is None else annotated(x_opt_jms_msg_type=byte(number))
    fields = listed(PROPERTIES, message_id="ID:1", content_type=kind and symbol(kind), content_encoding=symbol(coding))
    message = received(annotations + fields + section(DATA, b"\x1f\x8b") + section(DATA, b"\xff"))
    assert (type(message), message.body, message.message_id) == (BytesMessage, b"\x1f\x8b\xff", "ID:1")


@pytest.mark.parametrize(
    ("coding", "body", "kind"),
    [
        ("identity", section(DATA, b"x"), TextMessage),
        ("", section(DATA, b"x"), TextMessage),
        ("gzip", section(VALUE, "x"), TextMessage),
        ("gzip", section(VALUE, b"x"), BytesMessage),
        ("gzip", section(SEQUENCE, [1]), ObjectMessage),
        ("gzip", b"", TextMessage),
    ],
)
def test_a_content_encoding_is_one_of_data_alone(coding, body, kind):
    fields = listed(PROPERTIES, content_type=symbol("text/plain"), content_encoding=symbol(coding))
    assert type(received(fields + body)) is kind


KINDS = [Message, ObjectMessage, MapMessage, BytesMessage, StreamMessage, TextMessage]


@pytest.mark.parametrize(("number", "kind"), [*enumerate(KINDS)])
@pytest.mark.parametrize("body", [b"", section(VALUE, None)])
def test_a_message_with_an_annotation_is_what_that_says(number, kind, body):
    message = received(annotated(x_opt_jms_msg_type=byte(number)) + NOTHING + body)
    assert type(message) is kind
    assert not message.body


@pytest.mark.parametrize(
    ("number", "body"),
    [
        (2, section(VALUE, "x")),
        (2, section(DATA, b"x")),
        (3, section(VALUE, True)),
        (3, section(SEQUENCE, [True])),
        (4, section(DATA, b"x")),
        (4, section(VALUE, "x")),
        (5, section(VALUE, True)),
        (5, section(DATA, b"\xff")),
        (5, section(SEQUENCE, [True])),
        (6, b""),
        (-1, b""),
    ],
)
def test_a_body_that_is_not_of_its_kind_is_refused(number, body):
    with pytest.raises(MessageFormatError):
        received(annotated(x_opt_jms_msg_type=byte(number)) + NOTHING + body)


def test_an_object_that_is_said_to_be_javas_is_bytes():
    with pytest.raises(MessageFormatError):
        received(annotated(x_opt_jms_msg_type=byte(1)) + told(JAVA) + section(VALUE, "x"))
    got = received(annotated(x_opt_jms_msg_type=byte(1)) + told(JAVA) + section(DATA, b"x"))
    assert (got.pickled, "JMS_AMQP_TYPED_ENCODING" in got.properties) == (b"x", False)


@pytest.mark.parametrize(
    ("text", "message_id", "correlation_id"),
    [
        ("ID:x", "ID:x", "ID:x"),
        ("x", "ID:AMQP_NO_PREFIX:x", "x"),
        ("", "ID:AMQP_NO_PREFIX:", ""),
        ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
        ("AMQP_UUID:x", "ID:AMQP_NO_PREFIX:AMQP_UUID:x", "AMQP_UUID:x"),
    ],
)
def test_texts_of_ids(text, message_id, correlation_id):
    got = received(listed(PROPERTIES, message_id=text, correlation_id=text))
    assert (got.message_id, got.correlation_id) == (message_id, correlation_id)


def test_what_javas_first_clients_wrote_is_read():
    raw = annotated(x_opt_to_type="topic", x_opt_reply_type="temporary,topic") + listed(
        PROPERTIES, to="t", reply_to="r"
    )
    got = received(raw, Queue("q"))
    assert (got.destination, got.reply_to) == (Topic("t"), TemporaryTopic("r"))


def test_a_time_to_live_counts_from_the_arrival():
    got = received(listed(HEADER, ttl=uint(1500)) + NOTHING)
    assert got.expiration == datetime.fromtimestamp(NOW + 1.5, UTC)


@pytest.mark.parametrize(("raw", "priority"), [(None, 4), (0, 0), (9, 9), (10, 9), (255, 9)])
def test_priorities_are_those_of_jms(raw, priority):
    assert received(listed(HEADER, priority=raw if raw is None else ubyte(raw)) + NOTHING).priority == priority


def test_defaults_are_those_of_amqp():
    got = received(section(HEADER, []) + NOTHING)
    assert (got.delivery_mode, got.redelivered, got.delivery_count) == (DeliveryMode.NON_PERSISTENT, False, 1)
    assert (got.expiration, got.timestamp, got.delivery_time, got.message_id) == (None, None, None, None)
