"""The conversion tables of JMS 3.1, sections 3.5.4 and 3.11.3, and the classes that mark a value's type."""

import math
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsjca import Byte, Char, Double, Float, Int, Long, MapMessage, Message, Short, StreamMessage
from jmsjca.errors import MessageFormatError
from jmsjca.messages import convert, type_name, typed_property

# As the specification prints them: a value set as the type of the row can be read as that of the column.
PROPERTIES = """
            | boolean byte short int long float double string
    boolean |    X                                       X
    byte    |          X     X    X   X                  X
    short   |                X    X   X                  X
    int     |                     X   X                  X
    long    |                         X                  X
    float   |                              X     X       X
    double  |                                    X       X
    string  |    X     X     X    X   X    X     X       X
"""
ENTRIES = """
            | boolean byte short char int long float double string bytes
    boolean |    X                                            X
    byte    |          X     X         X   X                  X
    short   |                X         X   X                  X
    char    |                     X                           X
    int     |                          X   X                  X
    long    |                              X                  X
    float   |                                    X     X      X
    double  |                                          X      X
    string  |    X     X     X         X   X     X     X      X
    bytes   |                                                       X
"""
VALUES = {
    "boolean": True,
    "byte": Byte(7),
    "short": Short(7),
    "char": Char("7"),
    "int": Int(7),
    "long": Long(7),
    "float": Float(7),
    "double": Double(7),
    "string": "7",
    "bytes": b"7",
}
TEXTS = {"boolean": "true", "float": "7.0", "double": "7.0"}


def cells(table: str) -> list[tuple[str, str, bool]]:
    """Each pair of types, and whether there is a cross: the column is that whose name is nearest above it."""
    head, *rows = table.strip("\n").splitlines()
    names = head.split("|")[1].split()
    columns = {name: head.index(f" {name}") + (len(name) + 1) / 2 for name in names}
    found = []
    for row in rows:
        crosses = [place for place, sign in enumerate(row) if sign == "X"]
        marked = {min(columns, key=lambda name: abs(columns[name] - place)) for place in crosses}
        assert len(marked) == len(crosses)
        found += [(row.split()[0], name, name in marked) for name in columns]
    return found


def expected(source: str, wanted: str) -> object:
    """What the value of a type is when it is read as another."""
    if wanted == "string":
        return TEXTS.get(source, "7")
    if wanted == "boolean":
        return source == "boolean"
    return VALUES[wanted]


def test_the_tables_are_read_as_printed():
    assert len(cells(PROPERTIES)) == 64
    assert len(cells(ENTRIES)) == 100
    assert sum(allowed for *_, allowed in cells(PROPERTIES)) == 29
    assert sum(allowed for *_, allowed in cells(ENTRIES)) == 32


def check(read, source, wanted, allowed):
    if allowed:
        value = read()
        assert value == expected(source, wanted)
        assert isinstance(value, type(expected(source, wanted)).__mro__[-2])  # bool, int, float, str or bytes
    else:
        with pytest.raises(MessageFormatError, match=f"{source} cannot be read as {wanted}"):
            read()


@pytest.mark.parametrize(("source", "wanted", "allowed"), cells(PROPERTIES))
def test_property(source, wanted, allowed):
    message = Message(properties={"p": VALUES[source]})
    check(lambda: getattr(message, f"get_{wanted}_property")("p"), source, wanted, allowed)


@pytest.mark.parametrize(("source", "wanted", "allowed"), cells(ENTRIES))
def test_entry_of_a_map(source, wanted, allowed):
    message = MapMessage({"e": VALUES[source]})
    check(lambda: getattr(message, f"get_{wanted}")("e"), source, wanted, allowed)


@pytest.mark.parametrize(("source", "wanted", "allowed"), cells(ENTRIES))
def test_value_of_a_stream(source, wanted, allowed):
    message = StreamMessage([VALUES[source]])
    message.reset()
    check(getattr(message, f"read_{wanted}"), source, wanted, allowed)


NULLS = {"boolean": False, "string": None, "bytes": None}


