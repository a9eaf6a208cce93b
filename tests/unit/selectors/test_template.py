"""Placeholders in texts, and selectors built from templates."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError
from jmsjca.messages import Float, Int
from jmsjca.selectors import Selector, build_indexed_selector, build_selector, substitute, substitute_indexed
from jmsjca.selectors.syntax import And, Comparison, Identifier, Literal
from tests.unit.config.conformance_cases import rows_of

DEFAULT = "(sub IS NULL OR sub = '${subscribername}') ${andselector}"
NASTY = "x' OR 'a' = 'a"


@pytest.mark.parametrize(
    ("template", "selector", "result"),
    [
        (DEFAULT, "a = 1", "(sub IS NULL OR sub = 's47') and (a = 1)"),
        (DEFAULT, None, "(sub IS NULL OR sub = 's47') "),
        (DEFAULT, "  ", "(sub IS NULL OR sub = 's47') "),
        ("${selectorand} x = 1", "a = 1 or b = 2", "(a = 1 or b = 2) and x = 1"),
        ("${selectorand} x = 1", None, " x = 1"),
        ("${selector}", "a = '${subscribername}'", "a = '${subscribername}'"),
        ("sub = ${subscribername}", None, "sub = 's47'"),
        ("sub = '$${subscribername}'", None, "sub = '${subscribername}'"),
        ("${unknown} = '${other}'", None, "${unknown} = '${other}'"),
    ],
)
def test_names_with_a_meaning(template, selector, result):
    assert build_selector(template, selector=selector, subscriber_name="s47") == result


def test_no_subscriber_is_the_empty_text():
    assert build_selector("a = '${subscribername}' OR b = ${subscribername}") == "a = '' OR b = ''"


def test_names_with_a_meaning_cannot_be_given_another():
    built = build_selector("${selector} ${subscribername}", {"selector": "x", "subscribername": "y"}, selector="a")
    assert built == "a ''"


@pytest.mark.parametrize(
    ("value", "bare", "within"),
    [
        ("it's", "'it''s'", "it''s"),
        (NASTY, "'x'' OR ''a'' = ''a'", "x'' OR ''a'' = ''a"),
        ("${n}", "'${n}'", "${n}"),
        (5, "5", "5"),
        (Int(-5), "(-5)", "-5"),
        (-(1 << 63), "(-9223372036854775808)", "-9223372036854775808"),
        (1.5, "1.5", "1.5"),
        (Float(1.1), "1.100000023841858", "1.100000023841858"),
        (-0.0, "(-0.0)", "-0.0"),
        (1e-7, "1e-07", "1e-07"),
        (True, "TRUE", "true"),
        (False, "FALSE", "false"),
    ],
)
def test_value_becomes_a_literal_or_stays_in_one(value, bare, within):
    assert build_selector("a = ${v}", {"v": value}) == f"a = {bare}"
    assert build_selector("a = 'x''${v}'", {"v": value}) == f"a = 'x''{within}'"
    assert build_indexed_selector("a = {1} AND b = '{1}'", [value]) == f"a = {bare} AND b = '{within}'"


@pytest.mark.parametrize("value", [math.inf, math.nan, 1 << 63, -(1 << 63) - 1, None, b"x", [1]])
@pytest.mark.parametrize("template", ["a = ${v}", "a = '${v}'"])
def test_value_without_literal_is_refused(template, value):
    with pytest.raises(InvalidSelectorError, match="no JMS literal"):
        build_selector(template, {"v": value})


def test_values_go_in_raw_on_demand():
    assert build_selector("a = '${v}'", {"v": NASTY}, raw=True) == f"a = '{NASTY}'"
    assert build_indexed_selector("a = {1}", ["b"], raw=True) == "a = b"


def test_index_without_value_is_an_error():
    with pytest.raises(InvalidSelectorError, match=r"There is no value for \{2\}"):
        build_indexed_selector("a = '{2}'", ["x"])


def test_environment_is_read_only_where_it_is_allowed(monkeypatch):
    monkeypatch.setenv("REGION", "E'U")
    assert build_selector("a = '${REGION}'") == "a = '${REGION}'"
    assert build_selector("a = '${REGION}'", environment=["REGION"]) == "a = 'E''U'"
    assert build_selector("a = '${REGION}'", {"REGION": "US"}, environment=["REGION"]) == "a = 'US'"
    assert build_selector("a = '${NONE_SUCH}'", environment=["NONE_SUCH"]) == "a = '${NONE_SUCH}'"


def test_selector_with_an_unclosed_string_would_turn_the_template_inside_out():
    with pytest.raises(InvalidSelectorError, match="unclosed"):
        build_selector(DEFAULT, selector="a = 'x", subscriber_name=" OR b = b OR c = ")


texts = st.text("ab'\"\\%_-/*;${}[]()= \n\t\0é\u2019\u02bc\uff07🥕", max_size=20) | st.sampled_from(
    [NASTY, "--", "${a}", "''", "${v}"]
)


@settings(max_examples=4 * settings.default.max_examples)
@given(texts)
def test_value_changes_nothing_but_the_literal(value):
    wanted = tuple(Comparison("=", Identifier(name), Literal(value)) for name in "abcd")
    named = build_selector(
        "a = ${v} AND b = '${v}' AND c = ${v} ${andselector}",
        {"v": value},
        selector="d = '" + value.replace("'", "''") + "'",
    )
    indexed = build_indexed_selector("a = {1} AND b = '{1}' AND c = {1} AND d = '{1}'", [value])
    assert Selector(named).expression == Selector(indexed).expression == And(wanted)


@given(st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
def test_every_value_can_be_read_back(value):
    read = Selector(build_selector("a = ${v}", {"v": value})).expression
    assert repr(read) == repr(Comparison("=", Identifier("a"), Literal(value)))


@pytest.mark.parametrize("row", rows_of("substitution", "selector"))
def test_conformance(row):
    """A selector in the options counts more than that of the activation, unless it is blank."""
    name = row and row.get("subscription_name")
    if (name or "").startswith("jmsjca:"):  # whoever reads such a name gives what is in it
        return
    option, selector = row["option_selector"] or "", row["message_selector"]
    template = option if option.strip() else selector or ""
    if "error" in row["expect"]:
        with pytest.raises(InvalidSelectorError):
            build_selector(template, selector=selector, subscriber_name=name)
    else:
        assert build_selector(template, selector=selector, subscriber_name=name) == (row["expect"]["selector"] or "")


VALUES = {"a": "A", "b": "${a}", "c": "", "e.f": "E", "n": 5, "": "none"}


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("", ""),
        ("x${a}y", "xAy"),
        ("${a}${a}", "AA"),
        ("${b}", "${a}"),
        ("${c}", ""),
        ("${e.f}${n}", "E5"),
        ("${x}", "${x}"),
        ("${}", "none"),
        ("$${a}", "${a}"),
        ("$$${a}", "$${a}"),
        ("$${a}${a}", "${a}A"),
        ("$${a", "${a"),
        ("$", "$"),
        ("$$", "$$"),
        ("$a$$a{a}", "$a$$a{a}"),
        ("${x${a}", "${x${a}"),
        ("'${a}'", "'A'"),
    ],
)
def test_named_placeholders(template, result):
    assert substitute(template, VALUES) == result


@pytest.mark.parametrize("template", ["${", "a${a", "${a}${b"])
def test_unclosed_placeholder_is_an_error(template):
    with pytest.raises(InvalidSelectorError, match=r"closing brace.* \$\$\{"):
        substitute(template, VALUES)


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("x{1}y{2}", "xAy{1}"),
        ("{1}{1}", "AA"),
        ("{01}", "A"),
        ("{{1}", "{1}"),
        ("{{{1}", "{A"),
        ("{", "{"),
        ("}{}", "}{}"),
        ("{a} {-1} { 1}", "{a} {-1} { 1}"),
        ("{3}", "5"),
    ],
)
def test_indexed_placeholders(template, result):
    assert substitute_indexed(template, ["A", "{1}", 5, None]) == result


@pytest.mark.parametrize("template", ["{0}", "{4}", "{5}", "{99999999999999999999}"])
def test_index_without_value_is_an_error_in_text(template):
    with pytest.raises(InvalidSelectorError, match="There is no value"):
        substitute_indexed(template, ["A", "{1}", 5, None])


@given(st.text("${}ab'", max_size=12))
def test_without_values_only_the_escapes_change(template):
    try:
        assert substitute(template, {}) == template.replace("$${", "${")
    except InvalidSelectorError:
        assert "${" in template


@pytest.mark.parametrize("row", rows_of("substitution", "substitute"))
def test_conformance_of_texts(row):
    if "$$" in row["input"]:  # of $${x} manual and code disagree: the manual is followed
        return
    if "error" in row["expect"]:
        with pytest.raises(InvalidSelectorError):
            substitute(row["input"], row["values"])
    else:
        assert substitute(row["input"], row["values"]) == row["expect"]["output"]
