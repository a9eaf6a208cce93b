"""Options for streams of RabbitMQ 4, and the properties by which messages name their filter value."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import timestamp

from jmsjca import Queue, TextMessage
from jmsjca.errors import InvalidOptionError, MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.providers.brokers.rabbitmq_amqp import StreamOptions
from jmsjca.reconnection import ConnectionSettings, connect

STREAM = Queue("stream")


def encoded(naming="encoded", **properties):
    message = TextMessage("text", properties=properties)
    message.delivery_time = datetime(2026, 1, 2, tzinfo=UTC)
    return encode(message, STREAM, 0.0, naming)


def region(value):
    return encoded(JMS_AMQP_STREAM_FILTER=value) if value else encoded()


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        ("first", "first"),
        ("12h", "12h"),
        ("42", 42),
        ("2026-01-02T00:00:00+01:00", timestamp(1_767_308_400_000)),
        ("1900-01-01T00:00:00Z", timestamp(0)),
    ],
)
def test_an_offset_is_a_word_an_interval_a_number_or_a_time(offset, value):
    assert StreamOptions(offset).filters == {"rabbitmq:stream-offset-spec": value}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("stream_offset=begin", "stream_offset is first, last, next, a number.* not 'begin'"),
        ("stream_offset=-1", "not '-1'"),
        ("stream_offset=2026-01-02T00:00:00", "a time with its zone"),
        ("stream_offset=", "not ''"),
        ("stream_filter=eu,,us", "stream_filter is filter values with commas, not 'eu,,us'"),
        ("stream_match_unfiltered=true", "needs the option stream_filter"),
    ],
)
def test_an_option_that_is_not_valid_is_refused_before_connecting(option, message):
    with pytest.raises(InvalidOptionError, match=message):
        connect(ConnectionSettings(f"amqp://127.0.0.1:1?{option}"))


@pytest.mark.parametrize("match_unfiltered", [True, False])
def test_messages_are_selected_by_their_filter_values(match_unfiltered):
    options = StreamOptions(values="eu,us", match_unfiltered=match_unfiltered)
    selected = [options.selects(region(value)) for value in ("eu", "us", "asia", None)]
    assert selected == [True, True, False, match_unfiltered]


def test_all_messages_are_selected_without_filter_values():
    assert all(StreamOptions("first").selects(region(value)) for value in ("eu", None))


@given(st.binary(max_size=40))
def test_a_message_that_cannot_be_decoded_is_selected_or_has_no_filter_value(raw):
    assert StreamOptions(values="eu").selects(b"\0\x53\x72" + raw) in {True, False}


def test_a_damaged_message_is_selected():
    assert StreamOptions(values="eu").selects(b"\xff\xff")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_filter_value_is_an_annotation_and_a_property(value):
    received = decode(encoded(JMS_AMQP_STREAM_FILTER=value), ReceiveContext(STREAM, "encoded"))
    assert received.properties["JMS_AMQP_STREAM_FILTER"] == value
    assert received.delivery_time == datetime(2026, 1, 2, tzinfo=UTC)
    assert StreamOptions(values="x").selects(encoded(JMS_AMQP_STREAM_FILTER=value)) is (value == "x")


def test_on_other_brokers_it_is_a_property_alone():
    raw = encoded("capability", JMS_AMQP_STREAM_FILTER="eu")
    assert b"x-stream-filter-value" not in raw
    assert decode(raw, ReceiveContext(STREAM)).properties["JMS_AMQP_STREAM_FILTER"] == "eu"


def test_a_filter_value_is_text():
    with pytest.raises(MessageFormatError, match="JMS_AMQP_STREAM_FILTER is text, not Int"):
        encoded(JMS_AMQP_STREAM_FILTER=7)
