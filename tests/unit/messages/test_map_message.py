"""MapMessage: a mapping whose values keep their JMS types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Byte, Char, Double, Float, Int, Long, MapMessage, Short
from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages import type_name

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
MARKED = [True, Byte(1), Short(2), Char("c"), Int(3), Long(4), Float(0.5), Double(0.25), "s", b"b", None]


@pytest.mark.parametrize("name", VALUES)
def test_setters_fix_the_type(name):
    message = MapMessage()
    getattr(message, f"set_{name}")("e", VALUES[name])
    assert type_name(message.body["e"]) == name
    assert getattr(message, f"get_{name}")("e") == VALUES[name]


@pytest.mark.parametrize("value", MARKED)
def test_objects_keep_the_type_that_they_have(value):
    message = MapMessage()
    message.set_object("e", value)
    assert (message.get_object("e"), type(message.get_object("e"))) == (value, type(value))
    assert type(message.body["e"]) is type(value)


@pytest.mark.parametrize("name", VALUES)
def test_setters_refuse_what_does_not_fit(name):
    message = MapMessage()
    with pytest.raises(MessageFormatError):
        getattr(message, f"set_{name}")("e", [VALUES[name]])
    assert message.get_map_names() == []


@pytest.mark.parametrize("name", ["string", "bytes"])
def test_references_may_be_null(name):
    message = MapMessage({"e": 1})
    getattr(message, f"set_{name}")("e", None)
    assert message.item_exists("e")
    assert message.body["e"] is None


@pytest.mark.parametrize("name", [" ", "a.b", "1", "NULL", "größe", "\n", "JMSX", "x" * 10_000])
def test_any_text_names_an_entry(name):
    message = MapMessage()
    message.set_int(name, 1)
    assert message.get_map_names() == [name]


@pytest.mark.parametrize("name", ["", None, 1, b"a"])
def test_what_cannot_name_an_entry(name):
    with pytest.raises(MessageFormatError, match="cannot name an entry"):
        MapMessage().set_int(name, 1)


def test_entries_that_are_not_there():
    message = MapMessage({"there": None})
    assert (message.item_exists("there"), message.item_exists("missing")) == (True, False)
    assert (message.get_object("there"), message.get_object("missing")) == (None, None)
    with pytest.raises(KeyError):
        _ = message.body["missing"]


def test_the_body_is_a_mapping():
    message = MapMessage({"a": 1})
    message.body["b"] = Short(2)
    message.body.update(c="3")
    del message.body["a"]
    assert message.body == {"b": 2, "c": "3"}
    assert message.get_map_names() == ["b", "c"]


def test_what_is_set_is_copied():
    given, blob = {"a": 1}, bytearray(b"x")
    message = MapMessage(given)
    message.body["b"] = blob
    given["a"] = 2
    blob[0] = 0
    assert message.body == {"a": 1, "b": b"x"}
    other = MapMessage(message.body)
    other.body["a"] = 3
    assert message.body["a"] == 1


def test_received_body_cannot_be_changed():
    message = MapMessage({"a": 1})
    message._freeze()
    with pytest.raises(MessageNotWriteableError, match="clear_body"):
        message.set_int("a", 2)
    with pytest.raises(MessageNotWriteableError):
        message.body["b"] = 2
    with pytest.raises(MessageNotWriteableError):
        del message.body["a"]
    with pytest.raises(MessageNotWriteableError):
        message.body.clear()
    assert message.body == {"a": 1}
    message.clear_body()
    message.set_int("b", 2)
    assert message.body == {"b": 2}


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(MARKED)))
def test_a_map_message_holds_what_a_dictionary_holds(entries):
    message = MapMessage()
    for name, value in entries.items():
        message.set_object(name, value)
    assert message.get_body(dict) == entries
    assert message.get_map_names() == list(entries)
    assert [type(message.get_object(name)) for name in entries] == [type(value) for value in entries.values()]
