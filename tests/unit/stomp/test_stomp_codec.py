"""Messages as frames: what was sent comes back, and what others send can be read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    Float,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    type_name,
)
from jmsjca.providers.stomp.brokers.registry import dialect_for
from jmsjca.providers.stomp.protocol.frames import Frame
from tests.unit.stomp.letters import read

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
