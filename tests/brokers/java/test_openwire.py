"""Ours over STOMP and ActiveMQ's own Java client over OpenWire, on ActiveMQ: a property is text to the other side."""

import uuid

import pytest
from jms_java import JavaClient, OurClient, describe, receive

from jmsjca import DeliveryMode, Queue, Topic
from jmsjca.messages import Byte, BytesMessage, Double, Float, Int, Long, Message, Short, TextMessage

TYPED = {
    "aBoolean": True,
    "aByte": Byte(-3),
    "aShort": Short(300),
    "anInt": Int(-(2**31)),
    "aLong": Long(2**40),
    "aFloat": Float(0.5),
    "aDouble": Double(-1.5),
    "text": "täxt: \\ \n €",
    "empty": "",
}
TEXTS = {
    "aBoolean": "true",
    "aByte": "-3",
    "aShort": "300",
    "anInt": "-2147483648",
    "aLong": "1099511627776",
    "aFloat": "0.5",
    "aDouble": "-1.5",
    "text": "täxt: \\ \n €",
    "empty": "",
}
BODIES = {
    "text": TextMessage("täxt € \n"),
    "empty text": TextMessage(""),
    "bytes": BytesMessage(bytes(range(256))),
    "empty bytes": BytesMessage(b""),
    "long bytes": BytesMessage(bytes(200_000)),
}
HEADERS = {"correlation_id": "a correlation", "type": "a type", "reply_to": Queue("answers")}
SENT = ("kind", "body", "destination", "correlation_id", "type", "reply_to", "priority", "persistent")
BY_BROKER = ("message_id", "timestamp", "expiration")
SELECTED = {
    "colour = 'red'": "a",
    "colour LIKE '%red'": "ab",
    "colour IN ('red', 'täxt')": "ac",
    "colour IS NULL": "d",
    "colour NOT LIKE '%red' OR colour IS NULL": "cd",
    "JMSType = 'pear'": "a",
    "JMSPriority > 5": "bd",
    "JMSCorrelationID = 'c-1' AND colour <> 'blue'": "a",
}
COLOURED = [
    TextMessage("a", properties={"colour": "red"}, type="pear", correlation_id="c-1"),
    TextMessage("b", properties={"colour": "dark red"}),
    TextMessage("c", properties={"colour": "täxt"}, type="apple"),
    TextMessage("d", properties={"size": 1}),
]
NUMBERS = {"size = 1": "a", "size > 1.2 AND size < 2": "b", "size BETWEEN 2 AND 1099511627776": "c", "fresh": "d"}
NUMBERED = [
    TextMessage("a", properties={"size": 1}),
    TextMessage("b", properties={"size": Float(1.5)}),
    TextMessage("c", properties={"size": Long(2**40)}),
    TextMessage("d", properties={"fresh": True}),
]


@pytest.fixture(scope="module")
def ours(broker_url):
    client = OurClient(broker_url("activemq-stomp"))
    yield client
    client.close()


@pytest.fixture(scope="module")
def theirs(broker_url, java):
    client = JavaClient(java, broker_url("activemq-openwire").replace("openwire:", "tcp:"))
    yield client
    client.close()


def sent_part(told):
    return {name: told[name] for name in SENT}


@pytest.mark.parametrize("name", BODIES)
def test_java_reads_what_we_send(ours, theirs, queue, name):
    ours.send(queue, BODIES[name], priority=7, time_to_live=3600)
    [received] = theirs.session().take(queue)
    assert sent_part(received) == sent_part(describe(BODIES[name]))
    assert received["expiration"] - describe(BODIES[name])["expiration"] in {0, 1}  # rounded


@pytest.mark.parametrize("name", BODIES)
def test_we_read_what_java_sends(ours, theirs, queue, name):
    sent = theirs.session().send(queue, {**describe(BODIES[name]), "priority": 7}, life=3_600_000)
    [received] = ours.take(queue)
    assert sent_part(describe(received)) == sent_part(sent)
    assert {name: describe(received)[name] for name in BY_BROKER} == {name: sent[name] for name in BY_BROKER}


