"""Arbitrary bytes are a message or a MessageFormatError, at bounded cost."""

import tracemalloc
import uuid
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import symbol

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Queue, StreamMessage, TextMessage, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Char, Float, Long, Short
from jmsjca.messages.message import headers_of
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.providers.amqp.codec.sections import bare_message
from jmsjca.providers.amqp.delivery import ReceivedMessage
from tests.unit.providers.amqp.codec.proton_sections import (
    DATA,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    annotated,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import NOW, QUEUE

PROPERTIES_OF_ALL = {"a": Short(1), "b": "x", "JMSXGroupID": "g", "JMSXGroupSeq": 3, "c": None, "d": 0.5}


def message(kind, body):
    made = kind(body, properties=PROPERTIES_OF_ALL, correlation_id="ID:AMQP_UUID:" + str(uuid.UUID(int=3)))
    made.message_id, made.reply_to, made.type = "ID:1", Topic("replies"), "type"
    made.timestamp = made.expiration = made.delivery_time = datetime.fromtimestamp(NOW, UTC)
    return encode(made, QUEUE, NOW)


SEEDS = [
    message(Message, None),
    message(TextMessage, "text"),
    message(BytesMessage, b"bytes"),
    message(MapMessage, {"a": 1, "b": [None][0], "c": Char("c"), "d": b"b", "e": Float(1)}),
    message(StreamMessage, [True, "x", Long(1)]),
    message(ObjectMessage, ["data"]),
    encode(ObjectMessage.from_data({"a": [1, {"b": uuid.UUID(int=1)}]}), QUEUE, NOW),
]


def look(raw):
    """All that anybody asks of a message that came."""
    found = ReceivedMessage(raw, ReceiveContext(QUEUE))
    assert found.count >= 1
    assert found.redelivered in {True, False}
    assert isinstance(found.raw, bytes)
    assert isinstance(bare_message(raw), bytes)
    with suppress(MessageFormatError):
        made = found.message
        assert repr(made)
        assert made.get_property_names() is not None
        assert made.priority <= 9
        encode(made, Queue("further"), NOW)
    look_at_headers(raw)


def look_at_headers(raw):
    """Headers that are decoded at once are those that are decoded one by one."""
    with suppress(MessageFormatError):
        headers = headers_of(decode(raw, ReceiveContext(QUEUE), NOW))
        at_once = headers.decode_all()
        if at_once is None:
            with pytest.raises(MessageFormatError):
                dict(headers)
        else:
            one_by_one = dict(headers)
            properties = [dict(found.pop("properties")) for found in (at_once, one_by_one)]
            assert repr(properties[0]) == repr(properties[1])
            assert at_once == one_by_one


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_whole_is_a_message(seed):
    assert decode(seed, ReceiveContext(QUEUE)).priority == 4
    look(seed)


pieces = st.binary(max_size=8) | st.sampled_from([b"\x00\x53", b"\xff" * 4, b"\x45", b"\xd0"])


@given(st.sampled_from(SEEDS), st.data())
def test_damage_is_a_message_or_a_format_error(seed, data):
    raw = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(begin, min(begin + 8, len(raw))))
        raw[begin:end] = data.draw(
            st.binary(max_size=8) | st.sampled_from([b"\x00\x53", b"\xff" * 4, b"\x45", b"\xd0"])
        )
    look(bytes(raw))


@given(st.sampled_from(SEEDS), st.sampled_from(SEEDS), st.data())
def test_pieces_of_two_messages_are_one_or_a_format_error(one, other, data):
    cut = data.draw(st.integers(0, len(one)))
    look(one[:cut] + other[data.draw(st.integers(0, len(other))) :])


@given(st.sampled_from(SEEDS), st.data())
def test_each_byte_of_a_message_may_be_any(seed, data):
    place = data.draw(st.integers(0, len(seed) - 1))
    look(seed[:place] + bytes([data.draw(st.integers(0, 255))]) + seed[place + 1 :])


@given(st.binary(max_size=200))
def test_noise_is_a_format_error(noise):
    look(noise)


def wrapped(depth, begin, end=b"\x45"):
    return section(HEADER, []) + b"\x00\x53\x77" + begin(depth) + end


def lists(depth):
    """The heads of lists in lists."""
    sizes = [4 + 9 * inner + 1 for inner in range(depth)]
    return b"".join(b"\xd0" + size.to_bytes(4, "big") + b"\0\0\0\1" for size in reversed(sizes))


BOMBS = {
    "lists in lists": wrapped(100_000, lists),
    "descriptors of descriptors": wrapped(100_000, lambda depth: b"\x00" * depth, b"\x40" * 100_001),
    "a list of four billions": b"\x00\x53\x77\xd0\xff\xff\xff\xff\xff\xff\xff\xff",
    "a full list of four billions": b"\x00\x53\x77\xd0\0\0\0\x08\xff\xff\xff\xff\x40\x40\x40\x40",
    "four billions of nothing": b"\x00\x53\x77\xf0\0\0\0\x05\xff\xff\xff\xff\x40",
    "nothing that is said to take all bytes": b"\x00\x53\x77\xc0\x0b\x01\xf0\xff\xff\xff\xff\xff\xff\xff\xfe\x40",
    "a map of four billions": b"\x00\x53\x77\xd1\0\0\0\x05\xff\xff\xff\xfe\x40",
    "a text of four billions": b"\x00\x53\x77\xb1\xff\xff\xff\xffx",
    "bytes of four billions": b"\x00\x53\x75\xb0\xff\xff\xff\xffx",
    "a sender of four billions": b"\x00\x53\x73\xc0\x0a\x02\x40\x80\0\0\0\xff\0\0\0\0",
    "annotations that are no map": section(0x72, []) + section(VALUE, "x"),
    "a header that is no list": section(HEADER, {}) + section(VALUE, "x"),
    "bodies of two kinds": section(DATA, b"x") + section(VALUE, "x"),
    "two values": section(VALUE, "x") * 2,
    "sections out of order": section(PROPERTIES, []) + section(HEADER, []) + section(VALUE, "x"),
    "a section of nobody": section(0x7F, []) + section(VALUE, "x"),
    "a type that is a list": annotated(x_opt_jms_msg_type=[5]) + section(VALUE, "x"),
    "no sections": b"text",
}


@pytest.mark.parametrize("raw", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_within_little_memory(raw):
    tracemalloc.start()
    try:
        with pytest.raises(MessageFormatError):
            assert decode(raw, ReceiveContext(QUEUE)).priority
        look(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000 + 10 * len(raw)


FOOTER = section(0x78, {symbol("x-opt-sum"): 1})


@pytest.mark.parametrize("body", [section(DATA, b"x"), section(SEQUENCE, [True])])
def test_sections_that_may_come_again_are_joined(body):
    assert len(decode(body * 3, ReceiveContext(QUEUE)).body) == 3
    assert len(decode(body * 3 + FOOTER, ReceiveContext(QUEUE)).body) == 3


def test_an_unknown_charset_or_content_type_leaves_bytes():
    for told in ("text/plain;charset=nobody's", "text/plain;charset=idna", "nonsense", "text/plain;charset="):
        raw = section(PROPERTIES, [None] * 6 + [told]) + section(DATA, b"xn--a")
        assert type(decode(raw, ReceiveContext(QUEUE))) is BytesMessage
