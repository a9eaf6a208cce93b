"""What selectors give for values: true, false, unknown."""

import math

import pytest

from jmsjca.messages import Byte, Float, Int, Long
from jmsjca.selectors import Selector

T, F, U = True, False, None
TRUTH = {"t": True, "f": False}


def evaluate(text, values=()):
    return Selector(text).evaluate(dict(values))


# The tables as JMS 3.1, section 3.8.1.2, prints them; u is a property that is not set.
@pytest.mark.parametrize(
    ("text", "result"),
    [
        *[("t AND t", T), ("t AND f", F), ("t AND u", U), ("f AND t", F), ("f AND f", F), ("f AND u", F)],
        *[("u AND t", U), ("u AND f", F), ("u AND u", U)],
        *[("t OR t", T), ("t OR f", T), ("t OR u", T), ("f OR t", T), ("f OR f", F), ("f OR u", U)],
        *[("u OR t", T), ("u OR f", U), ("u OR u", U)],
        *[("NOT t", F), ("NOT f", T), ("NOT u", U)],
        *[("u AND u AND f", F), ("u OR u OR t", T), ("t AND t AND u", U), ("f OR f OR u", U)],
    ],
)
def test_truth_tables(text, result):
    assert evaluate(text, TRUTH) is result


@pytest.mark.parametrize("test", ["u = 1", "u <> 1", "u < 1", "u = u", "u LIKE '%'", "u IN ('x')", "u BETWEEN 1 AND 2"])
@pytest.mark.parametrize("value", [{}, {"u": None}, {"u": math.nan}])
def test_what_is_not_set_is_unknown(test, value):
    assert evaluate(test, value) is evaluate(f"NOT {test}", value) is None
    assert evaluate("u IS NULL", value) is True
    assert evaluate("u IS NOT NULL", value) is False


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        ("x = 1", 1.0, T),
        ("x = 1", Int(1), T),
        ("x = 1.5", Float(1.5), T),
        ("x = 1", True, F),
        ("x = 1", "1", F),
        ("x <> 1", "1", F),
        ("x <> 1", True, F),
        ("x = '1'", 1, F),
        ("x <> '1'", 1, F),
        ("x = TRUE", True, T),
        ("x = TRUE", 1, F),
        ("x <> TRUE", 0, F),
        ("x <> TRUE", False, T),
        ("FALSE = x", False, T),
        ("x > 0", True, F),
        ("x > 0", "1", F),
        ("NOT x > 0", "1", T),
        ("x", True, T),
        ("x", 1, U),
        ("x", "true", U),
        ("x LIKE '1'", 1, U),
        ("x NOT LIKE '1'", 1, U),
        ("x IN ('1')", 1, U),
        ("x NOT IN ('1')", 1, U),
        ("NOT x IN ('1')", True, U),
        ("x BETWEEN 1 AND 3", "2", F),
        ("x NOT BETWEEN 1 AND 3", "2", F),
        ("x = 'A'", "a", F),
        ("x = 'a '", "a", F),
    ],
)
def test_unlike_values_are_neither_equal_nor_unequal_nor_in_order(text, value, result):
    assert evaluate(text, {"x": value}) is result


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_only_numbers_have_an_order(operator):
    for one, other in [("a", "b"), (False, True), (1, "b"), (b"a", b"b")]:
        assert evaluate(f"x {operator} y", {"x": one, "y": other}) is False


@pytest.mark.parametrize("value", [b"x", [], {}, object(), 1j])
def test_values_of_other_types_are_like_nothing(value):
    assert evaluate("x = 'x'", {"x": value}) is False
    assert evaluate("x IN ('x')", {"x": value}) is None
    assert evaluate("x NOT LIKE 'x'", {"x": value}) is None
    assert evaluate("x + 1 = 1", {"x": value}) is None
    assert evaluate("x", {"x": value}) is None


@pytest.mark.parametrize(
    ("expression", "values", "result"),
    [
        ("7 / 2", {}, 3),
        ("-7 / 2", {}, -3),
        ("7 / -2", {}, -3),
        ("7 / 2.0", {}, 3.5),
        ("x / 2", {"x": Byte(7)}, 3),
        ("x / 2", {"x": Float(7)}, 3.5),
        ("x + 1", {"x": Long((1 << 63) - 1)}, 2.0**63),
        ("x - 1", {"x": -(1 << 63)}, -(2.0**63)),
        ("x * x", {"x": 1 << 32}, 2.0**64),
        ("x / -1", {"x": -(1 << 63)}, 2.0**63),
        ("-x", {"x": -(1 << 63)}, 2.0**63),
        ("x + 1", {"x": 1 << 53}, (1 << 53) + 1),
        ("1e308 * 10", {}, math.inf),
        ("0.1 + 0.2", {}, 0.30000000000000004),
        ("+x", {"x": 5}, 5),
    ],
)
def test_arithmetic(expression, values, result):
    assert evaluate(f"{expression} = y", {**values, "y": result}) is True
    assert evaluate(f"{expression} <> y", {**values, "y": result}) is False


@pytest.mark.parametrize(
    "expression",
    ["1 / 0", "1 / 0.0", "0.0 / 0", "x / 0", "i - i", "i * 0", "s + 1", "t + 1", "-s", "+s", "u + 1", "h + 1"],
)
def test_what_cannot_be_calculated_is_unknown(expression):
    values = {"x": 1.5, "i": math.inf, "s": "1", "t": True, "h": 10**400}
    assert evaluate(f"{expression} = 1", values) is evaluate(f"{expression} <> 1", values) is None


def test_long_and_double_are_compared_exactly():
    values = {"i": (1 << 53) + 1, "d": float(1 << 53)}
    assert evaluate("i = d", values) is False
    assert evaluate("i > d", values) is True


def test_quotes_in_strings():
    assert evaluate("x = 'it''s' AND x IN ('a', 'it''s') AND x LIKE 'it''%'", {"x": "it's"}) is True


def test_names_are_told_apart_by_case():
    assert evaluate("a = 1 AND A = 2", {"a": 1, "A": 2}) is True


def test_empty_selector_selects_everything():
    assert evaluate("") is True
    assert evaluate(" \t\r\n") is True
