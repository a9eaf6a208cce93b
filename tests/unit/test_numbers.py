"""The marks that give a number its JMS type."""

import math
import pickle

import pytest

from jmsjca import Byte, Double, Float, Int, Long, Short
from jmsjca.errors import MessageFormatError

INTEGERS = [(Byte, 8), (Short, 16), (Int, 32), (Long, 64)]


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_bounds_are_accepted(mark, bits):
    limit = 1 << (bits - 1)
    assert (mark(-limit), mark(limit - 1)) == (-limit, limit - 1)


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_beyond_the_bounds_is_refused(mark, bits):
    limit = 1 << (bits - 1)
    for value in (limit, -limit - 1):
        with pytest.raises(MessageFormatError, match=f"{bits} bits"):
            mark(value)


@pytest.mark.parametrize(("mark", "bits"), INTEGERS)
def test_fractions_are_refused_rather_than_cut(mark, bits):
    with pytest.raises(MessageFormatError):
        mark(1.5)


@pytest.mark.parametrize("text", ["", " 7", "7 ", "1_000", "0x7", "seven", "7.0", "7" * 5000])
def test_text_that_is_no_number_is_refused(text):
    with pytest.raises(MessageFormatError, match="not a number") as caught:
        Int(text)
    assert len(str(caught.value)) < 200


def test_float_is_rounded_to_single_precision():
    assert Float(0.1) != 0.1
    assert Float(Float(0.1)) == Float(0.1)
    assert Double(0.1) == 0.1


@pytest.mark.parametrize("value", [1e39, -1e39, "x", "1_0.5"])
def test_what_is_no_single_precision_number_is_refused(value):
    with pytest.raises(MessageFormatError):
        Float(value)


@pytest.mark.parametrize("value", ["x", "1_0.5"])
def test_what_is_no_double_is_refused(value):
    with pytest.raises(MessageFormatError):
        Double(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_fits(value):
    assert Float(value) == Double(value) == value


@pytest.mark.parametrize("value", [Byte(1), Short(2), Int(3), Long(4), Float(0.1), Double(0.1)])
def test_marks_survive_pickling(value):
    copy = pickle.loads(pickle.dumps(value))  # noqa: S301  # our own
    assert (copy, type(copy)) == (value, type(value))
