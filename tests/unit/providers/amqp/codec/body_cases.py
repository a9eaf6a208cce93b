"""The conformance cases about bodies: what is sent, which type a received message has, and what is in it."""

import codecs
import uuid

import pytest
from proton import byte, char, float32, int32, short, symbol

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsjca.errors import MessageEOFError, MessageFormatError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short
from jmsjca.providers.amqp.codec.jms_mapping import charset_of
from tests.unit.providers.amqp.codec.proton_sections import (
    ANNOTATIONS,
    DATA,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    annotated,
    listed,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import received, sent

JAVA = "application/x-java-serialized-object"
TYPED = "JMS_AMQP_TYPED_ENCODING"
JAVA_STRING = b"\xac\xed\x00\x05t\x00\x01x"
TYPES = {kind.__name__: kind for kind in (Message, TextMessage, BytesMessage, MapMessage, StreamMessage, ObjectMessage)}
NUMBERS = {"Message": 0, "ObjectMessage": 1, "MapMessage": 2, "BytesMessage": 3, "StreamMessage": 4, "TextMessage": 5}
SECTIONS = {DATA: "data", SEQUENCE: "amqp-sequence", VALUE: "amqp-value"}

MESSAGES = {
    ("TextMessage", "myMessage"): lambda: TextMessage("myMessage"),
    ("TextMessage", None): TextMessage,
    ("BytesMessage", "bytes 'myBytes'"): lambda: BytesMessage(b"myBytes"),
    ("BytesMessage", "nothing written"): BytesMessage,
    ("MapMessage", "map"): lambda: MapMessage({"a": 1, "b": "x"}),
    ("StreamMessage", "list"): lambda: StreamMessage([1, "x"]),
    ("StreamMessage", "nothing written"): StreamMessage,
    ("ObjectMessage", "Java object"): lambda: ObjectMessage.from_pickled(JAVA_STRING),
    ("ObjectMessage", None): ObjectMessage,
    ("ObjectMessage", f"map, with message property {TYPED}=true"): lambda: ObjectMessage.from_data({"a": "x"}),
    ("ObjectMessage", "nothing set, AMQP typed encoding"): lambda: ObjectMessage(properties={TYPED: True}),
    ("Message", None): Message,
}
BODIES = {
    "the bytes": b"myBytes",
    "": b"",
    "Java serialization of the object": JAVA_STRING,
    "Java serialization of null": b"\xac\xed\x00\x05p",
    "map with string keys": {"a": 1, "b": "x"},
    "one sequence section with the values in order": [1, "x"],
    "empty sequence": [],
    "the AMQP map": {"a": "x"},
}


def send(row):
    expect = row["expect"]
    found = sent(MESSAGES[row["jms_type"], row["content"]]())
    bodies = [code for code in SECTIONS if code in found]
    assert [SECTIONS[code] for code in bodies] == ([expect["body_section"]] if expect["body_section"] else [])
    assert found[PROPERTIES].get("content-type") == expect["content_type"]
    assert found[ANNOTATIONS]["x-opt-jms-msg-type"] == byte(expect["x-opt-jms-msg-type"])
    if "body_value" in expect:
        told = expect["body_value"]
        named = next(iter(told.values())) if isinstance(told, dict) else told
        assert found[bodies[0]] == BODIES.get(named, named)
    if "header.durable" in expect:
        assert found[HEADER]["durable"] is True


ENCODED = {
    None: b"",
    "data": section(DATA, b"bytes"),
    "amqp-value map": section(VALUE, {"a": True}),
    "amqp-value list": section(VALUE, [True]),
    "amqp-value binary": section(VALUE, b"bytes"),
    "amqp-value string": section(VALUE, "text"),
    "amqp-value null": section(VALUE, None),
    "amqp-value uuid": section(VALUE, uuid.UUID(int=7)),
    "amqp-sequence": section(SEQUENCE, [True]),
}


def receive(row):
    expect, text = row["expect"], None
    body = ENCODED[row["body_section"]]
    if "charset" in expect:
        text = "text" if expect["charset"] == "US-ASCII" else "tëxt"
        body = section(DATA, text.encode("utf-16-be" if expect["charset"] == "UTF-16" else expect["charset"]))
        assert codecs.lookup(charset_of(row["content_type"])) == codecs.lookup(expect["charset"])
    raw = _raw(row["annotation"], row["content_type"], body)
    if "error" in expect:
        with pytest.raises(MessageFormatError):
            received(raw)
        return
    message = received(raw)
    assert type(message) is TYPES[expect["jms_type"]]
    if text is not None:
        assert message.body == text
    if "encoding" in expect:
        assert message.properties.get(TYPED, False) is (expect["encoding"] == "AMQP typed")
    if "object" in expect:
        assert message.body == {"a": True}
    if "when_sent_again" in expect:
        _check_again(sent(message), expect["when_sent_again"])


def _check_again(found, expect):
    [body] = [name for code, name in SECTIONS.items() if code in found]
    assert body == expect["body_section"]
    assert found[PROPERTIES]["content-type"] == expect["content_type"]
    assert found[ANNOTATIONS]["x-opt-jms-msg-type"] == byte(expect["x-opt-jms-msg-type"])


READ = {
    "none": b"",
    "data, empty": section(DATA, b""),
    "data, UTF-8 bytes of 'myEncodedString'": section(DATA, b"myEncodedString"),
    "data, UTF-16 bytes read as UTF-8": section(DATA, "text".encode("utf-16")),
    "data, 5 bytes": section(DATA, b"12345"),
    "amqp-value boolean": section(VALUE, True),
    "amqp-value binary, 10 bytes": section(VALUE, b"1234567890"),
    "amqp-value binary, empty": section(VALUE, b""),
    "amqp-value empty map": section(VALUE, {}),
    "amqp-value map entry1=true entry2=false": section(VALUE, {"entry1": True, "entry2": False}),
    "amqp-sequence null": section(SEQUENCE, None),
    "amqp-sequence [false]": section(SEQUENCE, [False]),
    "data null": section(DATA, None),
    **ENCODED,
}
CONTENTS = {
    "text": lambda message: message.body,
    "length": lambda message: len(message.body or b""),
    "map": lambda message: dict(message.body),
    "values": lambda message: list(message.body),
    "object": lambda message: message.body,
}


def read_body(row):
    body, _, content_type = row["body_section"].partition(", content-type ")
    raw = _raw(NUMBERS[row["jms_type"]], content_type or None, READ[body])
    expect = row["expect"]
    if "error" in expect:
        with pytest.raises(MessageFormatError):
            received(raw)
        return
    message = received(raw)
    assert type(message) is TYPES[row["jms_type"]]
    [(what, told), *then] = expect.items()
    assert CONTENTS[what](message) == ([True] if told == "the list" else told)
    if then:
        message.read_boolean()
        with pytest.raises(MessageEOFError):
            message.read_boolean()


def _raw(annotation, content_type, body):
    annotations = b"" if annotation is None else annotated(x_opt_jms_msg_type=byte(annotation))
    told = b"" if content_type is None else listed(PROPERTIES, content_type=symbol(content_type))
    return annotations + told + body or section(HEADER, [])


def content_type(row):
    if row["expect"].get("error"):
        with pytest.raises(MessageFormatError):
            charset_of(row["content_type"])
    else:
        found, told = charset_of(row["content_type"]), row["expect"]["charset"]
        assert (found and codecs.lookup(found)) == (told and codecs.lookup(told))


# By the names of Java's types: a value here, and how proton shows it.
ELEMENTS = {
    "boolean": (True, True),
    "byte": (Byte(-5), byte(-5)),
    "byte[]": (b"b", b"b"),
    "char": (Char("c"), char("c")),
    "double": (Double(0.1), 0.1),
    "float": (Float(0.5), float32(0.5)),
    "int": (Int(70_000), int32(70_000)),
    "long": (Long(7), 7),
    "short": (Short(7), short(7)),
    "String": ("s", "s"),
}


def element_type(row):
    if "amqp_value" in row:
        assert received(_raw(2, None, section(VALUE, {"a": b"bytes"}))).body == {"a": b"bytes"}
        return
    value, shown = ELEMENTS[row["jms_value"]]
    if row["container"] == "MapMessage":
        found = sent(MapMessage({"a": value}))[VALUE]["a"]
    else:
        [found] = sent(StreamMessage([value]))[SEQUENCE]
    assert (type(found), found) == (type(shown), shown)
