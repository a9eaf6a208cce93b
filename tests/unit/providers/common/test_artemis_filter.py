"""Selectors in the header names of Artemis."""

import pytest

from jmsjca.errors import NotSupportedError
from jmsjca.providers.brokers.artemis import identifiers_in, to_artemis_filter
from jmsjca.providers.stomp.provider import dialect_for


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("JMSPriority > 6", "AMQPriority > 6"),
        ("JMSTimestamp>=1 AND(JMSMessageID)<>'ID:1'", "AMQTimestamp>=1 AND(AMQUserID)<>'ID:1'"),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", "AMQDurable = 'NON_DURABLE'"),
        ("'PERSISTENT' <> JMSDeliveryMode", "'DURABLE' <> AMQDurable"),
        ("JMSDeliveryMode IN ('PERSISTENT','NON_PERSISTENT')", "AMQDurable IN ('DURABLE','NON_DURABLE')"),
    ],
)
def test_headers_have_other_names(selector, told):
    assert to_artemis_filter(selector) == told


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "JMSType = 'JMSPriority' AND JMSCorrelationID = 'it''s JMSPriority'",
        "kind = 'PERSISTENT' OR kind = 'JMSDeliveryMode'",
        "myJMSPriority = 1 OR JMSPriority2 = 1 OR $JMSPriority = 1 OR éJMSPriority = 1 OR jmspriority = 1",
        "n = 0x1F AND m = 1e3",
    ],
)
def test_all_else_stays(selector):
    assert to_artemis_filter(selector) == selector


def test_names_stand_outside_of_quotes():
    assert identifiers_in("a = 'b' AND NOT c$1") == {"a", "AND", "NOT", "c$1"}


def test_message_ids_are_refused_over_stomp():
    """There they would match nothing, in silence."""
    dialect = dialect_for("ActiveMQ-Artemis/2.56.0", "1.2")
    with pytest.raises(NotSupportedError, match="JMSMessageID"):
        dialect.selector("JMSMessageID = 'ID:1'")
    assert dialect.selector("id = 'JMSMessageID' OR JMSPriority = 1")["selector"].endswith(
        ":id = 'JMSMessageID' OR AMQPriority = 1"
    )
