"""What we send Java's Qpid JMS reads the same, and the other way round: bodies, properties, headers of the sender."""

import uuid

import pytest
from jms_java import describe

from jmsjca import Queue, Topic
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