def test_properties_and_headers_from_us(ours, theirs, queue):
    """An empty text is ours alone: not every broker takes a header without a value."""
    message = TextMessage("a", properties=TYPED, **HEADERS)
    ours.send(queue, message, delivery_mode=DeliveryMode.NON_PERSISTENT)
    [received] = theirs.session().take(queue)
    assert sent_part(received) == sent_part(describe(message))
    read = {name: value for name, value in received["properties"].items() if not name.startswith("_")}
    assert read == {name: ["string", text] for name, text in TEXTS.items() if text}


def test_properties_and_headers_from_them(ours, theirs, queue):
    sent = theirs.session().send(
        queue, {**describe(TextMessage("a", properties=TYPED, **HEADERS)), "persistent": False}
    )
    [received] = ours.take(queue)
    assert sent_part(describe(received)) == sent_part(sent)
    assert dict(received.properties) == TEXTS


def test_our_types_come_back(ours, theirs, queue):
    """A message of ours that Java passes on with its properties tells us the types again."""
    ours.send(queue, TextMessage("a", properties=TYPED))
    [received] = theirs.session().take(queue)
    theirs.session().send(queue, received)
    assert dict(ours.take(queue)[0].properties) == TYPED


@pytest.mark.parametrize("selector", SELECTED)
def test_java_selects_among_our_messages(theirs, our_coloured, selector):
    found = theirs.session().browse(our_coloured, selector)
    assert "".join(sorted(message["body"][1] for message in found)) == SELECTED[selector]


@pytest.mark.parametrize("selector", SELECTED)
def test_we_select_among_their_messages(ours, theirs, queue, selector):
    send_theirs(theirs, queue, COLOURED)
    found = ours.take(queue, len(SELECTED[selector]), selector)
    assert "".join(sorted(message.body for message in found)) == SELECTED[selector]


@pytest.mark.parametrize("selector", NUMBERS)
def test_we_select_among_their_messages_by_number(ours, theirs, queue, selector):
    """Java's properties have types; ours are text on their way, and no number selects them."""
    send_theirs(theirs, queue, NUMBERED)
    [found] = ours.take(queue, 1, selector)
    assert found.body == NUMBERS[selector]


@pytest.fixture(scope="module")
def our_coloured(ours):
    there = Queue(f"java.{uuid.uuid4().hex}")
    for number, message in enumerate(COLOURED):
        ours.send(there, message, priority=7 if number % 2 else 4)
    return there


def send_theirs(theirs, queue, messages):
    session = theirs.session()
    for number, message in enumerate(messages):
        session.send(queue, {**describe(message), "priority": 7 if number % 2 else 4})


def test_transactions(ours, theirs, queue):
    session = theirs.session("transacted")
    session.send(queue, TextMessage("rolled back"))
    session.rollback()
    session.send(queue, TextMessage("a"))
    session.commit()
    with ours.connection.create_session(transacted=True) as own, own.create_consumer(queue) as consumer:
        assert receive(consumer).body == "a"
        own.create_producer(queue).send(TextMessage("rolled back"))
        own.rollback()
        assert receive(consumer).body == "a"
        own.create_producer(Queue(f"{queue.name}.next")).send(TextMessage("b"))
        own.commit()
    assert [told["body"][1] for told in session.take(Queue(f"{queue.name}.next"))] == ["b"]
    session.commit()
    assert session.browse(queue) == []


def test_they_answer_our_request(ours, theirs, queue):
    """Under an id of ours: over STOMP the broker chooses that of the message."""
    question = TextMessage("question", reply_to=Queue(f"{queue.name}.answers"), correlation_id="q-1")
    ours.send(queue, question)
    consumer = theirs.session().consumer(queue)
    consumer.receive()
    consumer.reply("answer")
    [answer] = ours.take(question.reply_to)
    assert (answer.body, answer.correlation_id) == ("answer", "q-1")


def test_topics(ours, theirs):
    topic = Topic(f"java.{uuid.uuid4().hex}")
    consumer = theirs.session().consumer(topic)
    ours.send(topic, TextMessage("ours"))
    assert consumer.receive()["body"] == ["string", "ours"]
    with ours.connection.create_session() as session, session.create_consumer(topic) as subscriber:
        theirs.session().send(topic, Message())
        assert receive(subscriber).destination == topic
