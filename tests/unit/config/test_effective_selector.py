"""The selector in force: that of the spec or of an option, with its placeholders replaced."""

import pytest

from jmsjca import ActivationSpec, Topic
from jmsjca.config import ConnectionURL, resolve_spec
from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors import Selector
from tests.unit.config.cases import rows_of
from tests.unit.selectors.cases import values

SUB = "(sub = null or sub = '${subscribername}')"


def selector(option=None, message_selector=None, subscription=None):
    """The selector that is used; the option comes from the spec's options."""
    options = {} if option is None else {"JMSJCA.selector": option}
    durable = {} if subscription is None else {"subscription_durability": "Durable", "subscription_name": subscription}
    return resolve_spec(
        ActivationSpec(destination=Topic("t"), selector=message_selector, options=options, **durable)
    ).selector


@pytest.mark.parametrize(
    ("option", "message_selector", "subscription", "expected"),
    [
        ("(sub = '${subscribername}')  ${andselector}", "a = 1", "dursub1", "(sub = 'dursub1')  and (a = 1)"),
        (None, SUB, "sub47", "(sub = null or sub = 'sub47')"),
        (f"{SUB} ${{andselector}}", "msgtype = 1", "sub47", "(sub = null or sub = 'sub47') and (msgtype = 1)"),
        (f"{SUB} ${{andselector}}", None, "sub47", "(sub = null or sub = 'sub47') "),
        (f"${{selectorand}} {SUB}", "msgtype = 1", "sub47", "(msgtype = 1) and (sub = null or sub = 'sub47')"),
        ("${selector}", "a = 1", None, "a = 1"),
        ("x = 1 ${andselector}", "", None, "x = 1 "),
        ("x = 1 ${andselector}", " \t", None, "x = 1 "),
        ("${selectorand} x = 1", "a = 1 or b = 2", None, "(a = 1 or b = 2) and x = 1"),
        ("sub='${subscribername}'", None, None, "sub=''"),
        ("sub='${subscribername}'", None, "jmsjca://?subscribername=s1&distribution=1", "sub='s1'"),
        ("sub='${subscribername}'", None, "jmsjca://distribution=1&subscribername=s1", "sub='s1'"),
        (None, "a = 1", "s1", "a = 1"),
        ("", "a = 1", "s1", "a = 1"),
        ("  ", "a = 1", "s1", "a = 1"),
        (None, None, "s1", None),
        (None, "", "s1", None),
        (None, "  ", "s1", None),
        ("x = 1", "a = 1", None, "x = 1"),
        ("${selector}", None, None, ""),
        ("p = '${no.such.parameter}'", None, None, "p = '${no.such.parameter}'"),
        ("p = '$${subscribername}'", None, "s", "p = '${subscribername}'"),
        ("${selector}", "a = '${subscribername}'", "s", "a = '${subscribername}'"),  # a single pass
        ("sub = '${subscribername}'", None, "o'neill", "sub = 'o''neill'"),
        ("sub = ${subscribername}", None, "s", "sub = 's'"),
    ],
)
def test_selector(option, message_selector, subscription, expected):
    assert selector(option, message_selector, subscription) == expected


@pytest.mark.parametrize("fields", [{"option": "x = '${broken"}, {"message_selector": "x = '${broken'"}])
def test_placeholder_that_is_not_closed(fields):
    with pytest.raises(InvalidSelectorError, match="no closing brace"):
        selector(**fields)


def test_option_of_the_url_counts():
    url = "p://localhost:18007?JMSJCA.selector=%24%7Bselectorand%7D+sub+%3D+1"
    spec = ActivationSpec(destination="q", selector="a = 1", connection_url=url, options={"JMSJCA.selector": "b = 1"})
    assert resolve_spec(spec, {"JMSJCA.selector": "c = 1"}).selector == "(a = 1) and sub = 1"


@pytest.mark.parametrize("row", rows_of("substitution", "selector"))
def test_conformance(row):
    given = (row["option_selector"], row["message_selector"], row["subscription_name"])
    if "error" in row["expect"]:
        with pytest.raises(InvalidSelectorError):
            selector(*given)
        return
    used = selector(*given)
    assert used == row["expect"]["selector"]
    for case in row["expect"].get("selects", []):
        message = values({"headers": {}, "properties": case["properties"]})
        assert (Selector.parse(used).evaluate(message) is True) == case["match"]


@pytest.mark.parametrize("row", rows_of("substitution", "url"))
def test_conformance_of_urls(row):
    assert ConnectionURL.parse(row["url"]).query == row["expect"]
