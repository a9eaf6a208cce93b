"""The marks that give a value its JMS type."""

import math
import pickle

import pytest

from jmsjca import Byte, Char, Double, Float, Int, Long, Short
from jmsjca.errors import MessageFormatError

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
