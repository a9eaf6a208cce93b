"""What we send Java's Qpid JMS reads the same, and the other way round: bodies, properties, headers of the sender."""

import uuid

import pytest
from jms_java import describe, told_value

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
    "reply to a queue": Message(reply_to=Queue("answers")),
    "reply to a topic": Message(reply_to=Topic("answers")),
}
DATA = [Int(1), Long(2**40), Double(0.5), Float(0.25), "täxt", True, None, Short(3), Byte(4)]


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


def test_java_reads_our_plain_data(ours, theirs, queue):
    ours.send(queue, ObjectMessage.from_data(DATA))
    [received] = theirs.session().take(queue)
    assert (received["kind"], received["body"]) == ("object", [told_value(value) for value in DATA])


def test_we_read_java_objects_as_plain_data(ours, theirs, queue):
    theirs.session().send(queue, an_object(typed=True))
    [received] = ours.take(queue)
    assert (type(received), received.body) == (ObjectMessage, DATA)
    assert [told_value(value) for value in received.body] == [told_value(value) for value in DATA]


def test_java_objects_go_around_as_they_are(ours, theirs, queue):
    """What Java has serialized are bytes to us, which nothing here looks into; passed on, it is the object again."""
    theirs.session().send(queue, an_object(typed=False))
    [received] = ours.take(queue)
    assert (type(received), received.pickled[:2]) == (ObjectMessage, b"\xac\xed")  # how Java's objects begin
    with pytest.raises(MessageFormatError):
        received.get_object(allowed=frozenset())
    ours.send(queue, ObjectMessage.from_pickled(received.pickled))
    [back] = theirs.session().take(queue)
    assert (back["kind"], back["body"]) == ("object", [told_value(value) for value in DATA])


def test_no_object(ours, theirs, queue):
    ours.send(queue, ObjectMessage())
    [received] = theirs.session().take(queue)
    assert (received["kind"], received["body"]) == ("object", None)
    for typed in (True, False):
        theirs.session().send(queue, an_object(None, typed=typed))
        [received] = ours.take(queue)
        assert (type(received), received.body) == (ObjectMessage, None)


def an_object(values=tuple(DATA), *, typed):
    told = None if values is None else [told_value(value) for value in values]
    return {**describe(Message()), "kind": "object", "body": {"typed": typed, "values": told}}