@pytest.mark.parametrize("wanted", VALUES)
@pytest.mark.parametrize("where", ["missing property", "null property", "missing entry", "null entry", "null in a row"])
def test_null(where, wanted):
    message = StreamMessage([None]) if where == "null in a row" else MapMessage({"n": None}, properties={"n": None})
    name = "n" if where.startswith("null") else "missing"
    if where == "null in a row":
        message.reset()
        read = getattr(message, f"read_{wanted}")
    elif where.endswith("property"):
        if wanted in {"char", "bytes"}:
            assert not hasattr(message, f"get_{wanted}_property")
            return
        read = lambda: getattr(message, f"get_{wanted}_property")(name)  # noqa: E731
    else:
        read = lambda: getattr(message, f"get_{wanted}")(name)  # noqa: E731
    if wanted in NULLS:
        assert read() is NULLS[wanted]
    else:
        with pytest.raises(MessageFormatError, match="not set, or null"):
            read()


@pytest.mark.parametrize("text", ["true", "TRUE", "tRuE"])
def test_the_word_true_in_any_case_is_true(text):
    assert Message(properties={"p": text}).get_boolean_property("p") is True


@pytest.mark.parametrize("text", ["1", "yes", "", " true", "true\n", "false"])
def test_every_other_text_is_false(text):
    assert Message(properties={"p": text}).get_boolean_property("p") is False


NUMBERS = ["byte", "short", "int", "long", "float", "double"]


@pytest.mark.parametrize("wanted", NUMBERS)
@pytest.mark.parametrize("text", ["", " ", "seven", "7x", "1_000", "0x7", "+", "--7", "7 7", "inf", "nan", "x" * 999])
def test_text_that_is_no_number(wanted, text):
    with pytest.raises(MessageFormatError) as caught:
        convert(text, wanted)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("wanted", "text"),
    [("byte", "128"), ("byte", "-129"), ("short", "-32769"), ("int", "2147483648"), ("long", "9223372036854775808")],
)
def test_text_that_is_too_large_a_number(wanted, text):
    with pytest.raises(MessageFormatError, match="does not fit"):
        convert(text, wanted)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("1.5", 1.5), ("-1.5e3", -1500.0), (".5", 0.5), ("5.", 5.0), ("+7", 7.0), ("7f", 7.0), ("7.5D", 7.5)],
        *[(" 7 ", 7.0), ("Infinity", math.inf), ("-Infinity", -math.inf), ("1e999", math.inf)],
    ],
)
def test_text_of_a_double_as_java_reads_it(text, value):
    assert convert(text, "double") == value


def test_text_beyond_single_precision_is_infinite():
    assert (convert("1e39", "float"), convert("-1e39", "float")) == (math.inf, -math.inf)


@given(st.floats())
def test_double_and_its_text(value):
    assert repr(convert(convert(Double(value), "string"), "double")) == repr(value)


@given(st.floats(width=32))
@example(1.1164310501431706e18)  # takes nine digits
def test_float_and_its_text(value):
    text = convert(Float(value), "string")
    assert repr(convert(text, "float")) == repr(Float(value))
    digits = text.lower().partition("e")[0].replace(".", "").lstrip("-").strip("0")
    assert not digits.isdigit() or len(digits) <= 9  # that many tell all of them apart


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(Float(0.1), "0.1"), (Float(1 / 3), "0.33333334"), (Float(16777216), "16777216.0"), (Double(0.1), "0.1")],
        *[(math.inf, "Infinity"), (Float(-math.inf), "-Infinity"), (math.nan, "NaN"), (True, "true"), (False, "false")],
        *[(-0.0, "-0.0"), (Long(-(1 << 63)), "-9223372036854775808"), (Char("ß"), "ß"), ("\n", "\n")],
    ],
)
def test_text_of_a_value(value, text):
    assert convert(value, "string") == text
    assert type(convert(value, "string")) is str


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_and_their_text(value):
    assert convert(str(value), "long") == value == convert(convert(Long(value), "string"), "long")


@pytest.mark.parametrize("name", [name for name in VALUES if name not in {"char", "bytes"}])
def test_setters_of_properties_fix_the_type(name):
    message = Message()
    getattr(message, f"set_{name}_property")("p", VALUES[name])
    assert type_name(message.get_object_property("p")) == name
    assert message.property_exists("p")
    assert not message.property_exists("q")
    assert message.get_property_names() == ["p"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("boolean", 1), ("boolean", "true"), ("string", 7), ("string", b"7"), ("byte", 128), ("short", 1 << 15)],
        *[("int", 1 << 31), ("int", 1.0), ("int", [1]), ("long", 1 << 63), ("float", 1e39), ("double", "x")],
        *[("double", 10**400), ("double", [1])],
    ],
)
def test_setters_refuse_what_does_not_fit(name, value):
    message = Message()
    with pytest.raises(MessageFormatError):
        getattr(message, f"set_{name}_property")("p", value)
    assert not message.properties


