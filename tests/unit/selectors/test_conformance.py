"""What other brokers' tests expect of selectors; and, where these disagree, what is documented here."""

import re
from pathlib import Path

import pytest

from jmsjca.selectors import Selector
from tests.unit.selectors.conformance_cases import outcome, rows, values
from tests.unit.selectors.message_table import MessageTable

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "compatibility.md"

# Of the disputed groups whose selectors do not all end alike, how each ends.
MIXED = {
    "name + '!' = 'James!'": "refused",
    "country + weight = 'UK5'": "unknown",
    "rank / version = 61.5": "false",
    "size / 4 = 2.5": "false",
    "1 + 1 / 10 = 1.1": "false",
    "(1 + 1) / 10 = 0.2": "false",
    "17/4=4": "true",
    "weight / 2 = 2.5": "false",
    "weight + weight * quantity - -temperature / 2 = 502.5": "false",
    "foo LIKE '%_%' ESCAPE '%'": "refused",
    "endingUnderScore LIKE '_D7xlJIQn__' ESCAPE '_'": "false",
    "endingUnderScore LIKE '%D7xlJIQn%_' ESCAPE '%'": "false",
    "endingUnderScore LIKE '%D7xlJIQn%'  ESCAPE '%'": "refused",
    "endingUnderScore LIKE '%D7xlJIQn%%'  ESCAPE '%'": "false",
    "A not like 'eclecti_' escape '%'": "unknown",
    "product_id LIKE 'ABC🥕_123' ESCAPE '🥕'": "true",
    "product_id LIKE 'ABC🥕%123' ESCAPE '🥕'": "false",
    "id LIKE 'pattern*' ESCAPE '*'": "refused",
    "id LIKE '_pattern*' ESCAPE '*'": "refused",
    "sProp like 'foo''bar' escape ''''": "true",
    "TRUE = TRUE": "true",
    "FALSE = FALSE": "true",
    "TRUE = 1": "refused",
    "TRUE = 'TRUE'": "refused",
    "TRUE='a'": "refused",
    "false or iProp": "unknown",
    "3/sProp = 1": "unknown",
    "iProp like 'test'": "unknown",
    "sProp like iProp": "refused",
    "sProp like undefined": "refused",
    "sProp in (undefined,'2')": "refused",
    "sProp in ('2',null)": "refused",
    "sProp in ('2',iProp)": "refused",
    "sProp in (1,2)": "refused",
    "undefined in (1,2)": "refused",
}


def documented():
    """The outcomes that the page of deviations states for each disputed group."""
    lines = re.findall(r"^\| `([a-z0-9-]+)` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {group: set(re.findall(r"refused|true|false|unknown", outcomes)) for group, outcomes in lines}


@pytest.mark.parametrize("row", rows("selectors"))
def test_selector(row):
    wanted = {True: {"true"}, False: {"false"} if row.get("strict") else {"false", "unknown"}, "invalid": {"refused"}}
    assert outcome(row) in wanted.get(row["expect"], {"unknown"})


@pytest.mark.parametrize("row", rows("selectors"))
def test_selector_in_sql(row):
    if row["expect"] == "invalid":
        return
    message = {"JMSPriority": 4, **values(row)}
    selector, table = Selector(row["selector"]), MessageTable([message])
    assert table.selected(selector) == ({0} if selector.evaluate(message) else set())
    table.close()


@pytest.mark.parametrize("row", rows("selectors_parse_only"))
def test_selector_is_accepted(row):
    assert Selector(row["selector"]).text == row["selector"]


@pytest.mark.parametrize("row", rows("selectors_disputed"))
def test_disputed_selector_ends_as_documented(row):
    outcomes = documented()[row["category"]]
    expected = MIXED[row["selector"]] if len(outcomes) > 1 else next(iter(outcomes))
    assert outcome(row) == expected
    assert expected in outcomes
