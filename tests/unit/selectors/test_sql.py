"""Selectors in SQL select what they select in Python, and bring nothing of themselves into the SQL."""

import re
from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError, NotSupportedError
from jmsjca.selectors import Layout, Selector, translate
from tests.unit.selectors.message_table import HEADERS, LAYOUT, MessageTable
from tests.unit.selectors.strategies import conditions, messages

VOCABULARY = {
    *("AND", "CASE", "ELSE", "END", "FALSE", "GLOB", "IN", "IS", "NOT", "NULL", "OR", "THEN", "TRUE", "WHEN"),
    *("coalesce", "instr", "json_array", "json_extract", "json_type", "replace", "typeof"),
    *("integer", "real", "text", "true", "false", "u0000", "u0001", "u005c", "0", "1", "9"),
    *("headers", "urgency", "correlation", "mode", "id", "time", "kind"),
}


ODD = "".join(map(chr, range(1, 256))) + "\u2028🥕"


def holds_nothing_of_the_selector(condition):
    assert set(re.findall(r"\w+", condition.sql)) <= VOCABULARY
    assert set(re.sub(r"[\w\s]", "", condition.sql)) <= set("()',.=<>+-*/?\\")
    assert condition.sql.count("?") == len(condition.parameters)


def agrees(text, *rows):
    """Select both ways; give the places of what was selected."""
    selector, table = Selector(text), MessageTable(rows)
    try:
        holds_nothing_of_the_selector(translate(selector, LAYOUT))
        in_sql = table.selected(selector)
    finally:
        table.close()
    assert in_sql == {place for place, row in enumerate(rows) if selector.evaluate(row) is True}
    assert table.denied == []
    return in_sql


@settings(max_examples=4 * settings.default.max_examples)
@given(conditions, st.lists(messages, min_size=1, max_size=10))
def test_sql_selects_what_python_does_only_reads_and_has_no_text_of_the_selector(text, rows):
    try:
        agrees(text, *rows)
    except (InvalidSelectorError, NotSupportedError):  # a pattern ends with its escape, or SQLite cannot tell it
        assume(False)


@pytest.mark.parametrize(
    ("text", "rows", "places"),
    [
        # Numbers, texts and booleans are different, although SQLite has no booleans and orders texts behind numbers.
        ("a = 1", [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {}], {0, 1}),
        ("a > 0", [{"a": 1}, {"a": True}, {"a": "1"}, {"a": "x"}, {"a": None}], {0}),
        ("a <> 1", [{"a": 2}, {"a": True}, {"a": "1"}, {}], {0}),
        ("NOT a <> 1", [{"a": 1}, {"a": 2}, {"a": True}, {"a": "1"}, {}], {0, 2, 3}),
        ("a = '1'", [{"a": "1"}, {"a": 1}], {0}),
        ("a <> '1'", [{"a": "2"}, {"a": 2}, {"a": True}, {}], {0}),
        ("a = TRUE", [{"a": True}, {"a": 1}, {"a": "true"}, {"a": False}], {0}),
        ("a <> TRUE", [{"a": True}, {"a": 0}, {"a": "false"}, {"a": False}, {}], {3}),
        ("a", [{"a": True}, {"a": 1}, {"a": "true"}, {}], {0}),
        ("NOT a", [{"a": False}, {"a": 0}, {"a": "false"}, {}], {0}),
        ("a = b", [{"a": 1, "b": 1.0}, {"a": 1, "b": True}, {"a": "x", "b": "x"}, {"a": "1", "b": 1}], {0, 2}),
        ("a <> b", [{"a": 1, "b": 2.0}, {"a": 1, "b": False}, {"a": True, "b": False}, {"a": "x"}], {0, 2}),
        ("a < b", [{"a": 1, "b": 2}, {"a": "a", "b": "b"}, {"a": False, "b": True}], {0}),
        ("2 > a", [{"a": 1}, {"a": 2}, {"a": 3}], {0}),
        ("2 < a", [{"a": 1}, {"a": 2}, {"a": 3}], {2}),
        ("2 <= a", [{"a": 1}, {"a": 2}, {"a": 3}], {1, 2}),
        ("2 >= a", [{"a": 1}, {"a": 2}, {"a": 3}], {0, 1}),
        ("JMSType = 5", [{"JMSType": "5"}], set()),
        ("JMSTimestamp = '5'", [{"JMSTimestamp": 5}], set()),
        ("JMSType = a", [{"JMSType": "5", "a": 5}, {"JMSType": "5", "a": "5"}, {"JMSType": ODD, "a": ODD}], {1, 2}),
        ("JMSType", [{"JMSType": "TRUE"}], set()),
        ("JMSPriority > 3", [{"JMSPriority": 4}, {"JMSPriority": 3}], {0}),
        ("JMSXDeliveryCount = 2", [{"JMSXDeliveryCount": 2}], {0}),
        # 64 bits and doubles.
        ("a = 9007199254740993", [{"a": (1 << 53) + 1}, {"a": float(1 << 53)}, {"a": 1 << 53}], {0}),
        ("a + 1 = 9223372036854775808.0", [{"a": (1 << 63) - 1}], {0}),
        ("-a > 0", [{"a": -(1 << 63)}], {0}),
        ("a / -1 > 0", [{"a": -(1 << 63)}], {0}),
        ("a / 2 = -3", [{"a": -7}, {"a": -6.0}, {"a": -7.0}], {0, 1}),
        ("NOT a / b = 0", [{"a": 1, "b": 0}, {"a": 1, "b": 0.0}, {"a": 1, "b": "x"}, {"a": 1, "b": 1}], {3}),
        ("a > 1e308", [{"a": float("inf")}, {"a": float("-inf")}, {"a": float("nan")}], {0}),
        ("a - a = 0", [{"a": float("inf")}, {"a": 1}], {1}),
        ("a IS NULL", [{"a": float("nan")}, {"a": None}, {}, {"a": ""}], {0, 1, 2}),
        # Texts end at no character, and every character is itself.
        ("a = 'x'", [{"a": "x\0y"}, {"a": "x"}, {"a": "x\0"}], {1}),
        ("a <> 'x'", [{"a": "x\0y"}, {"a": "x"}], {0}),
        ("a = '\\u0000'", [{"a": "\\u0000"}, {"a": "\0"}], {0}),
        ("a IN ('x', 'y')", [{"a": "x\0y"}, {"a": "y"}, {"a": 1}], {1}),
        ("a NOT IN ('x', 'y')", [{"a": "x\0y"}, {"a": "y"}, {"a": 1}, {}], {0}),
        ("a = b", [{"a": "x\0y", "b": "x\0z"}, {"a": "x\0y", "b": "x\1y"}, {"a": "x\0y", "b": "x\0y"}], {2}),
        ("a LIKE 'x_y'", [{"a": "x\0y"}, {"a": "x\ny"}, {"a": "x🥕y"}, {"a": "xy"}, {"a": "X_Y"}], {0, 1, 2}),
        ("a LIKE 'x%y'", [{"a": "x\0\0y"}, {"a": "x\\u0000y"}, {"a": "xy"}, {"a": "xyz"}], {0, 1, 2}),
        ("a LIKE '*?[a]'", [{"a": "*?[a]"}, {"a": "xya"}], {0}),
        ("a NOT LIKE '%'", [{"a": 5}, {"a": True}, {"a": "5"}, {}], set()),
        ("a NOT LIKE 'x'", [{"a": 5}, {"a": True}, {"a": "5"}, {"a": "x\0"}, {}], {2, 3}),
        ("NOT a IN ('x')", [{"a": 5}, {"a": False}, {"a": "5"}, {}], {2}),
        ("JMSPriority NOT IN ('4')", [{"JMSPriority": 5}], set()),
        ("JMSPriority NOT LIKE '4'", [{"JMSPriority": 5}], set()),
        ("a LIKE '%u0000'", [{"a": "\\u0000", "b": "\0"}, {"a": "\0", "b": "\0"}], {0}),
        ("a LIKE '%\\%'", [{"a": "\\", "b": "\0"}, {"a": "\\u0000", "b": "\0"}, {"a": "", "b": "\0"}], {0, 1}),
    ],
)  # fmt: skip
def test_values_in_sql(text, rows, places):
    assert agrees(text, *rows) == places


