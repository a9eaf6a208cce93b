"""Stored JSON is decoded as the standard library decodes it."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode as decode_amqp
from jmsjca.providers.amqp.codec.encoder import encode as encode_amqp
from jmsjca.providers.common.codec import from_json, to_datetime, to_milliseconds
from jmsjca.providers.embedded.codec import decode as decode_stored
from jmsjca.providers.embedded.codec import encode as encode_stored
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.provider import dialect_for

SPACES = st.text(" \t\r\n", max_size=3)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()), SPACES, SPACES)
def test_spaces_around_it_mean_nothing(value, before, after):
    assert from_json(before + json.dumps(value) + after) == value


@pytest.mark.parametrize("text", ["", " ", '{"a":1', '{"a":1}{', '{"a":1} x', "{}{}", "x{}"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(json.JSONDecodeError):
        from_json(text)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
@example(253_402_300_799_999)
@example(-62_135_596_800_000)
def test_times_are_whole_milliseconds_and_stay_the_same(milliseconds):
    """Found: the last millisecond of the year 9999 arrived as .998993."""
    moment = to_datetime(milliseconds)
    assert (moment.microsecond % 1000, to_milliseconds(moment)) == (0, milliseconds)


@pytest.mark.parametrize("protocol", ["amqp", "stomp", "embedded"])
def test_a_far_time_arrives_as_it_was_sent(protocol):
    last, first = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC), datetime(1, 1, 1, 0, 0, 0, 1000, UTC)
    message = TextMessage("a")
    message.message_id, message.timestamp, message.expiration = "ID:1", first, last
    if protocol == "amqp":
        received = decode_amqp(encode_amqp(message, Queue("q"), 0.0), ReceiveContext(Queue("q")))
    elif protocol == "stomp":
        dialect = dialect_for("ActiveMQ/6.3.1", "1.2")
        out = dialect.encode(message, Queue("q"))
        received = dialect.decode(Frame("MESSAGE", {**out.headers, "message-id": "1"}, out.body, 1), Queue("q"))
    else:
        row = encode_stored(message, Queue("q"))
        received = decode_stored(row.headers.encode(), row.body, 1, row.expires)
    assert (received.timestamp, received.expiration) == (first, last)
