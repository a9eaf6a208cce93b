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
        ("größe = 2", "'größe'.*Rename the property"),
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


SOME = "12345678-1234-5678-1234-567812345678"
BROKERS = {
    "artemis": ("apache-activemq-artemis", "2.44.0"),
    "activemq": ("ActiveMQ", "6.1.0"),
    "qpid": ("Apache Qpid Broker-J Core", "9.2.0"),
}


def translated(broker, selector):
    return profile_for(*BROKERS[broker], ()).translate_selector(selector)


@pytest.mark.parametrize(
    ("told", "artemis", "activemq", "qpid"),
    [
        ("ID:x", "ID:x", "ID:x", "ID:x"),
        ("ID:AMQP_NO_PREFIX:abc", "ID:abc", "ID:abc", "abc"),
        (f"ID:AMQP_UUID:{SOME}", f"ID:{SOME}", f"ID:AMQP_UUID:{SOME}", SOME),
        ("ID:AMQP_ULONG:7", "ID:7", "ID:AMQP_ULONG:7", "7"),
        ("ID:AMQP_BINARY:01AB5C61", r"ID:\x01\xab\x5ca", "ID:AMQP_BINARY:01AB5C61", r"\x01\xab\x5ca"),
        ("ID:AMQP_STRING:ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7"),
        ("ID:AMQP_NO_PREFIX:AMQP_ULONG:7", "ID:AMQP_ULONG:7", "ID:AMQP_STRING:AMQP_ULONG:7", "AMQP_ULONG:7"),
        ("abc", "abc", "abc", "abc"),
    ],
)
def test_a_message_id_becomes_the_text_that_the_broker_shows(told, artemis, activemq, qpid):
    selector = f"JMSMessageID IN ('{told}') OR n = 1"
    assert translated("artemis", selector) == f"AMQUserID IN ('{artemis}') OR n = 1"
    assert translated("activemq", selector) == f"JMSMessageID IN ('{activemq}') OR n = 1"
    assert translated("qpid", selector) == f"JMSMessageID IN ('{qpid}') OR n = 1"
    assert translated("qpid", f"n = '{told}'") == f"n = '{told}'"


@pytest.mark.parametrize(
    ("told", "activemq"),
    [
        ("abc", "abc"),
        (f"ID:AMQP_UUID:{SOME}", f"AMQP_UUID:{SOME}"),
        ("ID:AMQP_ULONG:7", "AMQP_ULONG:7"),
        ("ID:AMQP_STRING:ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7"),
        ("AMQP_ULONG:7", "AMQP_STRING:AMQP_ULONG:7"),
    ],
)
def test_a_correlation_id_becomes_the_text_that_the_broker_shows(told, activemq):
    assert translated("artemis", f"JMSCorrelationID='{told}'") == f"JMSCorrelationID='{told}'"
    assert translated("activemq", f"NOT JMSCorrelationID <> '{told}'") == (
        f"JMSCorrelationID IS NOT NULL AND NOT (JMSCorrelationID IS NOT NULL AND JMSCorrelationID <> '{activemq}')"
    )


@pytest.mark.parametrize(
    ("selector", "rewritten"),
    [
        ("JMSMessageID LIKE 'ID:%'", "JMSMessageID IS NOT NULL"),
        ("JMSMessageID NOT LIKE 'ID:%'", "FALSE"),
        ("JMSMessageID LIKE 'ID:shop-%'", "JMSMessageID LIKE 'ID:shop-%'"),
        ("JMSCorrelationID LIKE '%'", "JMSCorrelationID IS NOT NULL"),
        ("JMSCorrelationID LIKE '%-eu'", "JMSCorrelationID LIKE '%-eu'"),
    ],
)
def test_a_pattern_that_no_other_type_of_id_matches_is_decided(selector, rewritten):
    assert translated("activemq", selector) == rewritten


@pytest.mark.parametrize(
    ("selector", "brokers"),
    [
        ("JMSMessageID LIKE '%1'", ["artemis", "activemq"]),
        ("JMSMessageID LIKE 'ID:AMQP_UUID:1%'", ["artemis", "activemq"]),
        ("JMSMessageID = p", ["artemis", "activemq"]),
        ("JMSCorrelationID LIKE 'ID:%'", ["artemis", "activemq"]),
        ("JMSCorrelationID LIKE 'AMQP%'", ["activemq"]),
        ("JMSCorrelationID = 'ID:AMQP_BINARY:01'", ["artemis"]),
        ("JMSCorrelationID = 'ID:AMQP_ULONG:07'", ["artemis", "activemq"]),
        ("JMSMessageID = 'ID:AMQP_UUID:x'", ["artemis", "activemq"]),
    ],
)
def test_an_id_that_the_broker_does_not_show_as_such_is_refused(selector, brokers):
    for broker in brokers:
        with pytest.raises(NotSupportedError):
            translated(broker, selector)
