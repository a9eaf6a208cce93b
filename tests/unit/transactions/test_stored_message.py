"""The content of a message in the row of an outbox."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import (
    Byte,
    BytesMessage,
    Float,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
)
from jmsjca.errors import MessageFormatError
from jmsjca.messages.properties import Properties
from jmsjca.transactions.stored_message import decode_message, encode_message

PROPERTIES = st.dictionaries(
    st.from_regex(r"\Ax_[a-z0-9]{0,5}\Z"),
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.builds(Byte, st.integers(-128, 127)),
        st.builds(Short, st.integers(-(2**15), 2**15 - 1)),
        st.builds(Long, st.integers(-(2**63), 2**63 - 1)),
        st.builds(Float, st.floats(width=32, allow_nan=False)),
    ),
)
MESSAGES = st.one_of(
    st.builds(TextMessage, st.text(st.characters(exclude_categories=["Cs"]))),
    st.builds(BytesMessage, st.binary()),
    st.builds(MapMessage, PROPERTIES),
    st.builds(StreamMessage, st.lists(st.one_of(st.integers(-5, 5), st.binary(), st.builds(Byte, st.just(1))))),
    st.builds(ObjectMessage, st.dictionaries(st.text(max_size=3), st.integers())),
    st.builds(Message),
)


@given(MESSAGES, PROPERTIES)
def test_a_stored_message_is_the_same(message, properties):
    for name, value in properties.items():
        message.set_object_property(name, value)
    stored = decode_message(*encode_message(message))
    assert type(stored) is type(message)
    assert encode_message(stored) == encode_message(message)
    if not isinstance(message, ObjectMessage):
        assert stored.body == message.body
    assert stored.properties == message.properties
    assert {name: type(value) for name, value in stored.properties.items()} == {
        name: type(value) for name, value in message.properties.items()
    }


def test_a_received_message_keeps_names_that_only_other_clients_can_set():
    message = TextMessage("a")
    message.properties = Properties.received({"trace-id": "7", "JMSXUserID": "ann"})
    stored = decode_message(*encode_message(message))
    assert dict(stored.properties) == {"trace-id": "7"}  # as in a copy, the provider sets the other one
    stored.set_string_property("mine", "8")


@pytest.mark.parametrize("headers", ["", "[]", '{"kind":"no"}', '{"kind":"text"}', '{"kind":"text","properties":5}'])
def test_a_damaged_row_is_a_message_format_error(headers):
    with pytest.raises(MessageFormatError):
        decode_message(headers, b"a")
