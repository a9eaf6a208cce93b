"""Common bodies decoded by the fast path equal those of the general decoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.destinations import Queue
from jmsjca.messages import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsjca.providers.amqp.codec import decoder
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE, decode_body, decode_usual_body
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.providers.amqp.codec.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    EncodedMessage,
    find_sections,
)

CONTEXT = ReceiveContext(Queue("q"))
LONG = 300


def encoded(message, number="ID:1"):
    message.message_id = number
    return encode(message, Queue("q"), 0)


def usual(raw):
    return decode_usual_body(EncodedMessage(raw, CONTEXT))


def any_way(raw):
    """What comes out without the short way."""
    return decoder._decode_any_body(EncodedMessage(raw, CONTEXT))


MESSAGES = {
    "bytes": BytesMessage(b"a"),
    "long bytes": BytesMessage(LONG * b"a"),
    "no bytes": BytesMessage(b""),
    "text": TextMessage("a"),
    "long text": TextMessage(LONG * "\u00df"),
    "no text": TextMessage(""),
    "properties": TextMessage("a", properties={"a": 1}),
    "many properties": BytesMessage(b"a", properties={f"p{n}": n for n in range(100)}),
    "null": TextMessage(),
    "none": Message(),
    "map": MapMessage({"a": 1}),
    "stream": StreamMessage([1]),
    "object": ObjectMessage(range(3)),
    "data": ObjectMessage({"a": 1}),
}
ENCODED = {name: encoded(message) for name, message in MESSAGES.items()}


@pytest.mark.parametrize("before", ENCODED)
@pytest.mark.parametrize("name", ENCODED)
def test_whatever_came_before_the_body_is_the_same(before, name):
    usual(ENCODED[before])
    raw = encoded(MESSAGES[name], "ID:" + LONG * "2")
    assert decode_body(EncodedMessage(raw, CONTEXT)) == any_way(raw)


@pytest.mark.parametrize("name", ["bytes", "long bytes", "no bytes", "text", "long text", "no text", "properties"])
def test_it_is_found_again_without_the_sections(name):
    usual(ENCODED[name])
    message = EncodedMessage(encoded(MESSAGES[name], "ID:2"), CONTEXT)
    assert decode_usual_body(message) == any_way(message.raw)
    assert message.sections.keys() <= {PROPERTIES, APPLICATION_PROPERTIES}


@pytest.mark.parametrize("name", ["null", "none", "map", "stream", "object"])
def test_another_body_is_left_to_the_others(name):
    assert usual(ENCODED[name]) is None


def outcome(function, raw):
    try:
        return function(raw)
    except UNDECODABLE:
        return "undecodable"


def through(raw):
    return decode_body(EncodedMessage(raw, CONTEXT))


@given(
    st.sampled_from(list(ENCODED.values())),
    st.sampled_from(list(ENCODED.values())),
    st.lists(st.tuples(st.integers(0, LONG), st.integers(0, 2), st.binary(max_size=3)), max_size=3),
)
def test_damaged_messages_come_to_the_same(before, raw, damages):
    """Also in the first bytes, and where another message taught it how such a one begins."""
    for at, cut, put in damages:
        raw = raw[:at] + put + raw[at + cut :]
    usual(before)
    assert outcome(through, raw) == outcome(any_way, raw)
    if outcome(usual, raw) not in {None, "undecodable"}:
        find_sections(raw)


def test_what_has_several_pieces_is_left_to_the_others():
    usual(ENCODED["bytes"])
    raw = ENCODED["bytes"] + bytes((0, 0x53, DATA, 0xA0, 1)) + b"b"
    assert usual(raw) is None
    assert through(raw) == (BytesMessage, b"ab")


def marked(section):
    return bytes((0, 0x53, section))


@pytest.mark.parametrize("put", [marked(DATA), marked(SEQUENCE) + b"\x45" + marked(VALUE)], ids=["data", "two"])
def test_a_text_that_stands_where_none_may_be_is_no_message(put):
    raw = ENCODED["text"]
    usual(raw)
    at = raw.rindex(marked(VALUE))
    assert outcome(through, raw[:at] + put + raw[at + 3 :]) == "undecodable"


@pytest.mark.parametrize("first", range(256))
def test_nothing_is_known_before_the_first_one(monkeypatch, first):
    fresh = type(decoder._last_prefix)([decoder._NO_PREFIX])
    monkeypatch.setattr(decoder, "_last_prefix", fresh)
    for piece in (b"", b"\x40", b"\xa0\x00"):
        raw = bytes([first]) + piece + marked(DATA) + b"\xa0\x01a"
        assert outcome(usual, raw) in {None, "undecodable"}
