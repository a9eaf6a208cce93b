"""StreamMessage: a sequence of values, written, reset and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsjca import Byte, Char, Double, Float, Int, Long, Short, StreamMessage
from jmsjca.errors import MessageEOFError, MessageFormatError, MessageNotReadableError, MessageNotWriteableError
from jmsjca.messages import convert, type_name

VALUES = {
    "boolean": True,
    "byte": 1,
    "short": 2,
    "char": "c",
    "int": 3,
    "long": 4,
    "float": 0.5,
    "double": 0.25,
    "string": "s",
    "bytes": b"b",
}
MARKED = [True, Byte(1), Short(2), Char("c"), Int(3), Long(4), Float(0.5), Double(0.25), "s", "12", b"", b"bytes", None]


def reading(*values: object) -> StreamMessage:
    message = StreamMessage(values)
    message.reset()
    return message


def pieces(message: StreamMessage, size: int) -> list[bytes | None]:
    """What read_bytes gives until the value is read."""
    read: list[bytes | None] = []
    while not read or (read[-1] is not None and len(read[-1]) == size):
        read.append(message.read_bytes(size))
    return read


def test_everything_is_read_as_it_was_written():
    message = StreamMessage()
    for name, value in VALUES.items():
        getattr(message, f"write_{name}")(value)
    message.reset()
    assert [type_name(value) for value in message.body] == list(VALUES)
    assert {name: getattr(message, f"read_{name}")() for name in VALUES} == VALUES


@pytest.mark.parametrize("value", MARKED)
def test_objects_keep_the_type_that_they_have(value):
    message = StreamMessage()
    message.write_object(value)
    message.reset()
    assert type(message.body[0]) is type(value)
    read = message.read_object()
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("name", VALUES)
def test_writing_refuses_what_does_not_fit(name):
    message = StreamMessage()
    with pytest.raises(MessageFormatError):
        getattr(message, f"write_{name}")([VALUES[name]])
    assert message.body == ()


@pytest.mark.parametrize("name", VALUES)
def test_the_end(name):
    message = reading()
    with pytest.raises(MessageEOFError, match="reset"):
        getattr(message, f"read_{name}")()
    with pytest.raises(EOFError):
        message.read_object()


@pytest.mark.parametrize("name", VALUES)
def test_new_message_is_written_not_read(name):
    message = StreamMessage([1])
    with pytest.raises(MessageNotReadableError, match="reset"):
        getattr(message, f"read_{name}")()
    with pytest.raises(MessageNotReadableError):
        message.read_object()
    message.write_int(2)
    assert message.body == (1, 2)  # looking at all of it is always possible


@pytest.mark.parametrize("name", VALUES)
def test_message_that_is_read_cannot_be_written(name):
    message = reading(1)
    with pytest.raises(MessageNotWriteableError, match="clear_body"):
        getattr(message, f"write_{name}")(VALUES[name])
    assert message.body == (1,)


def test_cleared_message_is_written_from_the_beginning():
    message = reading(1, 2)
    message.read_int()
    message.clear_body()
    message.write_string("a")
    with pytest.raises(MessageNotReadableError):
        message.read_string()
    message.reset()
    assert message.read_string() == "a"


def test_received_message_is_read_from_its_beginning():
    message = StreamMessage([1, 2])
    message._freeze()
    assert (message.read_int(), message.read_int()) == (1, 2)


def test_reset_begins_again():
    message = reading(1, b"bytes", 2)
    message.read_int()
    message.read_bytes(2)
    message.reset()
    assert (message.read_int(), message.read_bytes(), message.read_int()) == (1, b"bytes", 2)


def test_a_failed_read_takes_nothing():
    message = reading("x", None, b"b")
    for wanted in ("int", "double", "char", "bytes"):
        with pytest.raises(MessageFormatError):
            getattr(message, f"read_{wanted}")()
    assert message.read_string() == "x"
    for wanted in ("byte", "int", "float", "char"):
        with pytest.raises(MessageFormatError):
            getattr(message, f"read_{wanted}")()
    assert message.read_object() is None
    with pytest.raises(MessageFormatError):
        message.read_string()
    assert message.read_bytes() == b"b"


@pytest.mark.parametrize(
    ("value", "size", "expected"),
    [
        (b"abcde", 2, [b"ab", b"cd", b"e"]),
        (b"abcd", 2, [b"ab", b"cd", None]),  # as many as asked for: ask again
        (b"abc", 5, [b"abc"]),
        (b"abc", 3, [b"abc", None]),
        (b"", 3, [b""]),
        (None, 3, [None]),
    ],
)
def test_bytes_in_pieces(value, size, expected):
    message = reading(value, "next")
    assert pieces(message, size) == expected
    assert message.read_string() == "next"


def test_the_rest_of_bytes_of_which_a_part_was_read():
    message = reading(b"abcde", b"fg", 1)
    assert (message.read_bytes(2), message.read_bytes()) == (b"ab", b"cde")
    assert (message.read_bytes(2), message.read_bytes()) == (b"fg", None)
    assert message.read_int() == 1


@pytest.mark.parametrize("name", [*(name for name in VALUES if name != "bytes"), "object"])
def test_nothing_else_is_read_before_the_last_piece(name):
    message = StreamMessage([b"ab"])
    getattr(message, f"write_{name}")(VALUES.get(name, 1))
    message.reset()
    message.read_bytes(2)
    with pytest.raises(MessageFormatError, match="part of the bytes"):
        getattr(message, f"read_{name}")()
    assert message.read_bytes(2) is None
    assert getattr(message, f"read_{name}")() == VALUES.get(name, 1)


def test_pieces_of_the_first_value_count_too():
    message = reading(b"abc")
    message.read_bytes(1)
    with pytest.raises(MessageFormatError, match="part of the bytes"):
        message.read_object()


def test_neighbouring_bytes_stay_apart():
    message = StreamMessage()
    message.write_bytes(b"a")
    message.write_bytes(b"")
    message.write_bytes(b"b")
    message.reset()
    assert [message.read_bytes(), message.read_bytes(), message.read_bytes()] == [b"a", b"", b"b"]


@pytest.mark.parametrize("size", [0, -1])
def test_a_piece_has_bytes(size):
    message = reading(b"ab")
    with pytest.raises(MessageFormatError, match="at least one byte"):
        message.read_bytes(size)
    assert message.read_bytes() == b"ab"


def test_what_is_written_is_copied():
    blob = bytearray(b"x")
    message = StreamMessage()
    message.write_bytes(blob)
    blob[0] = 0
    assert message.body == (b"x",)


def test_body_takes_any_sequence_of_values():
    message = StreamMessage(value for value in (1, "a"))
    message.write_int(2)
    assert message.body == (1, "a", 2)
    message.body = [Short(3)]
    assert message.body == (3,)


class Streams(RuleBasedStateMachine):
    """A stream message beside a plain list, whatever is done to it in whatever order."""

    @initialize(values=st.lists(st.sampled_from(MARKED)))
    def begin(self, values):
        self.message = StreamMessage(values)
        self.values = list(values)
        self.readable = False
        self.at = 0
        self.given = None  # bytes of the present value that were given

    @invariant()
    def body_is_whole(self):
        assert self.message.body == tuple(self.values)
        assert [type(value) for value in self.message.body] == [type(value) for value in self.values]

    @rule(value=st.sampled_from(MARKED))
    def write(self, value):
        if self.readable:
            with pytest.raises(MessageNotWriteableError):
                self.message.write_object(value)
        else:
            self.message.write_object(value)
            self.values.append(value)

    @rule()
    def reset(self):
        self.message.reset()
        self.readable, self.at, self.given = True, 0, None

    @rule()
    def clear(self):
        self.message.clear_body()
        self.values, self.readable = [], False

    @precondition(lambda self: not self.readable)
    @rule(name=st.sampled_from([*VALUES, "object"]))
    def read_too_early(self, name):
        with pytest.raises(MessageNotReadableError):
            getattr(self.message, f"read_{name}")()

    @precondition(lambda self: self.readable)
    @rule(name=st.sampled_from([*(name for name in VALUES if name != "bytes"), "object"]))
    def read(self, name):
        read = getattr(self.message, f"read_{name}")
        try:
            expected = self.expected(name)
        except (MessageFormatError, MessageEOFError) as error:
            with pytest.raises(type(error)):
                read()
        else:
            assert read() == expected
            self.at += 1

    def expected(self, name):
        if self.given is not None:
            raise MessageFormatError
        if self.at == len(self.values):
            raise MessageEOFError
        return self.values[self.at] if name == "object" else convert(self.values[self.at], name)

    @precondition(lambda self: self.readable)
    @rule(size=st.none() | st.integers(1, 6))
    def read_bytes(self, size):
        if self.at == len(self.values):
            with pytest.raises(MessageEOFError):
                self.message.read_bytes(size)
        elif not isinstance(self.values[self.at], bytes | None):
            with pytest.raises(MessageFormatError):
                self.message.read_bytes(size)
        else:
            self.expect_piece(self.values[self.at], size)

    def expect_piece(self, value, size):
        left = None if value is None else value[self.given or 0 :]
        piece = left if left is None or size is None else left[:size]
        if self.given is not None and not piece:
            piece = None
        assert self.message.read_bytes(size) == piece
        if piece and len(piece) == size:
            self.given = (self.given or 0) + size
        else:
            self.at, self.given = self.at + 1, None


TestStreams = Streams.TestCase


@given(st.lists(st.binary()), st.integers(1, 4))
def test_pieces_make_the_whole(values, size):
    message = reading(*values)
    assert [b"".join(piece or b"" for piece in pieces(message, size)) for _ in values] == values
    with pytest.raises(MessageEOFError):
        message.read_bytes()
