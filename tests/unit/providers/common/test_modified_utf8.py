"""Strings in AMQP as Java's `writeUTF` encodes them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.common.amqp_types import map_of, read, text

texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\U0001f600é€"), max_size=200)
INVALID = {
    "a byte of NUL beside an encoded one": b"\xc0\x80\x00",
    "four bytes beside an encoded NUL": b"\xc0\x80\xf0\x9f\x98\x80",
    "an unpaired high surrogate": b"\xed\xa0\xbd",
    "an unpaired low surrogate": b"\xed\xb8\x80",
    "surrogates in the wrong order": b"\xed\xb8\x80\xed\xa0\xbd",
    "another overlong form": b"\xc1\xbf",
    "half of an encoded NUL": b"\xc0",
    "no lead byte": b"\x80",
    "no UTF-8 at all": b"\xff",
}


def modified(value):
    message = BytesMessage()
    message.write_utf(value)
    message.reset()
    return message.body[2:]


def string(encoded, long):
    return (b"\xb1" + len(encoded).to_bytes(4, "big") if long else b"\xa1" + bytes([len(encoded)])) + encoded


@given(texts, st.booleans())
@example("a\0b", False)
@example("\U0001f600", True)
@example("", False)
def test_a_string_of_java_is_read(value, long):
    encoded = modified(value)
    raw = string(encoded, long or len(encoded) > 255)
    assert read(raw) == (value, len(raw))


@given(texts)
def test_utf8_is_read_as_before(value):
    assert read(text(value))[0] == value


@given(st.binary(max_size=20))
@example(b"\xc0\x80")
def test_other_bytes_are_read_only_if_java_writes_them(encoded):
    try:
        value, _ = read(string(encoded, long=False))
    except UnicodeDecodeError:
        return
    assert encoded in {value.encode(), modified(value)}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("encoded", INVALID.values(), ids=INVALID)
def test_invalid_modified_utf8_is_refused(encoded, long):
    with pytest.raises(UnicodeDecodeError):
        read(string(encoded, long))


TEXT, MAP = 5, 2


def received(kind, body, value=b"value"):
    annotations = b"\x00\x53\x72" + map_of([b"\xa3\x12x-opt-jms-msg-type", bytes([0x51, kind])])
    properties = b"\x00\x53\x74" + map_of([string(b"name", long=False), string(value, long=False)])
    return decode(annotations + properties + b"\x00\x53\x77" + body, ReceiveContext(None))


def test_a_text_and_its_properties_are_read():
    message = received(TEXT, string(b"a\xc0\x80b", long=False), b"\xed\xa0\xbd\xed\xb8\x80")
    assert message.body == "a\0b"
    assert message.properties["name"] == "\U0001f600"


def test_entries_of_a_map_are_read():
    message = received(MAP, map_of([string(b"key", long=False), string(b"\xc0\x80", long=True)]))
    assert message.body == {"key": "\0"}


def test_a_text_that_is_neither_is_a_message_format_error():
    with pytest.raises(MessageFormatError):
        received(TEXT, string(b"\xc0\x80\x00", long=False))


def test_a_property_that_is_neither_is_a_message_format_error():
    message = received(TEXT, string(b"text", long=False), b"\xed\xa0\xbd")
    with pytest.raises(MessageFormatError):
        message.properties["name"]
