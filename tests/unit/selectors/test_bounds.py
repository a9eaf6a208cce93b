"""Selectors that are too deep, too long, or nothing at all: read or refused, at once and briefly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors import Selector


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
