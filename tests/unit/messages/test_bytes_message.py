"""BytesMessage: bytes, and the values that Java's streams write and read."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Byte, BytesMessage, Char, Float, Int, Long, Short
from jmsjca.errors import MessageEOFError, MessageFormatError, MessageNotReadableError, MessageNotWriteableError
from jmsjca.messages import bytes_and_stream

# What Java's DataOutputStream writes.
WRITTEN = [
    ("boolean", True, "01"),
    ("boolean", False, "00"),
    ("byte", -1, "ff"),
    ("short", -2, "fffe"),
    ("char", "€", "20ac"),
    ("int", 1, "00000001"),
    ("long", -1, "ffffffffffffffff"),
    ("float", 1.5, "3fc00000"),
    ("double", -2.0, "c000000000000000"),
    ("double", math.inf, "7ff0000000000000"),
    ("bytes", b"ab", "6162"),
    ("utf", "", "0000"),
    ("utf", "aß€", "0006" + "61" + "c39f" + "e282ac"),
    ("utf", "\0", "0002" + "c080"),
    ("utf", "\U0001f600", "0006" + "eda0bd" + "edb880"),
]


def reading(body: bytes) -> BytesMessage:
    message = BytesMessage(body)
    message.reset()
    return message


@pytest.mark.parametrize(("name", "value", "written"), WRITTEN)
def test_written_and_read_as_java_does(name, value, written):
    message = BytesMessage()
    getattr(message, f"write_{name}")(value)
    assert message.body.hex() == written
    message.reset()
    assert getattr(message, f"read_{name}")() == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *[
            (True, "01"),
            (Byte(1), "01"),
            (Short(1), "0001"),
            (Char("a"), "0061"),
            (Int(1), "00000001"),
            (1, "00000001"),
        ],
        *[
            (Long(1), "0000000000000001"),
            (Float(1), "3f800000"),
            (1.0, "3ff0000000000000"),
            ("a", "000161"),
            (b"a", "61"),
        ],
    ],
)
def test_objects_are_written_as_their_type(value, written):
    message = BytesMessage()
    message.write_object(value)
    assert message.body.hex() == written


def test_unsigned_numbers():
    message = reading(b"\xff\xff\xfe\x01")
    assert (message.read_unsigned_byte(), message.read_unsigned_short(), message.read_byte()) == (255, 65534, 1)


@pytest.mark.parametrize("value", [0, 1, 255])
def test_every_byte_but_zero_is_true(value):
    assert reading(bytes([value])).read_boolean() is (value > 0)


# What is read, and bytes that are too few for it.
READS = {
    **dict.fromkeys(["boolean", "byte", "unsigned_byte"], b""),
    **dict.fromkeys(["short", "unsigned_short", "char"], b"a"),
    **dict.fromkeys(["int", "float"], b"abc"),
    **dict.fromkeys(["long", "double"], b"abcdefg"),
    "utf": b"\0\3ab",
}


@pytest.mark.parametrize("name", READS)
def test_the_end(name):
    for body in (b"", READS[name]):
        message = reading(body)
        with pytest.raises(MessageEOFError, match="reset"):
            getattr(message, f"read_{name}")()
        assert message.read_bytes() == (body or None)  # nothing was taken


def test_an_empty_message_that_was_never_written_has_an_end():
    message = BytesMessage()
    message.reset()
    assert message.body is None
    assert message.read_bytes() is None
    with pytest.raises(MessageEOFError):
        message.read_byte()


@pytest.mark.parametrize("data", [b"\0\1\xff", b"\0\2\xc3(", b"\0\3\xe2\x82("])
def test_text_that_is_none_takes_nothing(data):
    message = reading(data)
    with pytest.raises(MessageFormatError, match="write_utf"):
        message.read_utf()
    assert message.read_bytes() == data


@pytest.mark.parametrize("name", [*READS, "bytes"])
def test_new_message_is_written_not_read(name):
    with pytest.raises(MessageNotReadableError):
        getattr(BytesMessage(b"x" * 20), f"read_{name}")()


@pytest.mark.parametrize(("name", "value", "written"), WRITTEN)
def test_received_message_cannot_be_written(name, value, written):
    message = BytesMessage(b"x")
    message._freeze()
    with pytest.raises(MessageNotWriteableError):
        getattr(message, f"write_{name}")(value)
    with pytest.raises(MessageNotWriteableError):
        message.write_object(value)
    assert message.body == b"x"


def test_received_message_is_read_from_its_beginning_and_again():
    message = BytesMessage(b"\1\2")
    message._freeze()
    assert (message.read_byte(), message.read_byte()) == (1, 2)
    message.reset()
    assert message.read_byte() == 1


def test_cleared_message_is_written():
    message = reading(b"abc")
    message.clear_body()
    assert message.body is None
    message.write_byte(1)
    assert message.body == b"\1"


def test_writing_goes_on_where_the_body_ends():
    message = BytesMessage(b"ab")
    message.write_bytes(b"c")
    assert message.body == b"abc"
    message.body = b"x"
    message.write_bytes(b"y")
    assert (message.body, type(message.body)) == (b"xy", bytes)


def test_bytes_in_pieces():
    message = reading(b"abcde")
    assert [message.read_bytes(2) for _ in range(4)] == [b"ab", b"cd", b"e", None]
    message.reset()
    message.read_byte()
    assert (message.read_bytes(), message.read_bytes()) == (b"bcde", None)


@pytest.mark.parametrize("size", [0, -1])
def test_a_piece_has_bytes(size):
    with pytest.raises(MessageFormatError, match="at least one byte"):
        reading(b"ab").read_bytes(size)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("byte", 128),
            ("short", 1 << 15),
            ("int", 1 << 31),
            ("long", 1 << 63),
            ("char", "ab"),
            ("char", "\U00010000"),
        ],
        *[
            ("utf", "x" * 65536),
            ("utf", "€" * 21846),
            ("object", None),
            ("object", [1]),
            ("bytes", None),
            ("utf", None),
        ],
        *[("boolean", 1), ("bytes", "x")],
    ],
)
def test_what_does_not_fit_is_refused(name, value):
    message = BytesMessage(b"a")
    with pytest.raises(MessageFormatError):
        getattr(message, f"write_{name}")(value)
    assert message.body == b"a"


def test_the_longest_text():
    message = BytesMessage()
    message.write_utf("x" * 65535)
    message.reset()
    assert message.read_utf() == "x" * 65535


def test_a_written_body_can_be_sent_and_written_on():
    message = BytesMessage()
    message.write_int(1)
    sent = message.body
    message.write_int(2)
    assert (sent, message.body) == (struct.pack(">i", 1), struct.pack(">ii", 1, 2))


PARTS = st.lists(
    st.one_of(
        st.tuples(st.just("boolean"), st.booleans()),
        st.tuples(st.just("byte"), st.integers(-128, 127)),
        st.tuples(st.just("short"), st.integers(-(1 << 15), (1 << 15) - 1)),
        st.tuples(st.just("char"), st.characters(max_codepoint=0xFFFF)),
        st.tuples(st.just("int"), st.integers(-(1 << 31), (1 << 31) - 1)),
        st.tuples(st.just("long"), st.integers(-(1 << 63), (1 << 63) - 1)),
        st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
        st.tuples(st.just("double"), st.floats(allow_nan=False)),
        st.tuples(st.just("utf"), st.text(st.characters())),
    )
)


@given(PARTS)
def test_whatever_is_written_is_read(parts):
    message = BytesMessage()
    for name, value in parts:
        getattr(message, f"write_{name}")(value)
    received = BytesMessage(message.body)
    received._freeze()
    assert [(name, getattr(received, f"read_{name}")()) for name, _ in parts] == parts
    assert received.read_bytes() is None


@given(st.text(st.characters()))
def test_text_of_java(text):
    encoded = bytes_and_stream._encode_modified_utf8(text)
    assert bytes_and_stream._decode_modified_utf8(encoded) == text
    assert b"\0" not in encoded
    assert max(encoded, default=0) < 0xF0  # no part of a character takes four bytes


def test_length_of_the_body_does_not_depend_on_the_position():
    message = reading(b"abc")
    message.read_byte()
    assert message.body_length == 3
    message.clear_body()
    message.reset()
    assert message.body_length == 0


def test_length_of_a_body_that_is_being_written_cannot_be_read():
    message = BytesMessage(b"abc")
    with pytest.raises(MessageNotReadableError):
        _ = message.body_length
