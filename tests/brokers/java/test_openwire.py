"""Ours over STOMP and ActiveMQ's own Java client over OpenWire, on ActiveMQ: a property is text to the other side."""

import uuid

import pytest
from jms_java import describe, receive

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


def sent_part(told):
    return {name: told[name] for name in SENT}


@pytest.mark.parametrize("name", BODIES)
def test_java_reads_what_we_send(over_stomp, over_openwire, queue, name):
    over_stomp.send(queue, BODIES[name], priority=7, time_to_live=3600)
    [received] = over_openwire.session().take(queue)
    assert sent_part(received) == sent_part(describe(BODIES[name]))
    assert received["expiration"] - describe(BODIES[name])["expiration"] in {0, 1}  # rounded


@pytest.mark.parametrize("name", BODIES)
def test_we_read_what_java_sends(over_stomp, over_openwire, queue, name):
    sent = over_openwire.session().send(queue, {**describe(BODIES[name]), "priority": 7}, life=3_600_000)
    [received] = over_stomp.take(queue)
    assert sent_part(describe(received)) == sent_part(sent)
    assert {name: describe(received)[name] for name in BY_BROKER} == {name: sent[name] for name in BY_BROKER}


def test_properties_and_headers_from_us(over_stomp, over_openwire, queue):
    """An empty text is over_stomp alone: not every broker takes a header without a value."""
    message = TextMessage("a", properties=TYPED, **HEADERS)
    over_stomp.send(queue, message, delivery_mode=DeliveryMode.NON_PERSISTENT)
    [received] = over_openwire.session().take(queue)
    assert sent_part(received) == sent_part(describe(message))
    read = {name: value for name, value in received["properties"].items() if not name.startswith("_")}
    assert read == {name: ["string", text] for name, text in TEXTS.items() if text}


def test_properties_and_headers_from_them(over_stomp, over_openwire, queue):
    sent = over_openwire.session().send(
        queue, {**describe(TextMessage("a", properties=TYPED, **HEADERS)), "persistent": False}
    )
    [received] = over_stomp.take(queue)
    assert sent_part(describe(received)) == sent_part(sent)
    assert dict(received.properties) == TEXTS


def test_our_types_come_back(over_stomp, over_openwire, queue):
    """A message of over_stomp that Java passes on with its properties tells us the types again."""
    over_stomp.send(queue, TextMessage("a", properties=TYPED))
    [received] = over_openwire.session().take(queue)
    over_openwire.session().send(queue, received)
    assert dict(over_stomp.take(queue)[0].properties) == TYPED


def test_transactions(over_stomp, over_openwire, queue):
    session = over_openwire.session("transacted")
    session.send(queue, TextMessage("rolled back"))
    session.rollback()
    session.send(queue, TextMessage("a"))
    session.commit()
    with over_stomp.connection.create_session(transacted=True) as own, own.create_consumer(queue) as consumer:
        assert receive(consumer).body == "a"
        own.create_producer(queue).send(TextMessage("rolled back"))
        own.rollback()
        assert receive(consumer).body == "a"
        own.create_producer(Queue(f"{queue.name}.next")).send(TextMessage("b"))
        own.commit()
    assert [told["body"][1] for told in session.take(Queue(f"{queue.name}.next"))] == ["b"]
    session.commit()
    assert session.browse(queue) == []


def test_they_answer_our_request(over_stomp, over_openwire, queue):
    """Under an id of over_stomp: over STOMP the broker chooses that of the message."""
    question = TextMessage("question", reply_to=Queue(f"{queue.name}.answers"), correlation_id="q-1")
    over_stomp.send(queue, question)
    consumer = over_openwire.session().consumer(queue)
    consumer.receive()
    consumer.reply("answer")
    [answer] = over_stomp.take(question.reply_to)
    assert (answer.body, answer.correlation_id) == ("answer", "q-1")


def test_topics(over_stomp, over_openwire):
    topic = Topic(f"java.{uuid.uuid4().hex}")
    consumer = over_openwire.session().consumer(topic)
    over_stomp.send(topic, TextMessage("over_stomp"))
    assert consumer.receive()["body"] == ["string", "over_stomp"]
    with over_stomp.connection.create_session() as session, session.create_consumer(topic) as subscriber:
        over_openwire.session().send(topic, Message())
        assert receive(subscriber).destination == topic
