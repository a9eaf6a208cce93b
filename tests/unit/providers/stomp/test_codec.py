"""Messages as frames, ActiveMQ's XML maps, and messages that cannot be decoded."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import MessageFormatError, NotSupportedError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    type_name,
    typed_entry,
)
from jmsjca.providers.brokers.activemq_stomp import from_xml, to_xml
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.provider import dialect_for
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.inbound.deliveries import Performance, endpoint_of, terms, until
from tests.unit.providers.stomp.reference_frames import read, write

SERVERS = ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2.56.0", "RabbitMQ/3.10.8", "Eclipse OpenMQ(tm)", "Other/1"]
QUEUE = Queue("q")
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | text


def through(message, server="ActiveMQ/6.3.1", **more):
    """The message as a broker would hand it on that changes nothing."""
    dialect = dialect_for(server, "1.2")
    [(_, headers, body)] = read(dialect.send_frame(dialect.encode(message, QUEUE)))
    return dialect.decode(frame(body, **{**dict(headers), **more}), QUEUE)


def frame(body=b"", **headers):
    return Frame(
        "MESSAGE", {"destination": "/queue/q", "message-id": "theirs", "subscription": "s", **headers}, body, 1
    )


@given(
    st.sampled_from(SERVERS),
    text,
    st.none() | text,
    st.dictionaries(st.sampled_from(["a", "b", "JMS_group", "type"]), values),
)
def test_whatever_is_sent_comes_back(server, body, correlation, properties):
    got = through(TextMessage(body, correlation_id=correlation, properties=properties), server)
    assert (got.body, got.correlation_id, dict(got.properties)) == (body, correlation, properties)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("body", [{}, {"a": Short(1), "b": b"\0", "c": None, "d": "ü\n"}])
def test_maps_and_streams(server, body):
    [got, row] = [through(made, server).body for made in (MapMessage(body), StreamMessage(body.values()))]
    assert (dict(got), tuple(got.values())) == (body, tuple(row))
    assert list(map(type, row)) == list(map(type, StreamMessage(body.values()).body))


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("message", [ObjectMessage(["data"]), ObjectMessage()])
def test_objects_travel_as_their_pickles(server, message):
    got = through(message, server)
    assert (type(got), got.pickled) == (ObjectMessage, message.pickled)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "message",
    [TextMessage(""), TextMessage(None), TextMessage("a\0b"), BytesMessage(b""), BytesMessage(None), Message()],
)
def test_kinds_and_absent_bodies(server, message):
    got = through(message, server)
    assert (type(got), got.body) == (type(message), message.body)


def test_types_of_properties():
    got = through(
        Message(properties={"s": Short(1), "l": Long(2), "f": Float(1.5), "nan": math.nan, "t": "1"})
    ).properties
    assert [type_name(value) for value in got.values()] == ["short", "long", "float", "double", "string"]


def test_long_values_travel_in_pieces_that_brokers_take():
    dialect = dialect_for("ActiveMQ/6.3.1", "1.2")
    data = dialect.send_frame(dialect.encode(Message(properties={"p": ':"\\' * 30_000}), QUEUE))
    assert max(map(len, data.split(b"\n"))) < 10_240
    assert through(Message(properties={"p": "x" * 70_000})).properties["p"] == "x" * 70_000


LINE = 10_240  # bytes of a header that ActiveMQ takes


@pytest.mark.parametrize("length", [1, 1000, 2000, 2001, 5000, 8000, 8001, 20_000])
@pytest.mark.parametrize("character", ["a", ":", "\U0001f600", " ", "\n"])
@pytest.mark.parametrize("name", ["p", "\U00020000" * 500, "\U00020000" * 501, "n" * 2000])
def test_headers_for_activemq_are_no_longer_than_it_takes(length, character, name):
    dialect = dialect_for("ActiveMQ/6.3.1", "1.2")
    value = character * length
    message = Message(properties={name: value}, correlation_id=value, type=value)
    assert max(map(len, dialect.send_frame(dialect.encode(message, QUEUE)).split(b"\n"))) < LINE
    got = through(message)
    assert (dict(got.properties), got.correlation_id, got.type) == ({name: value}, value, value)


@pytest.mark.parametrize(("version", "carried"), [("1.1", False), ("1.2", True)])
def test_a_carriage_return_is_a_header_where_the_version_can_escape_it(version, carried):
    dialect = dialect_for("ActiveMQ/6.3.1", version)
    headers = dialect.encode(Message(properties={"p": "a\r"}), QUEUE).headers
    assert ("p" in headers) is carried


@pytest.mark.parametrize("server", [server for server in SERVERS if not server.startswith("ActiveMQ/")])
@pytest.mark.parametrize("value", ["", " ", " a", "a\n", "\0", "x" * 2001])
def test_values_that_other_brokers_change_are_no_headers(server, value):
    dialect = dialect_for(server, "1.2")
    headers = dialect.encode(Message(properties={"p": value}, correlation_id=value, type=value), QUEUE).headers
    assert headers.keys().isdisjoint(("p", "correlation-id", "type"))


@pytest.mark.parametrize(("body", "told"), [("a\0b", "text"), ("ab", None), (None, None)])
def test_activemq_is_told_what_has_a_length_and_is_a_text(body, told):
    dialect = dialect_for("ActiveMQ/6.3.1", "1.2")
    outgoing = dialect.encode(TextMessage(body), QUEUE)
    assert (outgoing.headers.get("amq-msg-type"), outgoing.sized) == (told, told is not None)
    assert "amq-msg-type" not in dialect.encode(BytesMessage(b"a\0b"), QUEUE).headers


def test_every_header():
    message = Message(reply_to=Topic("answers"), type="order")
    message.message_id, message.priority, message.delivery_mode = "ID:1", 7, DeliveryMode.NON_PERSISTENT
    got = through(message)
    assert (got.message_id, got.priority, got.delivery_mode) == ("ID:1", 7, DeliveryMode.NON_PERSISTENT)
    assert (got.reply_to, got.type, got.destination) == (Topic("answers"), "order", QUEUE)


@pytest.mark.parametrize(
    ("server", "headers", "body", "kind"),
    [
        ("ActiveMQ/6", {}, b"text", TextMessage),
        ("ActiveMQ/6", {"content-length": "4"}, b"text", BytesMessage),
        ("ActiveMQ-Artemis/2", {"content-length": "4"}, b"text", TextMessage),
        ("ActiveMQ-Artemis/2", {"content-length": "1"}, b"\xff", BytesMessage),
        ("RabbitMQ/3", {"content-length": "4"}, b"text", BytesMessage),
        ("RabbitMQ/3", {"content-type": "text/plain"}, b"text", TextMessage),
    ],
)
def test_messages_of_others(server, headers, body, kind):
    got = dialect_for(server, "1.2").decode(frame(body, colour="red", expires="0", **headers), QUEUE)
    assert type(got) is kind
    assert (got.message_id, dict(got.properties), got.expiration) == ("theirs", {"colour": "red"}, None)


def test_reply_to_of_others():
    activemq, artemis = (dialect_for(server, "1.2") for server in ("ActiveMQ/6", "ActiveMQ-Artemis/2"))
    assert activemq.decode(frame(**{"reply-to": "/topic/t"}), QUEUE).reply_to == Topic("t")
    assert activemq.decode(frame(**{"reply-to": "nonsense"}), QUEUE).reply_to is None
    assert artemis.decode(frame(**{"reply-to": "queue://t"}), QUEUE).reply_to == Queue("t")


@pytest.mark.parametrize(
    "headers",
    [
        {"priority": "high"},
        {"timestamp": "x"},
        {"_jmsjca": "{"},
        {"_jmsjca": "[1]"},
        {"_jmsjca": '{"t":{"a":"int"},"p":{"a":"x"}}'},
        {"_jmsjca": '{"r":["nowhere","x"]}'},
        {"_jmsjca": '{"s":1e400}'},
        *(
            {"_jmsjca": text % value}
            for text in ('{"i":%s}', '{"c":%s}', '{"y":%s}', '{"r":["queue",%s]}', '{"p":{"a":%s}}')
            for value in ("5", '["a"]', '{"a":"b"}', "true")
        ),
        {"_jmsjca": "[" * 100_000},
    ],
)
def test_what_cannot_be_decoded_says_so(headers):
    with pytest.raises(MessageFormatError):
        dialect_for("ActiveMQ/6", "1.2").decode(frame(**headers), QUEUE).message_id  # noqa: B018  # decodes them all


def test_text_that_is_no_unicode_is_poison():
    with pytest.raises(MessageFormatError):
        dialect_for("ActiveMQ/6", "1.2").decode(frame(b"\xff"), QUEUE)


texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n\r")
)
map_values = st.one_of(
    st.none(),
    st.booleans(),
    st.binary(max_size=100),
    texts,
    st.sampled_from(["007", "1.50", "true", " ", "<&>]]>", "é"]),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False).map(Double),
    texts.filter(lambda text: len(text) == 1 and ord(text) < 1 << 16).map(Char),
)


@settings(max_examples=4 * settings.default.max_examples)
@given(st.dictionaries(texts, map_values, max_size=5))
def test_what_is_written_is_read_back(body):
    found = from_xml(to_xml(body))
    assert list(found) == list(body)
    for name, value in body.items():
        assert found[name] == value
        assert value is None or type_name(found[name]) == type_name(typed_entry(value))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"<list/>", b"<map", b"<map><entry/></map>", b"<map><entry><string>a</string></entry></map>"),
        b"<map><entry><string>a</string><object/></entry></map>",
        b"<map><entry><string>a</string><int>x</int></entry></map>",
        b"<map><entry><string>a</string><int>99999999999</int></entry></map>",
        b'<!DOCTYPE map [<!ENTITY a "b">]><map><entry><string>a</string><string>&a;</string></entry></map>',
        b"\xff<map/>",
    ],
)
def test_what_is_no_map_is_refused(data):
    with pytest.raises(MessageFormatError, match="map"):
        from_xml(data)


@pytest.mark.parametrize("body", [{"a": "\0"}, {"\x01": 1}, {"a": "\ufffe"}, {"a": "\ud800"}])
def test_what_xml_cannot_hold_is_refused(body):
    with pytest.raises(MessageFormatError):
        to_xml(body)


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2.56.0", "RabbitMQ/3.10.8", "Eclipse OpenMQ(tm)/6.7", "Other/1"])
def test_other_brokers_have_none(server):
    with pytest.raises(NotSupportedError, match="java_maps"):
        dialect_for(server, "1.2", java_maps=True)


def test_only_maps_are_written_so_and_only_if_asked_for():
    """An ActiveMQ without XStream ends the connection at the header."""
    with_maps, without = (dialect_for("ActiveMQ/6.3.1", "1.2", java_maps=asked) for asked in (True, False))
    sent = [
        _headers(dialect, message) for dialect in (with_maps, without) for message in (MapMessage(), TextMessage("a"))
    ]
    assert ["transformation" in headers for headers in sent] == [True, False, False, False]
    subscribed = [dialect.subscribe(Queue("q"), 1) for dialect in (with_maps, without)]
    assert ["transformation" in headers for headers in subscribed] == [True, False]


def _headers(dialect, message):
    return dict(read(dialect.send_frame(dialect.encode(message, Queue("q"))))[0][1])


POISON = ['{"i":5}', '{"i":["a"]}', '{"c":5}', '{"y":[1]}', '{"r":["queue",5]}', '{"p":{"a":{"b":1}}}']
POLICY = RedeliveryPolicy.parse("1:move(queue:dlq)", "q", "queue")


@pytest.mark.parametrize("mode", ["sync", "cc", "serial"])
@pytest.mark.parametrize("ours", POISON)
def test_it_is_moved_as_its_bytes_and_the_next_is_handled(line, mode, ours):
    line, handled = line(), []

    def handle(message):
        if message.body == "1":
            raise ValueError("poison")
        handled.append(message.body)

    endpoint = endpoint_of(handle, terms(mode, pool_size=1, redelivery=POLICY))
    performance = Performance(endpoint, line.connection)
    until(lambda: "SUBSCRIBE" in line.channel.frames())
    subscription = dict(read(bytes(line.channel.written))[0][1])["id"]
    poison = {"destination": "/queue/q", "message-id": "m1", "subscription": subscription, "ack": "a1"}
    line.channel.incoming.put(write("MESSAGE", {**poison, "redelivered": "true", "_jmsjca": ours}, b"1"))
    until(lambda: performance.ended or _moved(line))
    line.message(subscription, 2)
    until(lambda: performance.ended or handled)
    performance.stop()
    assert (_moved(line), handled) == ([("/queue/dlq", "bytes", b"1")], ["2"])


def _moved(line):
    sent = [(dict(headers), body) for command, headers, body in read(bytes(line.channel.written)) if command == "SEND"]
    return [(headers["destination"], json.loads(headers["_jmsjca"])["k"], body) for headers, body in sent]


@pytest.mark.parametrize("server", ["RabbitMQ/3", "Eclipse OpenMQ(tm)"])
@pytest.mark.parametrize("disabled", [True, False])
def test_time_to_live_is_that_of_the_send_also_without_a_timestamp(server, disabled):
    now = datetime.now(UTC)
    message = TextMessage("a")
    message.timestamp, message.expiration = None if disabled else now, now + timedelta(hours=1)
    headers = dialect_for(server, "1.2").broker_headers(message)
    left = int(headers.get("expires") or headers["expiration"])
    assert 1_800_000 < left <= 3_600_001


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain", "content-encoding": "gzip"},
        {"JMS_AMQP_ContentType": "text/plain", "JMS_AMQP_ContentEncoding": "gzip"},
        {"JMS_AMQP_MA_x-opt-jms-msg-type": "5", "JMS_AMQP_ContentEncoding": "gzip"},
    ],
)
@pytest.mark.parametrize("body", [b"\x1f\x8b", b"H4sI"])
def test_a_body_with_a_content_encoding_is_bytes(server, headers, body):
    message = dialect_for(server, "1.2").decode(frame(body, **headers), QUEUE)
    assert (type(message), message.body) == (BytesMessage, body)


def test_the_content_encoding_identity_changes_nothing():
    headers = {"content-type": "text/plain", "content-encoding": "identity"}
    message = dialect_for("RabbitMQ/3.10.8", "1.2").decode(frame(b"a", **headers), QUEUE)
    assert (type(message), message.body) == (TextMessage, "a")