@pytest.mark.parametrize(
    ("value", "name"),
    [(1, "int"), (-(1 << 31), "int"), (1 << 31, "long"), (-(1 << 31) - 1, "long"), (1.0, "double"), (True, "boolean")],
)
def test_type_of_a_plain_value(value, name):
    assert type_name(value) == name
    assert type_name(typed_property(value)) == name
    assert typed_property(value) == value


@pytest.mark.parametrize("value", [b"bytes", bytearray(b"x"), Char("x"), [1], {"a": 1}, 1j, object()])
def test_value_that_cannot_be_a_property(value):
    with pytest.raises(MessageFormatError, match="cannot hold"):
        Message(properties={"p": value})


@pytest.mark.parametrize("value", [[1], {"a": 1}, 1j, object(), 1 << 63])
def test_value_that_cannot_be_in_a_body(value):
    with pytest.raises(MessageFormatError):
        MapMessage({"e": value})
    with pytest.raises(MessageFormatError):
        StreamMessage([value])


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, pytest.param(10**5000, id="huge")])
def test_int_that_is_too_large_for_a_long(value):
    with pytest.raises(MessageFormatError, match="64 bits"):
        Message().set_object_property("p", value)


INTEGERS = [(Byte, 8), (Short, 16), (Int, 32), (Long, 64)]


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_bounds_are_accepted(mark, bits):
    limit = 1 << (bits - 1)
    assert (mark(-limit), mark(limit - 1)) == (-limit, limit - 1)


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_beyond_the_bounds_is_refused(mark, bits):
    limit = 1 << (bits - 1)
    for value in (limit, -limit - 1, 10**5000):  # Python does not show the last one
        with pytest.raises(MessageFormatError, match=f"{bits} bits"):
            mark(value)


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_fractions_are_refused_rather_than_cut(mark, bits):
    with pytest.raises(MessageFormatError):
        mark(1.5)


@pytest.mark.parametrize("mark", [Byte, Short, Int, Long, Float, Double])
@pytest.mark.parametrize("value", [None, [7], b"7", 7j])
def test_what_is_no_number_is_refused(mark, value):
    with pytest.raises(MessageFormatError, match="not a number"):
        mark(value)


@pytest.mark.parametrize("text", ["", " 7", "7 ", "1_000", "0x7", "seven", "7.0", "7" * 5000])
def test_text_that_is_no_number_is_refused(text):
    with pytest.raises(MessageFormatError, match="not a number") as caught:
        Int(text)
    assert len(str(caught.value)) < 200


def test_float_is_rounded_to_single_precision():
    assert Float(0.1) != 0.1
    assert Float(Float(0.1)) == Float(0.1)
    assert Double(0.1) == 0.1


@pytest.mark.parametrize("value", [1e39, -1e39, "x", "1_0.5", 10**400])
def test_what_is_no_single_precision_number_is_refused(value):
    with pytest.raises(MessageFormatError):
        Float(value)


@pytest.mark.parametrize("value", ["x", "1_0.5", "inf", "nan", "0x1p3", 10**400])
def test_what_is_no_double_is_refused(value):
    with pytest.raises(MessageFormatError):
        Double(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_fits(value):
    assert Float(value) == Double(value) == value


@pytest.mark.parametrize("text", ["1" * 200_000 + "x", "1." + "1" * 200_000 + "x", " " * 200_000 + "x"])
def test_long_text_is_refused_without_trying_all_its_parts(text):
    with pytest.raises(MessageFormatError, match="not a number"):
        Double(text)


@pytest.mark.parametrize("text", ["a", "ß", "\0", "\uffff", "€"])
def test_char_is_one_character(text):
    assert Char(text) == text
    assert isinstance(Char(text), str)


@pytest.mark.parametrize("value", ["", "ab", "\U00010000", 7, None, b"a"])
def test_what_is_no_char_is_refused(value):
    with pytest.raises(MessageFormatError, match="Char"):
        Char(value)


@pytest.mark.parametrize("value", [Byte(1), Short(2), Int(3), Long(4), Float(0.1), Double(0.1), Char("x")])
def test_marks_survive_pickling(value):
    copy = pickle.loads(pickle.dumps(value))  # noqa: S301  # our own
    assert (copy, type(copy)) == (value, type(value))
