"""The selector engines of Artemis and ActiveMQ decide rewritten selectors as JMS says."""

from random import Random

import pytest
from selector_engines import ENGINES, decisions, random_message, random_selector

from jmsjca.errors import NotSupportedError
from jmsjca.messages import Byte, Double, Float, Int, Short
from jmsjca.providers.brokers.activemq_amqp import ACTIVEMQ
from jmsjca.providers.brokers.artemis_amqp import ARTEMIS
from jmsjca.selectors import Selector
from tests.brokers.conftest import demand

REWRITE = {"artemis": ARTEMIS.translate_selector, "activemq": ACTIVEMQ.translate_selector}
HEADERS = {"JMSPriority": "AMQPriority", "JMSTimestamp": "AMQTimestamp", "JMSDeliveryMode": "AMQDurable"}
MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}

# What the engines decide otherwise than JMS, or refuse, as it is written: a selector and a message.
DEVIATIONS = {
    "artemis": [
        ("NOT c = 'red'", {"c": "blue"}),
        ("NOT c IS NULL", {"c": "blue"}),
        ("NOT c IN ('red')", {"c": "blue"}),
        ("NOT c LIKE 'r%'", {"c": "blue"}),
        ("'red' <> c", {}),
        ("x = y", {}),
        ("c <> 'red'", {"c": Int(1)}),
        ("x < y", {"x": "a", "y": "b"}),
        ("x = y", {"x": Int(2), "y": Short(2)}),
        ("2 = x", {"x": Byte(2)}),
        ("x >= y", {"x": Double(2), "y": Byte(2)}),
        ("n = 2f", {"n": Int(2)}),
        ("n = 0L", {"n": Int(0)}),
        ("n / 0 > 1", {"n": Int(1)}),
        ("n + 1 > 2147483647", {"n": Int(2147483647)}),
        ("n - 1 > 0 OR TRUE", {"n": "text"}),
        ("c LIKE '!r%' ESCAPE '!' OR c LIKE 'r🥕%' ESCAPE '🥕'", {"c": "r%"}),
    ],
    "activemq": [
        ("NOT c = 'red'", {"c": "blue"}),
        ("NOT c IS NULL", {"c": "blue"}),
        ("'red' <> c", {}),
        ("x = y", {}),
        ("x = y", {"x": Int(2), "y": Short(2)}),
        ("x = y", {"x": Double(2), "y": Float(2)}),
        ("n = 2f", {"n": Int(2)}),
        ("n / 0 > 1", {"n": Int(1)}),
        ("n - 1 > 0 OR TRUE", {"n": "text"}),
    ],
}
CASES = [(engine, *case) for engine, cases in DEVIATIONS.items() for case in cases]


def as_jms(selector, messages):
    chosen = Selector.parse(selector)
    return "".join("T" if chosen.evaluate(message) is True else "F" for message in messages)


def for_engine(engine, message):
    """Return a message with the names and words that Artemis has for headers."""
    if engine == "activemq":
        return message
    told = {HEADERS.get(name, name): value for name, value in message.items()}
    return told | ({"AMQDurable": MODES[message["JMSDeliveryMode"]]} if "JMSDeliveryMode" in message else {})


@pytest.mark.parametrize(("engine", "selector", "message"), CASES)
def test_deviation_of_the_engine_is_rewritten(engine, selector, message):
    """As it is written the engine decides otherwise, so the case stays one only as long as the engine deviates."""
    written, rewritten = demand(decisions, engine, [selector, REWRITE[engine](selector)], [message])
    wanted = as_jms(selector, [message])
    assert written != wanted
    assert rewritten == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("count", "seed"), [(400, 1), pytest.param(4000, 2, marks=pytest.mark.torture, id="all")])
def test_random_selectors_are_decided_as_jms_says(engine, count, seed):
    random = Random(seed)
    messages = [random_message(random) for _ in range(40)]
    rewritten = {}
    while len(rewritten) < count:
        selector = random_selector(random)
        try:
            rewritten[selector] = REWRITE[engine](selector)
        except NotSupportedError:
            continue
    found = demand(decisions, engine, rewritten.values(), [for_engine(engine, message) for message in messages])
    wrong = {
        (selector, rewritten[selector]): (wanted, answer)
        for selector, answer in zip(rewritten, found, strict=True)
        if answer != (wanted := as_jms(selector, messages))
    }
    assert wrong == {}
