"""Selectors as objects: made, kept, compared, pickled, and held against messages."""

import copy
import pickle
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from jmsjca import DeliveryMode, Float, Message, TextMessage
from jmsjca.selectors import Selector

TEXT = "region = 'EU' AND JMSPriority > 3"


@pytest.fixture
def message():
    message = TextMessage("body", properties={"region": "EU", "level": Float(1.1), "urgent": True}, type="car")
    message.message_id, message.correlation_id, message.priority = "ID:1", "c1", 7
    message.timestamp = datetime(2026, 11, 20, 12, 0, 0, 123000, tzinfo=UTC)
    message.delivery_mode = DeliveryMode.NON_PERSISTENT
    return message


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "JMSMessageID = 'ID:1' AND JMSCorrelationID = 'c1' AND JMSType = 'car'",
        "JMSTimestamp = 1795176000123",
        "JMSDeliveryMode = 'NON_PERSISTENT'",
        "level = 1.1f AND level <> 1.1",
        "urgent AND missing IS NULL",
        "",
    ],
)
def test_message_is_selected(message, text):
    assert Selector.parse(text).matches(message) is True


@pytest.mark.parametrize("text", ["JMSPriority = 4", "region = 'US'", "region", "missing = 1", "NOT missing = 1"])
def test_message_is_not_selected(message, text):
    assert Selector.parse(text).matches(message) is False


@pytest.mark.parametrize("name", ["JMSMessageID", "JMSCorrelationID", "JMSType", "JMSTimestamp"])
def test_header_that_is_not_set_is_null(name):
    assert Selector.parse(f"{name} IS NULL").matches(Message())


def test_body_is_never_looked_at():
    assert not Selector.parse("body = 'x'").matches(TextMessage("x"))


def test_selector_knows_its_text_and_its_names():
    selector = Selector.parse(TEXT)
    assert (selector.text, str(selector)) == (TEXT, TEXT)
    assert selector.identifiers == {"region", "JMSPriority"}
    assert Selector.parse("a LIKE 'x' OR NOT b IN ('y') AND c IS NULL AND -d = e").identifiers == set("abcde")
    assert Selector.parse("").identifiers == frozenset()
    assert len(repr(Selector.parse(f"a = '{'x' * 10_000}'"))) < 300


def test_selectors_are_equal_by_text():
    assert Selector(TEXT) == Selector(TEXT) != Selector("a = 1")
    assert len({Selector(TEXT), Selector(TEXT), Selector(f"{TEXT} ")}) == 2
    assert Selector(TEXT) != TEXT


def pickled(selector):
    return pickle.loads(pickle.dumps(selector))  # noqa: S301  # our own


@pytest.mark.parametrize("remake", [pickled, copy.copy, copy.deepcopy])
def test_selector_survives_copying(remake):
    again = remake(Selector(TEXT))
    assert again == Selector(TEXT)
    assert again.evaluate({"region": "EU", "JMSPriority": 4}) is True


def test_same_text_is_read_once():
    assert Selector.parse("kept = 1") is Selector.parse("kept = 1")


def test_kept_selectors_are_bounded():
    first = Selector.parse("first = 1")
    for number in range(1000):
        Selector.parse(f"a = {number}")
    assert Selector.parse("first = 1") is not first


def test_grammar_is_loaded_with_the_first_selector():
    script = """
import sys, jmsjca.selectors
jmsjca.selectors.Selector.parse("")
assert "lark" not in sys.modules
jmsjca.selectors.Selector.parse("a = 1")
assert "lark" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_many_threads_may_read_the_first_selectors():
    script = """
import sys, threading
from jmsjca.selectors import Selector, parser as reading
reading._parser()  # as the first of them leaves it
sys.setswitchinterval(1e-6)
started, results = threading.Barrier(8), []
def read(number):
    started.wait()
    results.append(Selector(f"a = {number} AND NOT b IN ('x') OR c IS NULL").evaluate({"a": number, "b": "y"}))
threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert results == [True] * 8, results
"""
    subprocess.run([sys.executable, "-c", script], check=True)
