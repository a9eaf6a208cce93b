"""LIKE: what is like what, and how long it takes to say so."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors import Selector
from jmsjca.selectors.like import MAX_PATTERN_LENGTH, Pattern


def like(text, pattern, escape=None):
    return Pattern(pattern, escape).matches(text)


@pytest.mark.parametrize(
    ("pattern", "escape", "alike", "unlike"),
    [
        ("12%3", None, ["123", "12993"], ["1234", "12", "0123"]),
        ("l_se", None, ["lose"], ["loose", "lse", "LOSE"]),
        ("\\_%", "\\", ["_foo", "_"], ["bar", ""]),
        ("", None, [""], ["a"]),
        ("%", None, ["", "a", "\n"], []),
        ("%%", None, ["", "a"], []),
        ("_", None, ["a", "🥕", "\n", "\0"], ["", "ab", "e\u0301"]),
        ("_%_", None, ["ab", "abc"], ["", "a"]),
        ("a%a", None, ["aa", "aba"], ["a", "ab"]),
        ("%a%a%", None, ["aa", "xaxax"], ["a"]),
        ("%ab%ba%", None, ["abba", "abxba"], ["aba", "xabax"]),
        ("ab%b%c", None, ["abbc", "abxbxc"], ["abxc", "abc"]),
        ("a%b%bc", None, ["abbc", "axbxbc"], ["abc", "axbc", "axxbc"]),
        ("%a_a%", None, ["aaa", "xaaa", "abax"], ["aa", "aab"]),
        ("%ab%ab", None, ["abab", "xabxab"], ["ab", "aba", "bab"]),
        ("%a_c%", None, ["abc", "aabcc", "axaxc"], ["ac", "abd"]),
        ("a!%%", "!", ["a%", "a%b"], ["a", "ab"]),
        ("a!!", "!", ["a!"], ["a!!", "a"]),
        ("a!b", "!", ["ab"], ["a!b"]),
        ("a%%b", "%", ["a%b"], ["ab", "axb"]),
        ("a__b", "_", ["a_b"], ["axxb", "axb"]),
        ("a🥕%", "🥕", ["a%"], ["a", "ab"]),
        (".*", None, [".*"], ["x"]),
        ("[a-c]", None, ["[a-c]"], ["b"]),
    ],
)
def test_patterns(pattern, escape, alike, unlike):
    assert [text for text in alike if not like(text, pattern, escape)] == []
    assert [text for text in unlike if like(text, pattern, escape)] == []


@settings(max_examples=4 * settings.default.max_examples)
@given(st.text("ab%_!", max_size=8), st.text("ab%_!\n", max_size=8), st.sampled_from([None, "!"]))
def test_patterns_are_as_regular_expressions_say(pattern, text, escape):
    expression, literal = "", False
    for character in pattern:
        if character == escape and not literal:
            literal = True
            continue
        wild = {"%": "(?s:.*)", "_": "(?s:.)"}.get(character) if not literal else None
        expression, literal = expression + (wild or re.escape(character)), False
    if literal:  # it ends with the escape
        with pytest.raises(ValueError, match="escapes nothing"):
            like(text, pattern, escape)
    else:
        assert like(text, pattern, escape) == bool(re.fullmatch(expression, text))


@pytest.mark.timeout(20)  # a matcher that goes back would take until the end of time
@pytest.mark.parametrize(
    "pattern",
    ["%a" * 40 + "%b%", "%_a" * 40 + "%b%", "%" + "_a" * 200 + "b%", "%" + "a" * 400 + "b%", "%_" * 200 + "b"],
)
def test_no_pattern_goes_back(pattern):
    for text in ("a" * 100_000, "ab" * 50_000):
        assert isinstance(like(text, pattern), bool)


def test_pattern_is_bounded():
    assert like("a", "%" * MAX_PATTERN_LENGTH)
    with pytest.raises(InvalidSelectorError, match="too long"):
        Selector(f"a LIKE '{'%' * (MAX_PATTERN_LENGTH + 1)}'")
