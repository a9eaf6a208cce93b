"""Texts that are selectors, and the errors for the others; limits of length and depth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors import Selector
from tests.unit.selectors.strategies import conditions


def tree(text):
    return Selector(text).expression


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NOT a AND b OR c", "((NOT a) AND b) OR c"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a = 1", "NOT (a = 1)"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a + b * c - d = 1", "((a + (b * c)) - d) = 1"),
        ("a / b / c = 1", "(a / b) / c = 1"),
        ("- a * b = 1", "(- a) * b = 1"),
        ("a - -1 = b", "a - (-1) = b"),
        ("a + 1 < b", "(a + 1) < b"),
        ("(a OR b) OR (c OR d)", "a OR b OR c OR d"),
        ("a BETWEEN 1 AND 2 AND b", "a >= 1 AND a <= 2 AND b"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("a NOT IN ('x')", "NOT a IN ('x')"),
        ("a NOT LIKE 'x'", "NOT (a LIKE 'x')"),
        ("a IS NOT NULL", "NOT a IS NULL"),
        ("a=1 aNd\tb\r\n=\f2", "a = 1 AND b = 2"),
        ("a IN('x' ,'y')", "a in ('x', 'y')"),
        ("a='x'AND b=1and c=2", "a = 'x' AND b = 1 AND c = 2"),
    ],
)
def test_what_means_the_same_is_the_same_tree(one, other):
    assert tree(one) == tree(other)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("0", 0),
        ("57L", 57),
        ("+62", 62),
        ("-957l", -957),
        ("017", 15),
        ("0xFf", 255),
        ("0X7fffffffffffffffL", (1 << 63) - 1),
        ("0xFFFFFFFFFFFFFFFF", -1),
        ("01777777777777777777777", -1),
        ("9223372036854775807", (1 << 63) - 1),
        ("-9223372036854775808", -(1 << 63)),
        ("7.", 7.0),
        (".5", 0.5),
        ("-57.9E2", -5790.0),
        ("7e3", 7000.0),
        ("1d", 1.0),
        ("1F", 1.0),
        ("0.1f", 0.10000000149011612),
        ("1e39d", 1e39),
        ("4.9E-324", 5e-324),
        ("007.5", 7.5),
        ("9223372036854775808.0", 2.0**63),
        ("'it''s'", "it's"),
        ("''", ""),
        ("'-- /* \n\t🥕 \"'", '-- /* \n\t🥕 "'),
        ("true", True),
        ("False", False),
    ],
)
def test_literals(literal, value):
    right = tree(f"a = {literal}").right.value
    assert right == value
    assert type(right) is type(value)


@pytest.mark.parametrize(
    "name", ["a", "_", "$", "a$1", "ünï", "価格", "€", "e\u0301", "JMSXFoo", "JMS_x", "NOTHING", "nullx"]
)
def test_names(name):
    assert Selector(f"{name} = 1").identifiers == {name}


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("a b", 3, "'b' stands where AND, OR"),
        ("a = 1 b = 2", 7, "'b'"),
        ("a =", 4, "it ends where a name"),
        ("(a = 1", 7, "closing parenthesis"),
        ("a = 1)", 6, "the end"),
        ("a = 'it's'", 9, "'s'"),
        ("a = 'x", 5, "quote within it is written twice"),
        ('a = "x"', 5, "single quotes"),
        ("a.b = 1", 2, "dots"),
        ("a != 1", 3, "<>"),
        ("a == 1", 4, "= must|Equal is written ="),
        ("a = NULL", 5, "IS NULL"),
        ("a IN (1)", 3, "IN takes strings"),
        ("a IN ()", 3, "IN takes strings"),
        ("a LIKE b", 8, "a string"),
        ("a LIKE 'x' ESCAPE", 18, "a string"),
        ("a LIKE 'x' ESCAPE ''", 8, "one character"),
        ("a LIKE 'x' ESCAPE '!!'", 8, "one character"),
        ("a LIKE 'x!' ESCAPE '!'", 8, "escapes nothing"),
        ("a IS 3", 6, "NOT or NULL"),
        ("a BETWEEN 1 OR 2", 13, "AND"),
        ("3", 1, "a number is no condition"),
        ("'x'", 1, "a string is no condition"),
        ("a = 1 AND 3", 7, "AND takes conditions, not a number"),
        ("a AND b AND 3", 9, "AND takes"),
        ("3 OR a", 3, "OR takes"),
        ("NOT -a", 1, "NOT takes"),
        ("a < 'x'", 3, "< takes numbers, not a string"),
        ("a >= TRUE", 3, "a boolean"),
        ("a BETWEEN 'x' AND 'y'", 3, "BETWEEN takes numbers"),
        ("a + 'x' = 1", 3, r"\+ takes numbers"),
        ("-'x' = 1", 1, "- takes numbers"),
        ("(a = 1) + 1 = 2", 9, "not a condition"),
        ("TRUE = 1", 6, "cannot compare a boolean with a number"),
        ("'x' <> FALSE", 5, "cannot compare a boolean with a string"),
        ("(a = 1) = TRUE", 9, "cannot compare a condition"),
        ("3 IS NULL", 3, "before IS stands a number"),
        ("'x' LIKE 'x'", 5, "before LIKE"),
        ("a + 1 IN ('x')", 7, "before IN"),
        ("JMSExpiration = 1", 1, "JMSPriority"),
        ("JMSFoo = 1", 1, "JMSPriority"),
        ("²a = 1", 1, "identifier"),
        ("🥕 = 1", 1, "identifier"),
        ("a\u00a0= 1", 1, "identifier"),
        ("a \u0131s NULL", 3, "identifier"),
        ("1a = 1", 2, "'a'"),
        ("a = 1_000", 6, "'_000'"),
        ("a = 08", 5, "octal"),
        ("a = 9223372036854775809", 5, "64 bits"),
        ("a = 0x10000000000000000", 5, "64 bits"),
        ("a = 1e309", 5, "larger"),
        ("a = 1e39f", 5, "larger"),
        ("a = '\ud800'", 6, "surrogate"),
        ("a % 2 = 1", 3, "'%'"),
    ],
)
def test_mistakes_are_told_with_their_position(text, position, words):
    with pytest.raises(InvalidSelectorError, match=f"at position {position}: .*({words})"):
        Selector(text)


def test_largest_number_is_one_less_without_a_minus():
    with pytest.raises(InvalidSelectorError, match="9223372036854775808"):
        Selector("a = 1 - 9223372036854775808")


@pytest.mark.parametrize("value", [None, b"a = 1", 5])
def test_selector_is_a_text(value):
    with pytest.raises(InvalidSelectorError, match="is a str"):
        Selector(value)


@given(conditions)
def test_text_of_a_selector_gives_the_same_selector(text):
    try:
        selector = Selector(text)
    except InvalidSelectorError:
        return
    again = Selector(str(selector))
    assert (again, repr(again.expression)) == (selector, repr(selector.expression))


def refusal_of(text):
    """What is said of a text that is no selector; of one that is, nothing, and it can be evaluated."""
    try:
        Selector(text).evaluate({"a": 1})
    except InvalidSelectorError as error:
        return str(error)
    return ""


DEEP = {
    "parentheses": lambda n: "(" * n + "a" + ")" * n,
    "unclosed": lambda n: "(" * n,
    "not": lambda n: "NOT " * n + "a",
    "signs": lambda n: "- " * n + "a = 1",
    "and in or": lambda n: "(a OR (b AND " * n + "c" + "))" * n,
    "sum": lambda n: "a" + " + a" * n + " = 1",
    "comparisons": lambda n: " OR ".join(["a = 1"] * n),
}


@pytest.mark.parametrize("levels", [10, 100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("shape", DEEP)
def test_depth_and_length_end_in_a_selector_or_a_clear_error(shape, levels):
    """Never in a RecursionError, and with a message that is not as long as the selector."""
    text = DEEP[shape](levels)
    refusal = refusal_of(text)
    assert len(refusal) < 300
    assert refusal or levels < 10_000
    assert not refusal or levels > 10 or shape == "unclosed"


@pytest.mark.parametrize(
    "text",
    [
        "a = '" + "x" * 70_000 + "'",
        "a = " + "1" * 60_000,
        "a = 0x" + "f" * 60_000,
        "a LIKE '" + "%a" * 400 + "'",
        "a = '" + "''" * 30_000,
        "x" * 60_000 + ".",
        "a IN ('x" + "','x" * 15_000 + "'",
    ],
    ids=["text", "number", "bits", "pattern", "quotes", "name", "list"],
)
def test_what_is_too_long_is_refused_briefly(text):
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text)
    assert len(str(caught.value)) < 300


def test_long_lists_are_no_problem():
    assert Selector("a IN (" + ", ".join(f"'{n}'" for n in range(5_000)) + ")").evaluate({"a": "4999"}) is True


@given(st.text("ab=<>'%_()+-*/.0123456789 \n\"\\,éANDORNOTIKELSUBTW🥕", max_size=40))
def test_any_text_is_a_selector_or_refused(text):
    assert len(refusal_of(text)) < 400
