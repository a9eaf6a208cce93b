"""Messages between jmsjca and Qpid JMS: bodies, properties and objects."""

import uuid

import pytest
from jms_java import JavaError, describe, told_data, told_value

from jmsjca import Queue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Char,
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
)

TYPED = {
    "no": False,
    "yes": True,
    "aByte": Byte(-128),
    "aShort": Short(-32768),
    "anInt": Int(-(2**31)),
    "smallInt": Int(1),
    "aLong": Long(-(2**63)),
    "smallLong": Long(1),
    "aFloat": Float(0.1),
    "aDouble": Double(0.1),
    "tiny": Double(5e-324),
    "infinite": Double("Infinity"),
    "noNumber": Float("NaN"),
    "text": "täxt €",
    "empty": "",
    "nothing": None,
}
VALUES = {**TYPED, "aChar": Char("€"), "bytes": b"\x00\xff", "noBytes": b"", "a name": 1}
MESSAGES = {
    "plain": Message(),
    "text": TextMessage("täxt € \U0001f600 \0"),
    "empty text": TextMessage(""),
    "no text": TextMessage(),
    "long text": TextMessage("ä" * 100_000),
    "bytes": BytesMessage(bytes(range(256))),
    "empty bytes": BytesMessage(b""),
    "long bytes": BytesMessage(bytes(200_000)),
    "map": MapMessage(VALUES),
    "empty map": MapMessage(),
    "stream": StreamMessage(list(VALUES.values())),
    "empty stream": StreamMessage(),
    "properties": Message(properties=TYPED),
    "many properties": Message(properties={f"p{n}": n for n in range(300)}),
    "vendor property": Message(properties={"JMS_acme_kind": "x"}),
    "type": Message(type="a type"),
    "correlation": Message(correlation_id="a correlation"),
    "correlation to an id": Message(correlation_id=f"ID:{uuid.uuid4()}-1"),
    "correlation to a UUID": Message(correlation_id=f"ID:AMQP_UUID:{uuid.uuid4()}"),
    "correlation to a number": Message(correlation_id=f"ID:AMQP_ULONG:{2**64 - 1}"),
    "correlation to what looks like one": Message(correlation_id="ID:AMQP_STRING:ID:AMQP_ULONG:1"),
    "reply to a queue": Message(reply_to=Queue("answers")),
    "reply to a topic": Message(reply_to=Topic("answers")),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_java_reads_what_we_send(ours, theirs, broker, queue, name):
    ours.send(queue, MESSAGES[name])
    [received] = theirs.session().take(queue)
    told = describe(MESSAGES[name])
    if broker == "qpid" and told["reply_to"] == ["topic", "answers"]:
        told["reply_to"] = ["topic", "amq.topic/answers"]  # which is how Java names it there
    assert received == {**told, "delivery_count": 1}


@pytest.mark.parametrize("name", MESSAGES)
def test_we_read_what_java_sends(ours, theirs, queue, name):
    sent = theirs.session().send(queue, MESSAGES[name])
    [received] = ours.take(queue)
    assert describe(received) == {**sent, "delivery_count": 1}


LIST = [Int(1), Long(2**40), Double(0.5), Float(0.25), "täxt", True, None, Short(3), Byte(4), Char("€")]
MAP = {"int": Int(1), "long": Long(1), "text": "täxt", "none": None, "float": Float(0.1), "": False}
DATA = {
    "list": LIST,
    "empty list": [],
    "nested lists": [Int(1), [Double(0.5), [], ["täxt", None, [True]]], LIST],
    "map": MAP,
    "empty map": {},
    "nested maps": {"a": MAP, "b": {"c": {"d": {}}}},
    "map of lists": {"list": LIST, "lists": [[], [LIST]]},
    "list of maps": [MAP, {}, [MAP]],
    "keys that are no text": {Int(1): "int", Long(2): "long", False: "boolean", uuid.UUID(int=3): "UUID"},
    "bytes inside": [b"\x00\xff", {"none": b"", "many": bytes(1000)}],
    "UUIDs inside": [uuid.UUID(int=5), {"id": uuid.UUID(int=6)}],
    "much": {f"key {place}": [Int(place)] * 10 for place in range(1000)},
    "text": "täxt €",
    "empty text": "",
    "long text": "ä" * 100_000,
    "nothing": None,
}
ALONE = [Byte(-1), Short(300), Int(-(2**31)), Long(1), Float(0.1), Double(0.1), True, Char("€"), uuid.UUID(int=5)]
OF_JAVA = ["list", [["date", "1700000000123"], ["map", [[["date", "-1"], ["texts", [["string", "a"]]]]]]]]
TYPED_OBJECTS = {"JMS_AMQP_TYPED_ENCODING": ["boolean", "true"]}


def an_object(told, *, typed):
    """An object for Java to make: AMQP encodes it, or Java itself."""
    return {**describe(Message()), "kind": "object", "body": {"typed": typed, "value": told}}


@pytest.mark.parametrize("name", DATA)
def test_java_reads_our_data(ours, theirs, queue, name):
    message = ObjectMessage.from_data(DATA[name])
    ours.send(queue, message)
    [received] = theirs.session().take(queue)
    assert received == {**describe(message), "properties": TYPED_OBJECTS, "delivery_count": 1}


@pytest.mark.parametrize("name", DATA)
def test_we_read_data_of_java(ours, theirs, queue, name):
    told = told_data(DATA[name])
    sent = theirs.session().send(queue, an_object(told, typed=True))
    [received] = ours.take(queue)
    assert (type(received), received.body) == (ObjectMessage, DATA[name])
    assert describe(received) == {**sent, "body": told, "properties": TYPED_OBJECTS, "delivery_count": 1}


@pytest.mark.parametrize("value", ALONE, ids=lambda value: type(value).__name__)
def test_java_reads_a_value_alone_but_sends_none(ours, theirs, queue, value):
    """Texts, lists, maps and arrays are all that Java gives to AMQP; what it receives it takes as it is."""
    ours.send(queue, ObjectMessage.from_data(value))
    [received] = theirs.session().take(queue)
    assert (received["body"], received["properties"]) == (told_data(value), TYPED_OBJECTS)
    with pytest.raises(JavaError, match="not supported: java"):
        theirs.session().send(queue, an_object(told_data(value), typed=True))


def test_bytes_alone_are_nothing_that_java_reads(ours, theirs, queue):
    """They are its ``Binary``, which is no object of a message to it. Nor does it send one."""
    ours.send(queue, ObjectMessage.from_data(b"bytes"))
    with pytest.raises(JavaError, match=r"MessageFormatException.*Binary cannot be cast to class java\.io\.Serial"):
        theirs.session().take(queue)
    with pytest.raises(JavaError, match=r"Binary cannot be cast to class java\.io\.Serial"):
        theirs.session().send(queue, an_object(told_data(b"bytes"), typed=True))


def test_an_array_of_java_is_a_list(ours, theirs, queue):
    for texts in (["a", "ä", ""], ["b"]):
        theirs.session().send(queue, an_object(["texts", [["string", text] for text in texts]], typed=True))
        [received] = ours.take(queue)
        assert received.body == texts


def test_bytes_of_java_are_numbers(ours, theirs, queue):
    """An array alone, that is: at one in a list Qpid's encoder fails, and at any after it, so none is tried here."""
    for _ in range(2):
        theirs.session().send(queue, an_object(told_value(b"\x00\xff"), typed=True))
        [received] = ours.take(queue)
        assert told_data(received.body) == told_data([Byte(0), Byte(-1)])


def test_types_that_only_java_has_go_around(ours, theirs, queue):
    """A date is a number to us, and passed on the date again; an array stays the list that it is."""
    theirs.session().send(queue, an_object(OF_JAVA, typed=True))
    [received] = ours.take(queue)
    assert received.body == [1_700_000_000_123, {-1: ["a"]}]
    ours.send(queue, received)
    [back] = theirs.session().take(queue)
    assert back["body"] == ["list", [["date", "1700000000123"], ["map", [[["date", "-1"], told_data(["a"])]]]]]


def test_java_objects_go_around_as_they_are(ours, theirs, queue):
    """What Java has serialized are bytes to us, which nothing here looks into; passed on, it is the object again."""
    told = told_data([LIST, MAP])
    theirs.session().send(queue, an_object(told, typed=False))
    [received] = ours.take(queue)
    assert (type(received), received.pickled[:2]) == (ObjectMessage, b"\xac\xed")  # how Java's objects begin
    with pytest.raises(MessageFormatError):
        received.get_object(allowed=frozenset())
    ours.send(queue, ObjectMessage.from_pickled(received.pickled))
    [back] = theirs.session().take(queue)
    assert (back["kind"], back["body"], back["properties"]) == ("object", told, {})


@pytest.mark.parametrize("typed", [True, False])
def test_no_object(ours, theirs, queue, typed):
    message = ObjectMessage(properties={"JMS_AMQP_TYPED_ENCODING": True} if typed else None)
    ours.send(queue, message)
    [received] = theirs.session().take(queue)
    assert received == {**describe(message), "delivery_count": 1}
    sent = theirs.session().send(queue, an_object(None, typed=typed))
    [received] = ours.take(queue)
    assert describe(received) == {**sent, "delivery_count": 1}
    assert (type(received), received.body) == (ObjectMessage, None)
