"""The text form of a message: short, on one line, and without a look at the body."""

import tracemalloc

import pytest

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Queue, StreamMessage, TextMessage

LIMIT = 1024
HIDDEN = "hidden"


class Hostile(dict):
    def __repr__(self):
        raise AssertionError("somebody looked")

    __str__ = __len__ = __iter__ = __getitem__ = __repr__


BODIES = [
    TextMessage(HIDDEN * 1_000_000),
    BytesMessage(HIDDEN.encode() * 1_000_000),
    MapMessage({HIDDEN: HIDDEN * 1_000_000}),
    StreamMessage([HIDDEN] * 100_000),
    ObjectMessage({HIDDEN: HIDDEN * 100_000}),
    ObjectMessage.from_pickled(b"cos\nsystem\n(S'touch /tmp/canary'\ntR."),
    Message(properties={HIDDEN * 1000: HIDDEN * 1000, "p": HIDDEN}),
]


@pytest.mark.parametrize("message", BODIES, ids=lambda message: type(message).__name__)
def test_no_body_and_no_property_is_shown(message):
    message.message_id, message.destination = "ID:1", Queue("orders")
    for form in (repr(message), str(message), f"{message}"):
        assert form == f"<{type(message).__name__} ID:1 to queue:orders>"


@pytest.mark.parametrize("kind", [TextMessage, MapMessage, ObjectMessage])
def test_the_body_is_not_even_looked_at(kind):
    message = kind()
    message._body = Hostile()
    assert repr(message).startswith(f"<{kind.__name__} ")


@pytest.mark.parametrize(
    "text", ["x" * 10_000_000, "\x1b" * 10_000, "\U000e0001" * 10_000, "%s" * 10_000, "\n" * 10_000]
)
def test_long_ids_and_names_are_cut(text):
    message = Message()
    message.message_id, message.destination = text, Queue(text)
    assert len(repr(message)) <= LIMIT
    assert repr(message).isprintable()


def test_a_large_message_is_shown_without_copying_it():
    message = TextMessage("x" * 20_000_000)
    tracemalloc.start()
    try:
        repr(message)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\0", "\x7f", "\x85", "\u2028", "\u202e", "\t"])
def test_nothing_breaks_out_of_its_line(sign):
    message = Message()
    message.message_id, message.destination = f"ID:{sign}1", Queue(f"a{sign}b")
    assert sign not in repr(message)
    assert repr(message).isprintable()


def test_readable_text_stays_readable():
    message = Message()
    message.message_id, message.destination = "ID:größe 'x' <b>", Queue("名前")
    assert repr(message) == "<Message ID:größe 'x' <b> to queue:名前>"


def test_text_form_of_mappings_names_what_is_in_them():
    assert repr(Message(properties={"region": HIDDEN, "size": 1}).properties) == "<Properties of 2: region, size>"
    assert repr(MapMessage({"a\nb": HIDDEN}).body) == "<MapBody of 1: a\\nb>"


def test_text_form_of_mappings_is_bounded():
    many = Message(properties={f"{'n' * 1000}{number}": HIDDEN for number in range(1000)}).properties
    odd = MapMessage({"\U000e0001" * 1000 + str(number): HIDDEN for number in range(1000)}).body
    assert all(len(repr(mapping)) <= LIMIT and HIDDEN not in repr(mapping) for mapping in (many, odd))
