"""AMQP messages as RabbitMQ shows them over STOMP."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Data, byte, char, decimal32, float32, int32, short, symbol, timestamp, ubyte, uint, ulong, ushort

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, MessageFormatError
from jmsjca.messages import Byte, BytesMessage, Double, Float, Int, Long, Message, Short, TextMessage
from jmsjca.providers.brokers.rabbitmq_stomp import read_section
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser
from jmsjca.providers.stomp.provider import dialect_for

PLAIN = {"destination": "/queue/q", "message-id": "T_1@@session@@1", "subscription": "1"}
# Written by RabbitMQ 3.10.8 for a text with properties that came over AMQP 1.0.
RECORDED = (
    b"MESSAGE\nsubscription:1\ndestination:/queue/q\nmessage-id:T_1@@s@@1\nredelivered:false\n"
    b"x-amqp-1.0-app-properties:\x00St\xd1\x00\x00\x00\x19\x00\x00\x00\x06\xa1\x03intT\x07\xa1\x04text\xa1\x02\xc3\xa4"
    b"\xa1\x01bA\nx-amqp-1.0-message-annotations:\x00Sr\xd1\x00\x00\x00B\x00\x00\x00\x06\xa3\x0ex-opt-jms-destQ\x00"
    b"\xa3\x12x-opt-jms-reply-toQ\x00\xa3\x12x-opt-jms-msg-typeQ\x05\n"
    b"x-amqp-1.0-properties:\x00Ss\xc0s\\n\xa1#ID\\ca84d764bcd3d4c83ae907ac278a27772@\xa1'across.51fb0e88c0a041019b5761"
    b"7c5832f19b\xa1\x04kind\xa1\x07answers\xa1\x06corr-1@@@\x83\x00\x00\x01\xa1\xf9\xdd\xec\\c\n"
    b"type:amqp-1.0\ntimestamp:1795193433146\namqp-message-id:ID\\ca84d764\nreply-to:/reply-queue/answers\n"
    b"correlation-id:corr-1\npriority:6\npersistent:true\ncontent-length:10\n\n\x00Sw\xa1\x05t\xc3\xabxt\x00"
)


def shown_frame(body, headers):
    return Frame("MESSAGE", {**PLAIN, **headers}, body, 0)


def decoded(frame, server="RabbitMQ/3"):
    return dialect_for(server, "1.2").decode(frame, Queue("q"))


def section(code, *, of):
    data = Data()
    data.put_object(of)
    return b"\0\x53" + bytes([code]) + data.encode()


def shown(code, *, of):
    return section(code, of=of).decode("latin-1")


@pytest.mark.parametrize("cut", [len(RECORDED), 1, 7])
def test_a_message_that_was_sent_over_amqp_has_its_headers_and_properties(cut):
    parser = FrameParser(1000)
    [frame] = [f for at in range(0, len(RECORDED), cut) for f in parser.feed(RECORDED[at : at + cut])]
    message = decoded(frame)
    assert (type(message), message.body, message.type) == (TextMessage, "tëxt", "kind")
    assert (message.message_id, message.correlation_id) == ("ID:a84d764", "corr-1")
    assert (message.reply_to, message.priority) == (Queue("answers"), 6)
    assert {k: (type(v), v) for k, v in message.properties.items()} == {
        "int": (Int, 7),
        "text": (str, "ä"),
        "b": (bool, True),
    }


@pytest.mark.parametrize("line", [b"other:\xff", b"other:\0", b"x-amqp-2.0-a:\xff"])
def test_other_headers_stay_text(line):
    with pytest.raises(ConnectionLostError):
        FrameParser(1000).feed(b"MESSAGE\n" + line + b"\ndestination:d\nmessage-id:1\nsubscription:1\n\n\0")


@pytest.mark.parametrize(
    ("wire", "ours"),
    [
        *((byte(-3), Byte(-3)), (short(-300), Short(-300)), (int32(-7), Int(-7)), (int32(70_000), Int(70_000))),
        *((-7, Long(-7)), (2**40, Long(2**40)), (float32(0.5), Float(0.5)), (1.25, Double(1.25))),
        *((ubyte(200), Short(200)), (ushort(60_000), Int(60_000)), (uint(0), Long(0)), (uint(9), Long(9))),
        *((uint(2**31), Long(2**31)), (ulong(0), Long(0)), (ulong(9), Long(9)), (ulong(2**40), Long(2**40))),
        *((True, True), (False, False), (None, None), ("ä" * 300, "ä" * 300), (symbol("s"), "s"), (b"b", b"b")),
        (timestamp(5), Long(5)),
    ],
)
def test_value_is_read_with_its_type(wire, ours):
    value = read_section(section(0x74, of={"name": wire}))["name"]
    assert (type(value), value) == (type(ours), ours)


@given(st.lists(st.text(max_size=400) | st.booleans() | st.none(), max_size=300))
def test_lists_of_every_length_are_read(items):
    assert read_section(section(0x73, of=items)) == items


@given(st.binary(max_size=80))
def test_bytes_that_are_no_section_are_at_worst_a_poison_message(data):
    for code in (0x72, 0x74):
        with suppress(MessageFormatError):
            decoded(shown_frame(b"x", {"x-amqp-1.0-app-properties": _latin(code, data)}))


def _latin(code, data):
    return (b"\0\x53" + bytes([code]) + data).decode("latin-1")


@pytest.mark.parametrize(
    ("body", "headers", "made"),
    [
        (section(0x77, of="é" * 200), {"type": "amqp-1.0"}, TextMessage("é" * 200)),
        (section(0x77, of=None), {"type": "amqp-1.0"}, Message()),
        (section(0x77, of=b"\0"), {"type": "amqp-1.0"}, BytesMessage(b"\0")),
        (b"plain", {"type": "binary", "x-amqp-1.0-properties": shown(0x73, of=["1"])}, BytesMessage(b"plain")),
        (b"plain", {"type": "binary", "content-type": "text/plain"}, TextMessage("plain")),
        (
            b"\x1f\x8b",
            {"type": "binary", "content-type": "text/plain", "content-encoding": "gzip"},
            BytesMessage(b"\x1f\x8b"),
        ),
    ],
)
def test_bodies(body, headers, made):
    message = decoded(shown_frame(body, headers))
    assert (type(message), getattr(message, "body", None)) == (type(made), getattr(made, "body", None))


@pytest.mark.parametrize(("kind", "made"), [(0, Message), (3, BytesMessage), (5, TextMessage)])
def test_absent_body_has_the_type_that_it_was_sent_with(kind, made):
    annotations = shown(0x72, of={symbol("x-opt-jms-msg-type"): byte(kind)})
    message = decoded(shown_frame(b"", {"x-amqp-1.0-message-annotations": annotations}))
    assert (type(message), getattr(message, "body", None)) == (made, None)


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\x53\x77", b"\0\x53\x77\xa1\x09x", section(0x77, of=7), b"text"])
def test_body_that_cannot_be_read_is_a_poison_message(body):
    with pytest.raises(MessageFormatError):
        decoded(shown_frame(body, {"type": "amqp-1.0"}))


@pytest.mark.parametrize(
    ("headers", "made"),
    [
        ({"JMS_AMQP_MA_x-opt-jms-msg-type": "5"}, TextMessage("x")),
        ({"JMS_AMQP_MA_x-opt-jms-msg-type": "3"}, BytesMessage(b"x")),
        ({"JMS_AMQP_ContentType": "text/plain", "JMS_AMQP_MA_x-opt-jms-msg-type": "3"}, TextMessage("x")),
        ({"JMS_AMQP_HEADER": "true"}, TextMessage("x")),
    ],
)
def test_artemis_tells_what_came_over_amqp(headers, made):
    message = decoded(shown_frame(b"x", {"NATIVE_MESSAGE_ID": "ID:1", **headers}), "ActiveMQ-Artemis/2")
    assert (type(message), message.body, message.message_id) == (type(made), made.body, "ID:1")
    assert not message.properties


def test_cut_value_is_told_apart():
    with pytest.raises(struct.error):
        read_section(b"\0\x53\x77\x71\0")


def test_decimals_and_characters_in_properties_are_texts():
    properties = shown(0x74, of={"n": decimal32(0x3200000F), "c": char("x")})
    message = decoded(shown_frame(b"x", {"type": "binary", "x-amqp-1.0-app-properties": properties}))
    assert dict(message.properties) == {"n": "1.5", "c": "x"}
