"""Ours over STOMP and ActiveMQ's Java client over OpenWire: properties, maps and selectors."""

import uuid

import pytest
from jms_java import OurClient, describe, receive

from jmsjca import DeliveryMode, Queue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, BytesMessage, Char, Double, Float, Int, Long, MapMessage, Message, Short, TextMessage

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
    message = TextMessage("a", properties=TYPED, **HEADERS)
    over_stomp.send(queue, message, delivery_mode=DeliveryMode.NON_PERSISTENT)
    [received] = over_openwire.session().take(queue)
    assert sent_part(received) == sent_part(describe(message))
    read = {name: value for name, value in received["properties"].items() if not name.startswith("_")}
    assert read == {name: ["string", text] for name, text in TEXTS.items()}


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


MAPS = {
    "nothing": {},
    "every type": {
        "boolean": True,
        "no": False,
        "byte": Byte(-3),
        "short": Short(300),
        "char": Char("ä"),
        "int": Int(-(2**31)),
        "long": Long(2**40),
        "float": Float(0.5),
        "double": Double(-1.5e300),
        "infinite": Double(float("inf")),
        "bytes": bytes(range(256)),
        "no bytes": b"",
        "null": None,
    },
    "texts": {
        "007": "007",
        "text": "täxt: <&> \"' \\ \r\n €",
        "empty": "",
        " blanks ": "  ",
        "true": "true",
        "1.50": "1.50",
    },
}


@pytest.fixture(scope="module")
def with_maps(broker_url):
    client = OurClient(f"{broker_url('activemq-stomp')}?java_maps=true")
    yield client
    client.close()


@pytest.mark.parametrize("name", MAPS)
def test_java_reads_the_maps_that_we_send(with_maps, over_openwire, queue, name):
    with_maps.send(queue, MapMessage(MAPS[name], properties={"a": "b"}))
    [received] = over_openwire.session().take(queue)
    assert (received["kind"], received["body"]) == ("map", describe(MapMessage(MAPS[name]))["body"])
    assert received["properties"]["a"] == ["string", "b"]


@pytest.mark.parametrize("name", MAPS)
def test_we_read_the_maps_that_java_sends(with_maps, over_openwire, queue, name):
    over_openwire.session().send(queue, describe(MapMessage(MAPS[name])))
    [received] = with_maps.take(queue)
    assert describe(received)["kind"] == "map"
    assert describe(received)["body"] == describe(MapMessage(MAPS[name]))["body"]


@pytest.mark.parametrize("name", MAPS)
def test_we_read_our_own(with_maps, queue, name):
    with_maps.send(queue, MapMessage(MAPS[name], properties={"n": Int(3)}))
    [received] = with_maps.take(queue)
    assert describe(received)["body"] == describe(MapMessage(MAPS[name]))["body"]
    assert dict(received.properties) == {"n": Int(3)}


def test_who_did_not_ask_for_maps_learns_that_one_came(with_maps, over_stomp, queue):
    """Its body is missing, which an empty map would be taken for."""
    with_maps.send(queue, MapMessage({"a": 1}))
    with pytest.raises(MessageFormatError, match="map"):
        over_stomp.take(queue)


@pytest.mark.parametrize("message", [TextMessage("täxt"), TextMessage("<map/>"), BytesMessage(b"\0\xff"), Message()])
def test_other_messages_stay_as_they_are(with_maps, over_openwire, queue, message):
    over_openwire.session().send(queue, describe(message))
    with_maps.send(queue, message)
    first, second = with_maps.take(queue, 2)
    assert describe(second)["kind"] == describe(message)["kind"]
    if type(message) is not Message:  # which looks like an empty text
        assert (type(first), first.body) == (type(message), message.body)


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


@pytest.mark.parametrize("selector", SELECTED)
def test_java_selects_among_our_messages(over_openwire, our_coloured, selector):
    found = over_openwire.session().browse(our_coloured, selector)
    assert "".join(sorted(message["body"][1] for message in found)) == SELECTED[selector]


def test_our_numbers_are_text_to_their_selectors(over_stomp, over_openwire, queue):
    over_stomp.send(queue, TextMessage("a", properties={"size": 1}))
    assert over_openwire.session().browse(queue, "size = 1") == []
    assert len(over_openwire.session().browse(queue, "size = '1'")) == 1


@pytest.mark.parametrize("selector", SELECTED)
def test_we_select_among_their_messages(over_stomp, over_openwire, queue, selector):
    send_theirs(over_openwire, queue, COLOURED)
    found = over_stomp.take(queue, len(SELECTED[selector]), selector)
    assert "".join(sorted(message.body for message in found)) == SELECTED[selector]


@pytest.mark.parametrize("selector", NUMBERS)
def test_we_select_among_their_messages_by_number(over_stomp, over_openwire, queue, selector):
    """Java's properties have types; over_stomp are text on their way, and no number selects them."""
    send_theirs(over_openwire, queue, NUMBERED)
    [found] = over_stomp.take(queue, 1, selector)
    assert found.body == NUMBERS[selector]


@pytest.fixture(scope="module")
def our_coloured(over_stomp):
    there = Queue(f"java.{uuid.uuid4().hex}")
    for number, message in enumerate(COLOURED):
        over_stomp.send(there, message, priority=7 if number % 2 else 4)
    return there


def send_theirs(over_openwire, queue, messages):
    session = over_openwire.session()
    for number, message in enumerate(messages):
        session.send(queue, {**describe(message), "priority": 7 if number % 2 else 4})