@pytest.mark.parametrize("number", [0.1, 36810.52989657332, 6.696887221807168, 3.215457523089397e-197, 0.1 + 0.2])
@pytest.mark.parametrize("operator", ["=", "<", ">", "<=", ">=", "<>"])
def test_number_is_the_same_as_the_literal_that_is_written_alike(number, operator):
    """Also where SQLite reads decimals a little wrong, as most of its builds do."""
    agrees(f"a {operator} {number!r}", {"a": number}, {"a": number * 1.5}, {"a": number / 1.5})
    assert f"[{number},{number}]" in translate(Selector(f"a {operator} {number!r}"), LAYOUT).parameters


def test_headers_are_taken_from_the_layout_and_so_is_what_else_it_has():
    layout = Layout(headers={**HEADERS, "JMSXDeliveryCount": "(deliveries + 1)"}, properties="headers", path="$")
    assert "deliveries" in translate(Selector("JMSXDeliveryCount = 1"), layout).sql
    assert '$."JMSXGroupID"' in translate(Selector("JMSXGroupID = 'a'"), layout).parameters


def test_empty_selector_is_true():
    assert agrees("", {}, {"a": 1}) == {0, 1}


@pytest.mark.parametrize(
    "text", ["a = 'x\0'", "a IN ('\0')", "a LIKE 'x\0'", "a LIKE '\1'", "a LIKE '\ufffd'", "a LIKE '\uffff%'"]
)
def test_what_sqlite_cannot_tell_from_others_is_refused(text):
    with pytest.raises(NotSupportedError, match=r"U\+0000"):
        translate(Selector(text), LAYOUT)


TURNS = {
    "right": "(x = y {word} {inner})",
    "left": "({inner} {word} x LIKE 'a')",
    "not": "(x {word} NOT {inner})",
    "many": "(" + "x = 1 {word} " * 60 + "{inner})",
}


def nested(turn, levels):
    text = "JMSType = a"
    for level in range(levels):
        text = TURNS[turn].format(inner=text, word="AND" if level % 2 else "OR")
    return text


def nested_sum(levels):
    return "a > " + "1 + b * (" * levels + "c" + ")" * levels


@pytest.mark.parametrize("make", [*(partial(nested, turn) for turn in TURNS), nested_sum], ids=[*TURNS, "sum"])
def test_sqlite_reads_whatever_is_not_refused_as_too_deep(make):
    """Many versions keep a hundred words in mind; with more they report a parser stack overflow."""
    for levels in range(1, 25):
        try:
            agrees(make(levels), {"a": "x"})
        except NotSupportedError:
            break
    assert levels > 8


def test_long_selectors_fit_the_limits_of_sqlite():
    agrees(" OR ".join(["a = b"] * 999), {"a": 1, "b": 1})
    agrees(" AND ".join(["a"] * 2000), {"a": True})
    agrees("a IN (" + "'', " * 16000 + "'')", {"a": ""})
    agrees("a" + " + a" * 40 + " BETWEEN b AND c", {"a": 1, "b": 2, "c": 50})
