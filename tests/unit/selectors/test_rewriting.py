"""Selectors for the engine of Artemis and ActiveMQ. What the engine decides is tested in `tests/brokers/java`."""

import pytest

from jmsjca.errors import InvalidSelectorError, NotSupportedError
from jmsjca.providers.amqp.provider import profile_for
from jmsjca.selectors.rewriting import rewrite


@pytest.mark.parametrize(
    "selector",
    [
        "region = 'EU'",
        "region='EU'and( JMSPriority>3 or urgent )",
        "(a = 1) AND (b LIKE 'x%' OR c NOT IN ('x'))",
        "d IS NOT NULL AND e NOT IN ('a', 'it''s') AND n >= -5",
    ],
)
def test_selector_that_the_engine_decides_alike_stays_as_it_is(selector):
    """A durable subscription whose selector has another text is a new one, without the messages of the old one."""
    assert rewrite(selector) == selector


@pytest.mark.parametrize(
    ("selector", "rewritten"),
    [
        ("NOT c = 'red'", "c IS NOT NULL AND NOT (c = 'red')"),
        ("NOT c IS NULL", "c IS NOT NULL"),
        ("NOT c IN ('red')", "c NOT IN ('red')"),
        ("NOT (a AND b > 1)", "a = FALSE OR (b IS NOT NULL AND NOT (b > 1))"),
        ("NOT NOT (a = 1 OR b = 2)", "a = 1 OR b = 2"),
        ("'red' <> c", "c LIKE '%' AND c <> 'red'"),
        ("c NOT LIKE 'x!%' ESCAPE '!'", "c LIKE '%' AND c NOT LIKE 'x!%' ESCAPE '!'"),
        ("a = 1 OR NOT c LIKE 'x%'", "a = 1 OR (c LIKE '%' AND c NOT LIKE 'x%')"),
        ("3 > n", "n < 3"),
        ("n <> 5", "n < 5 OR n > 5"),
        ("flag <> TRUE", "flag = FALSE"),
        ("n = 2f OR n = 0L OR n = 017", "n = 2.0 OR n = 0 OR n = 15"),
        ("n = 17 / 4", "n = 4"),
        ("c LIKE 'a\\%' ESCAPE '\\'", "c LIKE 'a!%' ESCAPE '!'"),
        ("c LIKE '🥕%!' ESCAPE '🥕'", "c LIKE '!%!!' ESCAPE '!'"),
        ("n / 0 > 1 OR NOT n / 0 > 1", "FALSE"),
        ("1 = 1.0", "TRUE"),
        (" \n", ""),
    ],
)
def test_selector_is_rewritten(selector, rewritten):
    assert rewrite(selector) == rewritten


@pytest.mark.parametrize(
    ("selector", "match"),
    [
        ("größe = 2", "'größe'.*Give the property another name"),
        ("xpath = 'a'", "XPATH"),
        ("a = 1 OR NOT n / 2 = 1", r"Write the divisor with a point, as in size / 2\.0"),
        ("n / m > 1", "keeps the fraction"),
    ],
)
def test_what_the_engine_cannot_decide_is_refused(selector, match):
    with pytest.raises(NotSupportedError, match=match):
        rewrite(selector)


def test_division_with_a_fraction_is_calculated():
    assert "/ 2.0" in rewrite("n / 2.0 > 1")


def test_invalid_selector_is_refused_with_its_position():
    with pytest.raises(InvalidSelectorError, match="position 5"):
        rewrite("a = = 1")


@pytest.mark.parametrize(
    ("selector", "rewritten"),
    [
        ("JMSPriority > 6", "AMQPriority > 6"),
        ("JMSTimestamp>=1 AND JMSMessageID='JMSPriority'", "AMQTimestamp>=1 AND AMQUserID='JMSPriority'"),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", "AMQDurable = 'NON_DURABLE'"),
        ("JMSDeliveryMode = 'DURABLE' OR c = 'PERSISTENT'", "AMQDurable = '' OR c = 'PERSISTENT'"),
        ("JMSDeliveryMode NOT LIKE 'NON%'", "AMQDurable NOT IN ('NON_DURABLE')"),
        ("NOT JMSType = 'a'", "JMSType IS NOT NULL AND NOT (JMSType = 'a')"),
    ],
)
def test_artemis_has_other_names_for_headers_and_delivery_modes(selector, rewritten):
    assert profile_for("apache-activemq-artemis", "2.44.0", ()).translate_selector(selector) == rewritten


def test_artemis_cannot_compare_the_delivery_mode_with_a_property():
    with pytest.raises(NotSupportedError, match="use a literal"):
        profile_for("apache-activemq-artemis", "2.44.0", ()).translate_selector("JMSDeliveryMode = c")
