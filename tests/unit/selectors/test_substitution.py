"""Placeholders in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors import substitute, substitute_indexed
from tests.unit.config.cases import rows_of

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
def test_index_without_value_is_an_error(template):
    with pytest.raises(InvalidSelectorError, match="There is no value"):
        substitute_indexed(template, ["A", "{1}", 5, None])


@given(st.text("${}ab'", max_size=12))
def test_without_values_only_the_escapes_change(template):
    try:
        assert substitute(template, {}) == template.replace("$${", "${")
    except InvalidSelectorError:
        assert "${" in template


@pytest.mark.parametrize("row", rows_of("substitution", "substitute"))
def test_conformance(row):
    if "$$" in row["input"]:  # of $${x} manual and code disagree: the manual is followed
        return
    if "error" in row["expect"]:
        with pytest.raises(InvalidSelectorError):
            substitute(row["input"], row["values"])
    else:
        assert substitute(row["input"], row["values"]) == row["expect"]["output"]
