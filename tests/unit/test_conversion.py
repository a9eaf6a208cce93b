"""Property types and the conversion table of JMS 3.1, section 3.5.4."""

import pytest

from jmsjca import Byte, Double, Float, Int, Long, Message, Short
from jmsjca.errors import MessageFormatError
from jmsjca.messages import type_name, typed

SET = {
    "boolean": True,
    "byte": Byte(7),
    "short": Short(7),
    "int": Int(7),
    "long": Long(7),
    "float": Float(7),
    "double": Double(7),
    "string": "7",
}
# Row: the type set; columns: the types it may be read as.
TABLE = {
    "boolean": {"boolean", "string"},
    "byte": {"byte", "short", "int", "long", "string"},
    "short": {"short", "int", "long", "string"},
    "int": {"int", "long", "string"},
    "long": {"long", "string"},
    "float": {"float", "double", "string"},
    "double": {"double", "string"},
    "string": set(SET),
}
PAIRS = [(source, wanted) for source in SET for wanted in SET]


@pytest.mark.parametrize(("source", "wanted"), PAIRS)
def test_conversion_table(source, wanted):
    message = Message(properties={"p": SET[source]})
    read = getattr(message, f"get_{wanted}_property")
    if wanted not in TABLE[source]:
        with pytest.raises(MessageFormatError, match=f"{source} cannot be read as {wanted}"):
            read("p")
        return
    expected = {"boolean": source == "boolean", "string": text_of(source)}.get(wanted, 7)
    assert read("p") == expected


def text_of(source: str) -> str:
    return {"boolean": "true", "float": "7.0", "double": "7.0"}.get(source, "7")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("1", False), ("yes", False), ("", False)])
def test_string_to_boolean(text, value):
    assert Message(properties={"p": text}).get_boolean_property("p") is value


@pytest.mark.parametrize("wanted", ["byte", "short", "int", "long", "float", "double"])
@pytest.mark.parametrize("text", ["", "seven", "7x", "1_000", "0x7"])
def test_string_that_is_no_number(wanted, text):
    with pytest.raises(MessageFormatError):
        getattr(Message(properties={"p": text}), f"get_{wanted}_property")("p")


@pytest.mark.parametrize(("wanted", "text"), [("byte", "128"), ("short", "-32769"), ("int", "2147483648")])
def test_string_that_is_too_large_a_number(wanted, text):
    with pytest.raises(MessageFormatError):
        getattr(Message(properties={"p": text}), f"get_{wanted}_property")("p")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_property_without_a_value(name):
    message = Message(properties={"empty": None})
    assert message.get_object_property(name) is None
    assert message.get_string_property(name) is None
    assert message.get_boolean_property(name) is False
    for wanted in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(MessageFormatError, match="not set"):
            getattr(message, f"get_{wanted}_property")(name)


@pytest.mark.parametrize("name", sorted(SET))
def test_setters_fix_the_type(name):
    message = Message()
    getattr(message, f"set_{name}_property")("p", SET[name])
    assert type_name(message.get_object_property("p")) == name
    assert message.property_exists("p")
    assert not message.property_exists("q")


@pytest.mark.parametrize(
    ("value", "name"),
    [(1, "int"), (-(1 << 31), "int"), (1 << 31, "long"), (-(1 << 31) - 1, "long"), (1.0, "double"), (True, "boolean")],
)
def test_type_of_a_plain_value(value, name):
    assert type_name(value) == name
    assert type_name(typed(value)) == name
    assert typed(value) == value


@pytest.mark.parametrize("value", [b"bytes", [1], {"a": 1}, 1j, object()])
def test_value_that_cannot_be_a_property(value):
    with pytest.raises(MessageFormatError, match="cannot hold"):
        Message(properties={"p": value})


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_int_that_is_too_large_for_a_long(value):
    with pytest.raises(MessageFormatError, match="64 bits"):
        Message().set_object_property("p", value)
