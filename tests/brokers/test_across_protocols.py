"""What one protocol's client sends another protocol's client reads: jmsjca over STOMP and over AMQP on one queue."""

import uuid

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError
from jmsjca.messages import DUPLICATE_ID, Byte, BytesMessage, Double, Float, Int, Long, Short, TextMessage
from jmsjca.testing.contract.harness import Harness, bodies

BROKERS = ["artemis", "activemq", "rabbitmq"]
PROPERTIES = {
    "aBoolean": True,
    "aByte": Byte(3),
    "aShort": Short(4),
    "anInt": Int(7),
    "aLong": Long(2**40),
    "aFloat": Float(0.5),
    "aDouble": Double(1.5),
    "aText": "täxt",
}
HEADERS = {"correlation_id": "a correlation", "reply_to": Queue("answers"), "type": "a type", "priority": 6}

FROM_AMQP = ["artemis", "rabbitmq"]


@pytest.fixture
def connect(broker_url):
    """Give a function that gives the harness of a broker and a protocol."""
    opened = []

    def connected(broker, protocol):
        opened.append(Harness(broker_url(f"{broker}-{protocol}")))
        return opened[-1]

    yield connected
    for harness in opened:
        harness.close()


@pytest.fixture
def queue():
    return Queue(f"across.{uuid.uuid4().hex}")


def across(sender, receiver, queue, *messages):
    """Send messages over one connection, receive and settle them over another."""
    sender.send_messages(queue, *messages, **HEADERS)
    consumer = receiver.connection.consumer(queue)
    received = receiver.gather(consumer, len(messages))
    receiver.settle(received)
    consumer.close()
    return [delivery.message for delivery in received]


def kinds(messages):
    return [(type(message), message.body) for message in messages]


@pytest.mark.parametrize("broker", BROKERS)
def test_bodies_from_stomp_to_amqp(connect, queue, broker):
    sent = [TextMessage("tëxt"), TextMessage(""), BytesMessage(b"\0\xff\xfe"), BytesMessage(b"plain")]
    received = across(connect(broker, "stomp"), connect(broker, "amqp"), queue, *sent)
    assert kinds(received) == kinds(sent)


@pytest.mark.parametrize("broker", FROM_AMQP)
def test_bodies_from_amqp_to_stomp(connect, queue, broker):
    sent = [TextMessage("tëxt"), TextMessage(""), TextMessage("a\0b"), BytesMessage(b"\0\xff\xfe"), BytesMessage(b"p")]
    received = across(connect(broker, "amqp"), connect(broker, "stomp"), queue, *sent, BytesMessage(b""))
    assert kinds(received) == kinds([*sent, BytesMessage(b"")])


def expect_properties(received):
    """Check values and types, also of a property that is null."""
    values = dict(received.properties)
    assert values == {**PROPERTIES, "absent": None}
    assert {name: type(value) for name, value in values.items() if value is not None} == {
        name: type(value) for name, value in PROPERTIES.items()
    }


@pytest.mark.parametrize("broker", ["artemis", "activemq"])
def test_properties_from_stomp_to_amqp_keep_their_types(connect, queue, broker):
    """Headers have no types: the header _jmsjca has them. RabbitMQ 3's AMQP plug-in drops all headers."""
    message = TextMessage("body", properties={**PROPERTIES, "absent": None})
    [received] = across(connect(broker, "stomp"), connect(broker, "amqp"), queue, message)
    expect_properties(received)


@pytest.mark.parametrize("broker", FROM_AMQP)
def test_properties_from_amqp_to_stomp_keep_their_types(connect, queue, broker):
    """RabbitMQ hands over the encoded section. Artemis writes each value as text: an annotation has the types."""
    message = TextMessage("body", properties={**PROPERTIES, "absent": None})
    [received] = across(connect(broker, "amqp"), connect(broker, "stomp"), queue, message)
    expect_properties(received)


@pytest.mark.parametrize("broker", FROM_AMQP)
def test_headers_from_amqp_to_stomp(connect, queue, broker):
    message = TextMessage("body")
    [received] = across(connect(broker, "amqp"), connect(broker, "stomp"), queue, message)
    assert {name: getattr(received, name) for name in HEADERS} == HEADERS
    assert (received.message_id, received.destination) == (message.message_id, queue)
    assert received.timestamp.timestamp() * 1000 == round(message.timestamp.timestamp() * 1000)


@pytest.mark.parametrize("broker", BROKERS)
def test_headers_from_stomp_to_amqp(connect, queue, broker):
    """Found: RabbitMQ's AMQP plug-in gives the routing key for the type: it is None. The ends tell destinations."""
    message = TextMessage("body")
    [received] = across(connect(broker, "stomp"), connect(broker, "amqp"), queue, message)
    assert (received.correlation_id, received.priority) == ("a correlation", 6)
    assert received.type == ("a type" if broker != "rabbitmq" else None)
    assert received.reply_to.name.endswith("answers")
    assert received.destination.name.endswith(queue.name)
    if broker == "rabbitmq":
        assert received.message_id == message.message_id


@pytest.mark.parametrize("broker", FROM_AMQP)
def test_message_goes_around(connect, queue, broker):
    """Received over one protocol and sent on over the other: the body is the same at the end."""
    amqp, stomp, back = connect(broker, "amqp"), connect(broker, "stomp"), Queue(f"{queue.name}.back")
    sent = [TextMessage("tëxt"), TextMessage(""), BytesMessage(b"\0\xff")]
    there = across(amqp, stomp, queue, *sent)
    assert kinds(across(stomp, amqp, back, *[type(m)(m.body) for m in there])) == kinds(sent)


def test_activemq_takes_no_acknowledgement_over_stomp_of_what_came_over_amqp_with_a_message_id(connect, queue):
    """Found: it shows the message under its AMQP id, cannot read that in the ACK (java.lang.NumberFormatException), and
    closes the connection. Nothing was settled, and nothing is lost: an AMQP client gets the message."""
    amqp, stomp = connect("activemq", "amqp"), connect("activemq", "stomp")
    amqp.send(queue, "a")
    unit = stomp.holding(stomp.gather(stomp.connection.consumer(queue), 1))
    with pytest.raises(TransactionInDoubtError):
        unit.commit()
    amqp.expect(queue, "a")


@pytest.mark.parametrize("protocols", [("stomp", "amqp"), ("amqp", "stomp")])
def test_artemis_knows_duplicates_whatever_the_protocol(connect, queue, protocols):
    first, second = (connect("artemis", protocol) for protocol in protocols)
    for harness, body in ((first, "first"), (second, "again")):
        harness.send_messages(queue, TextMessage(body, properties={DUPLICATE_ID: "1"}))
    second.send(queue, "other")
    assert bodies(first.gather(first.connection.consumer(queue), 2)) == ["first", "other"]
