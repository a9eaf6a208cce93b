"""The annotation for receivers over STOMP, and messages that were sent over STOMP."""

import json

import pytest

from jmsjca.destinations import Queue, TemporaryQueue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, MapMessage, Message, Short, TextMessage
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from tests.unit.providers.amqp.codec.proton_sections import ANNOTATIONS, APPLICATION_PROPERTIES, DATA, read, section

QUEUE = Queue("q")
PROPERTIES = {
    "boolean": True,
    "byte": Byte(3),
    "short": Short(4),
    "int": Int(7),
    "long": Long(2**40),
    "float": Float(0.1),
    "double": Double(1.5),
    "text": 'p"ü',
    "absent": None,
}
TYPES = {name: name for name in PROPERTIES if name not in {"text", "absent"}}
DROPPED = {"boolean": "true", "byte": "3", "short": "4", "float": "0.1", "double": "1.5", "absent": None}


def told(message, naming):
    """Return the metadata in the annotation of an encoded message; None without it."""
    text = read(encode(message, QUEUE, 0.0, naming))[ANNOTATIONS].get("x-opt-jmsjca")
    return None if text is None else json.loads(text)


@pytest.mark.parametrize("naming", ["capability", "encoded", "scheme", "path", "exchange"])
@pytest.mark.parametrize("message", [Message(), TextMessage("x"), TextMessage("x", properties={"a": "b"})])
def test_a_message_of_which_nothing_is_dropped_has_no_annotation(naming, message):
    assert told(message, naming) is None


@pytest.mark.parametrize("naming", ["scheme", "path", "exchange"])
def test_other_brokers_get_no_annotation(naming):
    assert told(TextMessage("x", type="t", properties=PROPERTIES), naming) is None


def test_artemis_gets_types_and_the_names_of_nulls():
    message = TextMessage("x", type="t", reply_to=QUEUE, properties=PROPERTIES)
    assert told(message, "capability") == {"t": TYPES, "p": {"absent": None}}


def test_rabbitmq_gets_what_it_drops():
    properties = {**PROPERTIES, "JMSXGroupID": 'g"', "JMSXGroupSeq": 3}
    message = TextMessage("x", type='t"', reply_to=Topic("r"), properties=properties)
    metadata = {"t": TYPES, "y": 't"', "r": ["topic", "r"], "p": {**DROPPED, "JMSXGroupID": 'g"'}}
    assert told(message, "encoded") == metadata
    assert told(MapMessage({"a": 1}), "encoded") == {"k": "map"}


def test_values_are_of_the_message_though_the_shape_is_kept():
    for value in (1.5, 2.5):
        assert told(TextMessage("x", properties={"d": value}), "encoded")["p"] == {"d": str(value)}
    for value in (Int(1), Long(1)):
        assert told(TextMessage("x", properties={"n": value}), "capability") == {
            "t": {"n": type(value).__name__.lower()}
        }


def test_a_long_shape_and_a_temporary_destination_are_told_too():
    name = 600 * "n"
    assert told(TextMessage("x", properties={name: 1}), "capability") == {"t": {name: "int"}}
    assert told(TextMessage("x", reply_to=TemporaryQueue("r")), "encoded")["r"][:2] == ["queue", "r"]


def over_stomp(headers, body, naming="capability"):
    """Return a message as Artemis delivers one over AMQP that was sent over STOMP."""
    return decode(section(APPLICATION_PROPERTIES, headers) + section(DATA, body), ReceiveContext(QUEUE, naming), 0.0)


def test_headers_of_a_frame_are_no_properties():
    headers = {"content-length": "4", "receipt": "r", "destination": "q", "JMSXDeliveryCount": None, "fruit": "pear"}
    assert dict(over_stomp(headers, b"body").properties) == {"fruit": "pear"}


def test_metadata_restores_what_a_frame_cannot_hold():
    ours = {"k": "map", "i": "ID:1", "y": "order", "r": ["queue", "answers"], "t": {"n": "long", "z": "boolean"}}
    headers = {"_jmsjca": json.dumps({**ours, "p": {"z": "true", "none": None}}), "n": "7", "timestamp": "1"}
    received = over_stomp(headers, b'{"a":1}')
    assert (type(received), dict(received.body)) == (MapMessage, {"a": 1})
    assert (received.message_id, received.type, received.reply_to) == ("ID:1", "order", Queue("answers"))
    assert dict(received.properties) == {"n": 7, "z": True, "none": None}
    assert type(received.properties["n"]) is Long


def test_a_text_of_a_stomp_script_is_text_by_its_content_type():
    headers = {"content-length": "5", "_AMQ_CONTENT_TYPE": "text/plain"}
    assert (over_stomp(headers, "täxt".encode()).body, over_stomp({"content-length": "1"}, b"x").body) == ("täxt", b"x")


def test_wrong_metadata_is_reported():
    with pytest.raises(MessageFormatError, match="cannot be decoded"):
        over_stomp({"_jmsjca": "no JSON"}, b"x")
